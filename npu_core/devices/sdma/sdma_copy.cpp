// The data path of the SDMA engine: requests of at most 512 B, one read and one write each.
#include <algorithm>
#include <bit>
#include <utility>

#include "firmware/abi/memory_map.h"
#include "npu_core/devices/sdma/sdma_engine.h"

namespace cm384::npu {

void SdmaEngine::copy(std::uint64_t source, std::uint64_t destination, std::uint64_t bytes,
                      sim::TransactionId transaction, Turns turns) {
  replayed_.push_back({source, destination, bytes, transaction, turns});
  start_replayed();
}

// From a request of so many bytes to the next one.
Time SdmaEngine::interval_of(std::uint32_t request_bytes) const {
  const std::int64_t rate = parameters_.bandwidth.bytes_per_second;
  return {(std::int64_t{request_bytes} * 1'000'000'000'000 + rate - 1) / rate};
}

void SdmaEngine::start_replayed() {
  for (std::size_t number = 0; number < channels_.size() && !replayed_.empty(); ++number) {
    Channel& channel = channels_[number];
    if (channel.busy) continue;
    const Replayed& next = replayed_.front();
    channel = Channel{};
    channel.busy = channel.copying = channel.replayed = true;
    channel.entry.operation = CM384_SDMA_COPY;
    channel.record.source = next.source;
    channel.record.destination = next.destination;
    channel.record.bytes = next.bytes;
    channel.record.channel = static_cast<std::uint16_t>(number);
    channel.transaction = next.transaction;
    channel.turns = next.turns;
    replayed_.pop_front();
    update_eligible(number);
    arm();
  }
}

void SdmaEngine::update_eligible(std::size_t number) {
  const std::uint64_t bit = std::uint64_t{1} << number % 64;
  std::uint64_t& word = eligible_[number / 64];
  word = channels_[number].wants_issue() ? word | bit : word & ~bit;
}

// The channel whose turn it is: the last one, while its turn goes on, or the next one behind it that wants to
// issue. None: as many as there are channels.
std::size_t SdmaEngine::next_eligible() const {
  const Channel& last = channels_[last_channel_];
  if (last.turns.turn > last.turns.request && last.wants_issue() && last.issued % last.turns.turn != 0)
    return last_channel_;
  const std::size_t words = eligible_.size(), first = (last_channel_ + 1) % channels_.size();
  std::uint64_t word = eligible_[first / 64] & (~std::uint64_t{0} << first % 64);
  for (std::size_t n = 0, at = first / 64; n <= words; ++n, word = eligible_[at]) {
    if (word != 0) return at * 64 + static_cast<std::size_t>(std::countr_zero(word));
    at = at + 1 == words ? 0 : at + 1;
  }
  return channels_.size();
}

// Asks for the next turn of the data path, where there is something to send and a place for it.
void SdmaEngine::arm() {
  if (path_.armed) return;
  if (next_eligible() == channels_.size()) return;
  const bool full = reads_ >= parameters_.read_outstanding ||
                    pieces_.in_use() >= parameters_.read_outstanding + parameters_.write_outstanding;
  statistics_.buffer_full += full && !path_.full ? 1 : 0;
  path_.full = full;
  if (full) return;
  path_.armed = true;
  socket_.schedule(std::max(socket_.now(), path_.next_issue), kIssue, 0);
}

std::uint32_t SdmaEngine::Pieces::add(const Piece& piece) {
  if (free_.empty()) {
    pieces_.push_back(piece);
    return static_cast<std::uint32_t>(pieces_.size() - 1);
  }
  const std::uint32_t slot = free_.back();
  free_.pop_back();
  pieces_[slot] = piece;
  return slot;
}

// One request of the channel whose turn it is. A request crosses no 512 B boundary on either side.
void SdmaEngine::issue() {
  const std::size_t number = next_eligible();
  if (number == channels_.size()) return;  // a fault has ended the one that asked
  Channel& channel = channels_[number];
  last_channel_ = number;
  const std::uint64_t source = channel.record.source + channel.issued;
  const std::uint64_t destination = channel.record.destination + channel.issued;
  std::uint64_t bytes = std::min<std::uint64_t>(channel.record.bytes - channel.issued,
                                                channel.turns.request - source % channel.turns.request);
  if (channel.entry.operation == CM384_SDMA_COPY)
    bytes = std::min<std::uint64_t>(bytes, channel.turns.request - destination % channel.turns.request);
  const std::uint32_t slot =
      pieces_.add({static_cast<std::uint16_t>(number), static_cast<std::uint16_t>(bytes), source, destination,
                   sim::Payload{}});
  channel.issued += bytes;
  update_eligible(number);
  if (issued && channel.issued == channel.record.bytes) issued(channel.transaction);
  ++channel.outstanding;
  ++reads_;
  path_.next_issue = socket_.now() + interval_of(channel.turns.request);
  socket_.progressed();
  read(slot);
  arm();
}

void SdmaEngine::submit(std::uint32_t tag, std::uint64_t address, sim::Operation operation,
                        const sim::Payload& payload) {
  const Piece& piece = pieces_[tag & ~kWriteTag];
  sim::Request request;
  request.address = address;
  request.at = socket_.now();
  request.transaction = channels_[piece.channel].transaction;
  request.bytes = piece.bytes;
  request.tag = tag;
  request.operation = operation;
  request.lane = static_cast<std::uint8_t>(parameters_.service_level);
  request.payload = payload;
  socket_.submit(request);
}

void SdmaEngine::read(std::uint32_t slot) {
  Piece& piece = pieces_[slot];
  const Channel& channel = channels_[piece.channel];
  if (socket_.is_local(piece.source)) {
    ++statistics_.local_reads;
    // Only a prefetch is meant to leave its data in L2.
    const bool keep = channel.entry.operation == CM384_SDMA_PREFETCH;
    sim::PayloadPool& pool = socket_.payloads();
    piece.payload.chunk = pool.allocate();
    const Time at = socket_.read(cm384_gm_offset(piece.source), pool.bytes(piece.payload.chunk), piece.bytes,
                                 piece.payload.tags, keep);
    if (piece.payload.tags == sim::all_tags(piece.bytes)) pool.release(piece.payload);
    socket_.schedule(at, kData, slot);
    return;
  }
  ++statistics_.remote_reads;
  submit(slot, piece.source, sim::Operation::read, {});
}

void SdmaEngine::data(std::uint32_t slot) {
  Piece& piece = pieces_[slot];
  Channel& channel = channels_[piece.channel];
  --reads_;
  if (channel.record.first_data == Time{}) channel.record.first_data = socket_.now();
  channel.record.last_data = socket_.now();
  if (channel.entry.operation == CM384_SDMA_PREFETCH || channel.record.status != 0) {
    ++writes_;  // for acknowledged(), which takes it off
    return acknowledged(slot);
  }
  if (writes_ >= parameters_.write_outstanding) {
    unwritten_.push_back(slot);
  } else {
    write(slot);
  }
  arm();
}

void SdmaEngine::write(std::uint32_t slot) {
  Piece& piece = pieces_[slot];
  const Channel& channel = channels_[piece.channel];
  ++writes_;
  if (socket_.is_local(piece.destination)) {
    ++statistics_.local_writes;
    const std::byte* bytes =
        piece.payload.chunk == sim::kNoChunk ? nullptr : socket_.payloads().bytes(piece.payload.chunk);
    const Time at = socket_.write(cm384_gm_offset(piece.destination), bytes, piece.bytes, piece.payload.tags,
                                  channel.transaction);
    socket_.payloads().release(piece.payload);
    socket_.schedule(at, kAcknowledged, slot);
    return;
  }
  ++statistics_.remote_writes;
  submit(slot | kWriteTag, piece.destination, sim::Operation::write, std::exchange(piece.payload, {}));
}

void SdmaEngine::acknowledged(std::uint32_t slot) {
  Piece& piece = pieces_[slot];
  const std::size_t number = piece.channel;
  socket_.payloads().release(piece.payload);
  pieces_.release(slot);
  --writes_;
  --channels_[number].outstanding;
  if (!unwritten_.empty()) {
    const std::uint32_t next = unwritten_.front();
    unwritten_.pop_front();
    write(next);
  }
  arm();
  finish_if_done(number);
}

void SdmaEngine::completed(const sim::Completion& completion) {
  const bool written = (completion.tag & kWriteTag) != 0;
  const std::uint32_t slot = completion.tag & ~kWriteTag;
  Piece& piece = pieces_[slot];
  Channel& channel = channels_[piece.channel];
  if (completion.outcome != sim::Outcome::done)
    fail(channel, written ? CM384_STATUS_WRITE_FAULT : CM384_STATUS_READ_FAULT,
         written ? piece.destination : piece.source);
  if (written) return acknowledged(slot);
  piece.payload = completion.payload;
  data(slot);
}

}  // namespace cm384::npu
