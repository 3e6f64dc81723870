// Queues, channels and descriptors; sdma_copy.cpp has the data path.
#include "npu_core/devices/sdma/sdma_engine.h"

#include <fmt/format.h>

#include <algorithm>

#include "firmware/abi/memory_map.h"

namespace cm384::npu {

SdmaEngine::SdmaEngine(const hw::Sdma& parameters, std::size_t queues, DeviceSocket& socket,
                       std::uint32_t request_bytes)
    : parameters_(parameters),
      request_bytes_(request_bytes),
      socket_(socket),
      queues_(queues),
      channels_(static_cast<std::size_t>(parameters.channels)),
      eligible_((channels_.size() + 63) / 64) {}

void SdmaEngine::set_up(std::size_t queue, const QueueRing& ring) {
  queues_[queue] = Queue{ring, Time{}, false};
}

void SdmaEngine::doorbell(std::size_t number, std::uint32_t tail) {
  if (number >= queues_.size() || !queues_[number].ring.exists()) {
    ++statistics_.refused_doorbells;
    return;
  }
  Queue& queue = queues_[number];
  if (!queue.ring.ring(tail)) {
    ++statistics_.refused_doorbells;
    if (!queue.ring.completions_full()) queue.ring.complete(socket_, tail, CM384_STATUS_QUEUE_RANGE, 0);
    return;
  }
  queue.rung = socket_.now();
  arbitrate();
}

void SdmaEngine::completions_taken(std::size_t number, std::uint32_t count) {
  if (number >= queues_.size() || !queues_[number].ring.taken(count)) {
    ++statistics_.refused_doorbells;
    return;
  }
  for (std::size_t c = 0; c < channels_.size(); ++c) {
    if (!channels_[c].stalled || channels_[c].record.queue != number) continue;
    channels_[c].stalled = false;
    complete(c);
  }
}

void SdmaEngine::handle(std::uint32_t what, std::uint64_t argument) {
  const auto slot = static_cast<std::uint32_t>(argument);
  switch (static_cast<What>(what)) {
    case kFetched:
      return fetched(argument);
    case kTranslated:
      return translated(argument);
    case kIssue:
      path_.armed = false;
      return issue();
    case kData:
      return data(slot);
    case kAcknowledged:
      return acknowledged(slot);
    case kEnded:
      return end(argument);
    case kFree:
      channels_[argument].busy = false;
      arbitrate();
      return start_replayed();
  }
}

// Free channels take ready queues in turn.
void SdmaEngine::arbitrate() {
  if (queues_.empty()) return;
  for (std::size_t c = 0; c < channels_.size(); ++c) {
    if (channels_[c].busy) continue;
    std::size_t queue = last_queue_;
    std::size_t looked_at = 0;
    do {
      queue = queue + 1 == queues_.size() ? 0 : queue + 1;
      const Queue& q = queues_[queue];
      if (!q.active && !q.ring.empty()) break;
    } while (++looked_at != queues_.size());
    if (looked_at == queues_.size()) return;
    last_queue_ = queue;
    fetch_entry(c, queue);
  }
}

void SdmaEngine::fetch_entry(std::size_t number, std::size_t queue) {
  Channel& channel = channels_[number];
  Queue& q = queues_[queue];
  q.active = true;
  channel = Channel{};
  channel.busy = true;
  channel.turns = {request_bytes_, request_bytes_};
  channel.record.queue = static_cast<std::uint16_t>(queue);
  channel.record.channel = static_cast<std::uint16_t>(number);
  channel.record.rung = q.rung;
  channel.record.taken = socket_.now();
  const Time here = q.ring.fetch(socket_, channel.entry, channel.plain);
  socket_.schedule(here + parameters_.parse_latency, kFetched, number);
}

void SdmaEngine::fetched(std::size_t number) {
  Channel& channel = channels_[number];
  const cm384_task& entry = channel.entry;
  SdmaRecord& record = channel.record;
  record.fetched = socket_.now();
  record.number = entry.number;
  record.source = entry.u.copy.source;
  record.destination = entry.u.copy.destination;
  record.bytes = entry.u.copy.bytes;
  ++statistics_.descriptors;
  socket_.progressed();
  const bool known = entry.operation == CM384_SDMA_COPY || entry.operation == CM384_SDMA_PREFETCH;
  if (!channel.plain || entry.type != CM384_TASK_SDMA || !known || record.bytes == 0) {
    record.bytes = 0;
    fail(channel, CM384_STATUS_BAD_ENTRY, 0);
    return complete(number);
  }
  socket_.schedule(socket_.now() + parameters_.translation_latency, kTranslated, number);
}

// True where the own die's page table has no translation for all of it. What another die has is its to say.
bool SdmaEngine::unmapped(std::uint64_t address, std::uint64_t bytes) const {
  if (!cm384_is_gm(address) || !cm384_is_gm(address + bytes - 1)) return true;
  if (cm384_gm_unit(address) != cm384_gm_unit(address + bytes - 1)) return true;
  return socket_.is_local(address) && !socket_.contains(cm384_gm_offset(address), bytes);
}

void SdmaEngine::translated(std::size_t number) {
  Channel& channel = channels_[number];
  SdmaRecord& record = channel.record;
  record.translated = socket_.now();
  const bool copy = channel.entry.operation == CM384_SDMA_COPY;
  if (unmapped(record.source, record.bytes) || (!copy && !socket_.is_local(record.source))) {
    fail(channel, CM384_STATUS_READ_FAULT, record.source);
  } else if (copy && unmapped(record.destination, record.bytes)) {
    fail(channel, CM384_STATUS_WRITE_FAULT, record.destination);
  }
  if (record.status != 0) return complete(number);
  // What a trace shows is where the copy goes out of the die, if it does.
  const bool fetches = copy && !socket_.is_local(record.source);
  channel.transaction =
      socket_.new_transaction(fetches || !copy ? record.source : record.destination, record.bytes,
                              fetches || !copy ? sim::Operation::read : sim::Operation::write,
                              {record.queue, record.channel, record.number, record.rung, record.taken});
  channel.copying = true;
  update_eligible(number);
  arm();
}

// The first error stays.
void SdmaEngine::fail(Channel& channel, std::uint32_t status, std::uint64_t address) {
  if (channel.record.status != 0) return;
  channel.record.status = status;
  channel.record.fault = address;
  update_eligible(static_cast<std::size_t>(&channel - channels_.data()));
}

void SdmaEngine::finish_if_done(std::size_t number) {
  Channel& channel = channels_[number];
  if (channel.outstanding != 0 || channel.wants_issue()) return;
  channel.copying = false;
  update_eligible(number);
  channel.record.last_ack = socket_.now();
  socket_.transaction_completed(channel.transaction);
  if (channel.record.status == 0) statistics_.bytes += channel.record.bytes;
  if (!channel.replayed) return complete(number);
  channel.busy = false;
  start_replayed();
  arbitrate();
}

void SdmaEngine::complete(std::size_t number) {
  Channel& channel = channels_[number];
  QueueRing& ring = queues_[channel.record.queue].ring;
  const SdmaRecord& record = channel.record;
  const bool asked = (channel.entry.flags & CM384_TASK_WRITE_COMPLETION) != 0;
  const bool told = asked || record.status != 0;
  if (told && ring.completions_full()) {
    channel.stalled = true;
    return;
  }
  if (record.status != 0) ++statistics_.errors;
  ring.advance();
  const Time at = told ? ring.complete(socket_, record.number, record.status, record.fault) : socket_.now();
  socket_.schedule(at, kEnded, number);
}

void SdmaEngine::end(std::size_t number) {
  Channel& channel = channels_[number];
  channel.record.ended = socket_.now();
  queues_[channel.record.queue].active = false;
  statistics_.channel_busy_ps += static_cast<std::uint64_t>((socket_.now() - channel.record.taken).ps);
  socket_.progressed();
  // The channel stays taken for the gap; its queue may go on with another one.
  socket_.schedule(socket_.now() + parameters_.descriptor_gap, kFree, number);
  if (ended) ended(channel.record);
  if (client_ != nullptr && channel.record.queue >= first_client_queue_) client_->copy_ended(channel.record);
}

std::string SdmaEngine::report() const {
  std::string text;
  for (const Channel& channel : channels_) {
    if (!channel.busy) continue;
    const SdmaRecord& r = channel.record;
    text += fmt::format(
        "SDMA channel {}: queue {}, {} of {} B from {:#x} to {:#x} issued, {} requests out{}, "
        "since {:.3f} us\n",
        r.channel, r.queue, channel.issued, r.bytes, r.source, r.destination, channel.outstanding,
        channel.stalled ? ", waits for room among its completions" : "", r.taken.us());
  }
  return text;
}

void SdmaEngine::declare_statistics(sim::Statistics& to, const sim::StatisticPath& at) const {
  const SdmaStatistics& s = statistics_;
  to.declare(at, "descriptors", "descriptors", "fetched by the SDMA engine", s.descriptors);
  to.declare(at, "errors", "descriptors", "that ended with an error", s.errors);
  to.declare(at, "refused_doorbells", "writes", "to doorbells that were out of range", s.refused_doorbells);
  to.declare(at, "bytes", "B", "copied or prefetched by descriptors that ended well", s.bytes);
  to.declare(at, "local_reads", "requests", "to the own die's memory, at most 512 B each", s.local_reads);
  to.declare(at, "remote_reads", "requests", "to other memory, at most 512 B each", s.remote_reads);
  to.declare(at, "local_writes", "requests", "to the own die's memory, at most 512 B each", s.local_writes);
  to.declare(at, "remote_writes", "requests", "to other memory, at most 512 B each", s.remote_writes);
  to.declare(at, "buffer_full", "times", "that the data path stopped because its bounds were reached",
             s.buffer_full);
  to.declare(at, "channel_busy_ps", "ps", "from a channel's taking a descriptor to its end, of all channels",
             s.channel_busy_ps);
}

}  // namespace cm384::npu
