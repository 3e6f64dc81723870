#include "npu_core/pipes/mte_engine.h"

#include <algorithm>
#include <bit>

#include "base/engine/prefetch.h"
#include "firmware/abi/memory_map.h"

namespace cm384::npu {
MteTiming mte_timing(const Clock& clock, double overhead, double interval, Bytes window, int remote,
                     std::string_view partial_write) {
  const auto ps = [&clock](double cycles) {
    const auto hundredths = static_cast<std::int64_t>(cycles * 100.0 + 0.5);
    return (hundredths * clock.numerator() + 50 * clock.denominator()) / (100 * clock.denominator());
  };
  // The overhead is counted from the time at which the next request could have left.
  return {ps(overhead),
          ps(interval),
          window.count,
          static_cast<std::uint32_t>(remote),
          0,
          partial_write == "merge"};
}

MteEngine::MteEngine(bool reads, std::uint16_t core, std::uint32_t event, std::uint32_t tag_base,
                     const MteTiming& timing, CoreSocket& socket, LocalBuffer& buffer,
                     const MteCounters& counters)
    : reads_(reads),
      core_(core),
      event_(event),
      tag_base_(tag_base),
      timing_(timing),
      socket_(socket),
      buffer_(buffer),
      counters_(counters) {}

MteEngine::Mark& MteEngine::append() {
  if (last_ - first_ == marks_.size()) {
    std::vector<Mark> larger(std::max<std::size_t>(8, marks_.size() * 2));
    for (std::uint64_t s = first_; s != last_; ++s) larger[s & (larger.size() - 1)] = entry(s);
    marks_.swap(larger);
  }
  Mark& m = entry(last_++);
  m = Mark{};
  return m;
}

void MteEngine::mark(std::uint8_t kind, std::uint64_t operand, std::uint64_t pc, std::int64_t cycle) {
  Mark& m = append();
  m.kind = kind;
  m.operand = operand;
  m.pc = pc;
  m.cycle = cycle;
}

const MteEngine::Mark* MteEngine::front_mark() {
  while (first_ != last_) {
    const Mark& m = entry(first_);
    if (m.kind != 0) return &m;
    if (!m.issued || m.outstanding != 0) return nullptr;
    complete_ps_ = std::max(complete_ps_, m.complete_ps);
    ++first_;
  }
  return nullptr;
}

bool MteEngine::all_complete() {
  front_mark();
  return first_ == last_;
}

std::uint64_t MteEngine::oldest_pc() {
  return first_ == last_ ? 0 : entry(first_).pc;
}

void MteEngine::start(const MteCopy& copy, Time ready) {
  // A polling loop copies from one place again and again; anything else is progress.
  if (copy.gm != last_start_) socket_.progressed();
  last_start_ = copy.gm;
  copy_ = copy;
  busy_ = true;
  transaction_ = 0;
  sequence_ = last_;
  append().pc = copy.pc;
  begin_burst();
  const std::int64_t first = std::max(ready.ps, cursor_ps_ + timing_.overhead_ps);
  turn_ps_ = first;
  schedule_next(first);
}

void MteEngine::begin_burst() {
  done_ = 0;
  local_ = socket_.is_local(copy_.gm);
  if (reads_) prepare_burst();
  plan_piece();
}

// What arrives decides what is payload.
void MteEngine::prepare_burst() {
  if (copy_.block_stride == sim::kBlockBytes)
    return buffer_.set_payload(copy_.local, copy_.pad_left + copy_.burst_bytes + copy_.pad_right, false);
  if (!buffer_.tagged()) return;
  for (std::uint32_t b = 0; b < copy_.padded() / sim::kBlockBytes; ++b) {
    buffer_.set_payload(copy_.local + b * copy_.block_stride, sim::kBlockBytes, false);
  }
}

// The last block of a burst is filled up with zeros, or what stands around it with a value.
void MteEngine::pad_burst() {
  if (copy_.pad_size != 0) [[unlikely]] {
    const auto fill = [this](std::uint32_t begin, std::uint32_t end) {
      for (std::uint32_t at = begin; at < end; at += copy_.pad_size)
        buffer_.store(copy_.local + at, reinterpret_cast<const std::byte*>(&copy_.pad_value), copy_.pad_size);
    };
    fill(0, copy_.pad_left);
    return fill(copy_.pad_left + copy_.burst_bytes, copy_.padded());
  }
  const std::uint32_t padding = copy_.padded() - copy_.burst_bytes;
  if (padding == 0) return;
  const std::uint32_t last = copy_.padded() / sim::kBlockBytes - 1;
  buffer_.fill_zero(copy_.local + last * copy_.block_stride + sim::kBlockBytes - padding, padding);
}

// Where the planned request's first byte goes or comes from.
std::uint32_t MteEngine::local_place() const {
  return copy_.local + copy_.pad_left + done_ / sim::kBlockBytes * copy_.block_stride +
         done_ % sim::kBlockBytes;
}

void MteEngine::plan_piece() {
  const std::uint64_t address = copy_.gm + done_;
  const auto in_block = static_cast<std::uint32_t>(address % sim::kRequestBytes);
  piece_ = std::min(copy_.burst_bytes - done_, sim::kRequestBytes - in_block);
  request_address_ = address;
}

// Asks for the event of the planned request; a full remote window has none, its completion goes on instead.
void MteEngine::schedule_next(std::int64_t earliest_ps) {
  std::int64_t at = std::max(earliest_ps, socket_.now().ps);
  if (local_) {
    const std::int64_t wanted = at;
    at = window_.room(RequestWindow::sectors_of(request_address_, piece_), timing_.window_bytes, at);
    counters_.window_full += at > wanted ? 1 : 0;
  } else if (remote_waits()) {
    waits_for_window_ = true;
    cursor_ps_ = at;
    ++counters_.window_full;
    return;
  }
  cursor_ps_ = at;
  if (local_) socket_.expect(cm384_gm_offset(request_address_));
  socket_.schedule(core_, Time{at}, event_, epoch_);
}

bool MteEngine::request(Time now) {
  if (!busy_) return false;
  if (transaction_ == 0) {
    const auto bytes = std::uint64_t{copy_.burst_bytes} * copy_.bursts;
    transaction_ = socket_.new_transaction(
        core_, {copy_.gm, bytes, copy_.operation, copy_.burst_bytes, copy_.bursts, copy_.gm_stride,
                copy_.allocate, copy_.transaction, static_cast<std::uint8_t>(event_)});
    entry(sequence_).transaction = transaction_;
  }
  local_ ? local_request(now) : remote_request(now);
  cursor_ps_ = now.ps + std::max(timing_.interval_ps,
                                 RequestWindow::sectors_of(request_address_, piece_) * timing_.sector_ps);
  return next_piece(now);
}

bool MteEngine::next_piece(Time now) {
  done_ += piece_;
  if (done_ < copy_.burst_bytes) {
    plan_piece();
  } else {
    if (reads_) pad_burst();
    if (--copy_.bursts == 0) {
      busy_ = false;
      last_request_ = now;
      counters_.busy_ps += static_cast<std::uint64_t>(now.ps - turn_ps_ + timing_.interval_ps);
      Mark& m = entry(sequence_);
      m.issued = true;
      if (m.outstanding == 0) socket_.transaction_completed(core_, m.transaction, Time{m.complete_ps});
      return true;
    }
    copy_.gm += static_cast<std::uint64_t>(copy_.gm_stride);
    copy_.local += copy_.local_stride;
    begin_burst();
  }
  schedule_next(cursor_ps_);
  return false;
}

void MteEngine::local_request(Time now) {
  std::byte buffer[sim::kRequestBytes];
  const LocalAccess access{cm384_gm_offset(request_address_), piece_, core_, !reads_, copy_.allocate, now};
  const std::uint32_t local = local_place();
  Time done;
  if (reads_) {
    sim::TagMask tags = 0;
    done = socket_.access(access, buffer, tags);
    read_into(
        {.local = local, .bytes = static_cast<std::uint16_t>(piece_), .block_stride = copy_.block_stride},
        buffer, tags);
    if (copy_.block_stride == sim::kBlockBytes) buffer_.loaded(local + piece_, piece_);
  } else {
    sim::TagMask tags = buffer_.tags(local, piece_);
    const bool add = copy_.operation != sim::Operation::write;
    if (tags != sim::all_tags(piece_)) {
      buffer_.load(local, buffer, piece_);
    }
    if (add) {
      // There is nothing to add where the addends are payload without values.
      if (tags != 0) std::memset(buffer, 0, piece_);
      done = socket_.atomic_add(access, buffer, copy_.operation);
    } else {
      done = socket_.access(access, buffer, tags);
    }
  }
  ++counters_.local_requests;
  counters_.bytes += piece_;
  Mark& m = entry(sequence_);
  m.complete_ps = std::max(m.complete_ps, done.ps);
  window_.add(RequestWindow::sectors_of(request_address_, piece_), done.ps);
}

void MteEngine::read_into(const RemoteSlot& place, const std::byte* bytes, sim::TagMask tags) {
  const bool plain = bytes != nullptr && tags != sim::all_tags(place.bytes);
  if (place.block_stride == sim::kBlockBytes) {
    if (plain) buffer_.store(place.local, bytes, place.bytes);
    buffer_.add_tags(place.local, place.bytes, tags);
    return;
  }
  // Blocks of the buffer; those of the tags count from the request's first byte and may lie across two.
  std::uint32_t at = place.local;
  for (std::uint32_t done = 0; done < place.bytes;) {
    const std::uint32_t n = std::min(place.bytes - done, sim::kBlockBytes - at % sim::kBlockBytes);
    if (plain) buffer_.store(at, bytes + done, n);
    const std::uint32_t first = done / sim::kBlockBytes, last = (done + n - 1) / sim::kBlockBytes;
    if ((tags >> first & 1u) != 0 || (tags >> last & 1u) != 0) buffer_.set_payload(at, n, true);
    at += (at + n) % sim::kBlockBytes == 0 ? place.block_stride - at % sim::kBlockBytes : n;
    done += n;
  }
}

void MteEngine::prefetch(int stage) const {
  if (stage == 1) {
    if (!marks_.empty()) {
      sim::prefetch(&entry(first_), sizeof(Mark));
      sim::prefetch(&entry(last_), sizeof(Mark));
    }
    window_.prefetch();
    if (!free_slots_.empty()) __builtin_prefetch(&free_slots_.back(), 1);
    return;
  }
  if (!busy_) return;
  buffer_.prefetch(local_place());
  if (local_) {
    socket_.expect(cm384_gm_offset(request_address_));
  } else if (!free_slots_.empty()) {
    __builtin_prefetch(&slots_[free_slots_.back()], 1);
  }
}

void MteEngine::prefetch_completion(std::uint32_t tag) const {
  const std::size_t slot = (tag & 0xffff) - tag_base_;
  if (slot < slots_.size()) __builtin_prefetch(&slots_[slot]);
  if (!marks_.empty()) __builtin_prefetch(&entry(first_), 1);
}

void MteEngine::reset() {
  ++epoch_;
  busy_ = waits_for_window_ = false;
  window_.clear();
  slots_.clear();
  free_slots_.clear();
  remote_outstanding_ = 0;
  merging_ = false;
  first_ = last_ = 0;
}

}  // namespace cm384::npu
