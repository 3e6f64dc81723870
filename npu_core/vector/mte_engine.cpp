#include "npu_core/vector/mte_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "firmware/abi/memory_map.h"
#include "npu_core/vector/aiv.h"
#include "sim/error.h"

namespace cm384::npu {
namespace {

constexpr std::uint32_t kUnit = 128;  // grain of the local window: a sector

// Units of `kUnit` that a request touches; memory moves whole sectors.
std::uint32_t units_of(std::uint64_t address, std::uint32_t bytes) {
  return (static_cast<std::uint32_t>(address % kUnit) + bytes + kUnit - 1) / kUnit;
}

}  // namespace

MteEngine::MteEngine(bool reads, std::uint16_t core, std::uint32_t event, std::uint32_t tag_base,
                     const MteTiming& timing, CoreSocket& socket, UBuffer& ubuffer, AivStatistics& statistics)
    : reads_(reads),
      core_(core),
      event_(event),
      tag_base_(tag_base),
      timing_(timing),
      socket_(socket),
      ubuffer_(ubuffer),
      statistics_(statistics) {}

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
  if (reads_) ubuffer_.set_payload(copy_.ub, copy_.burst_bytes, false);
  plan_piece();
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
    const std::int64_t needed = std::int64_t{units_of(request_address_, piece_)} * kUnit;
    bool waited = false;
    while (window_bytes_ != 0 && window_bytes_ + needed > timing_.window_bytes) {
      const std::uint64_t oldest = window_[window_first_++ & (window_.size() - 1)];
      window_bytes_ -= static_cast<std::int64_t>(oldest & 7) * kUnit;
      const auto freed = static_cast<std::int64_t>(oldest >> 3);
      waited = waited || freed > at;
      at = std::max(at, freed);
    }
    statistics_.window_full += waited ? 1 : 0;
  } else if (remote_outstanding_ >= timing_.remote_window) {
    waits_for_window_ = true;
    cursor_ps_ = at;
    ++statistics_.window_full;
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
    transaction_ = socket_.new_transaction(core_, {copy_.gm, bytes, copy_.operation});
    entry(sequence_).transaction = transaction_;
  }
  local_ ? local_request(now) : remote_request(now);
  cursor_ps_ = now.ps + timing_.interval_ps;
  return next_piece(now);
}

bool MteEngine::next_piece(Time now) {
  done_ += piece_;
  if (done_ < copy_.burst_bytes) {
    plan_piece();
  } else {
    if (reads_ && copy_.padded() != copy_.burst_bytes) {
      ubuffer_.fill_zero(copy_.ub + copy_.burst_bytes, copy_.padded() - copy_.burst_bytes);
    }
    if (--copy_.bursts == 0) {
      busy_ = false;
      last_request_ = now;
      (reads_ ? statistics_.mte2_busy_ps : statistics_.mte3_busy_ps) +=
          static_cast<std::uint64_t>(now.ps - turn_ps_ + timing_.interval_ps);
      Mark& m = entry(sequence_);
      m.issued = true;
      if (m.outstanding == 0) socket_.transaction_completed(core_, m.transaction, Time{m.complete_ps});
      return true;
    }
    copy_.gm += static_cast<std::uint64_t>(copy_.gm_stride);
    copy_.ub += copy_.ub_stride;
    begin_burst();
  }
  schedule_next(cursor_ps_);
  return false;
}

void MteEngine::local_request(Time now) {
  std::byte buffer[sim::kRequestBytes];
  const LocalAccess access{cm384_gm_offset(request_address_), piece_, core_, !reads_, copy_.allocate, now};
  const std::uint32_t ub = copy_.ub + done_;
  Time done;
  if (reads_) {
    sim::TagMask tags = 0;
    done = socket_.access(access, buffer, tags);
    read_into(ub, buffer, piece_, tags);
    ++statistics_.local_read_requests;
    statistics_.read_bytes += piece_;
  } else {
    sim::TagMask tags = ubuffer_.tags(ub, piece_);
    const bool add = copy_.operation != sim::Operation::write;
    if (tags != sim::all_tags(piece_)) {
      ubuffer_.load(ub, buffer, piece_);
    }
    if (add) {
      // There is nothing to add where the addends are payload without values.
      if (tags != 0) std::memset(buffer, 0, piece_);
      done = socket_.atomic_add(access, buffer, copy_.operation == sim::Operation::atomic_add_f32);
    } else {
      done = socket_.access(access, buffer, tags);
    }
    ++statistics_.local_write_requests;
    statistics_.written_bytes += piece_;
  }
  Mark& m = entry(sequence_);
  m.complete_ps = std::max(m.complete_ps, done.ps);
  window_freed_ps_ = std::max(window_freed_ps_, done.ps);
  if (window_.empty()) {
    window_.resize(std::bit_ceil(static_cast<std::size_t>(timing_.window_bytes / kUnit) + 4));
  }
  const std::uint32_t units = units_of(request_address_, piece_);
  window_[window_last_++ & (window_.size() - 1)] = static_cast<std::uint64_t>(window_freed_ps_) << 3 | units;
  window_bytes_ += units * kUnit;
}

void MteEngine::remote_request(Time now) {
  if (free_slots_.empty() && slots_.size() < timing_.remote_window) {
    free_slots_.push_back(static_cast<std::uint16_t>(slots_.size()));
    slots_.emplace_back();
  }
  const std::uint16_t slot = free_slots_.back();
  free_slots_.pop_back();
  const std::uint32_t ub = copy_.ub + done_;
  slots_[slot] = {ub, piece_, sequence_};
  ++entry(sequence_).outstanding;
  ++remote_outstanding_;

  sim::Request request;
  request.address = request_address_;
  request.at = now;
  request.transaction = transaction_;
  request.bytes = piece_;
  request.tag = static_cast<std::uint32_t>(epoch_ << 16) | (tag_base_ + slot);
  request.operation = copy_.operation;
  request.core = core_;
  if (reads_) {
    ++statistics_.remote_read_requests;
    statistics_.read_bytes += piece_;
  } else {
    request.payload.tags = ubuffer_.tags(ub, piece_);
    if (request.payload.tags != sim::all_tags(piece_)) {
      request.payload.chunk = socket_.payloads().allocate();
      ubuffer_.load(ub, socket_.payloads().bytes(request.payload.chunk), piece_);
    }
    ++statistics_.remote_write_requests;
    statistics_.written_bytes += piece_;
  }
  socket_.submit(request);
}

bool MteEngine::completed(const sim::Completion& completion, Time now) {
  sim::Payload payload = completion.payload;
  if (completion.tag >> 16 != (epoch_ & 0xffff)) {  // of a run that was given up
    socket_.payloads().release(payload);
    return false;
  }
  const auto slot = static_cast<std::uint16_t>((completion.tag & 0xffff) - tag_base_);
  const RemoteSlot place = slots_[slot];
  Mark& m = entry(place.sequence);
  if (completion.outcome != sim::Outcome::done) {
    throw MachineError(
        fmt::format("pc {:#x}: {} outside the memory of its target", m.pc, reads_ ? "read" : "write"));
  }
  if (reads_) {
    const std::byte* bytes =
        payload.chunk == sim::kNoChunk ? nullptr : socket_.payloads().bytes(payload.chunk);
    read_into(place.ub, bytes, place.bytes, payload.tags);
  }
  socket_.payloads().release(payload);
  --m.outstanding;
  m.complete_ps = std::max(m.complete_ps, now.ps);
  if (m.issued && m.outstanding == 0) {
    socket_.transaction_completed(core_, m.transaction, Time{m.complete_ps});
  }
  free_slots_.push_back(slot);
  --remote_outstanding_;
  if (!waits_for_window_) return false;
  waits_for_window_ = false;
  if (cursor_ps_ <= now.ps) return request(now);
  socket_.schedule(core_, Time{cursor_ps_}, event_, epoch_);
  return false;
}

void MteEngine::read_into(std::uint32_t ub, const std::byte* bytes, std::uint32_t count, sim::TagMask tags) {
  if (bytes != nullptr && tags != sim::all_tags(count)) ubuffer_.store(ub, bytes, count);
  ubuffer_.add_tags(ub, count, tags);
}

void MteEngine::reset() {
  ++epoch_;
  busy_ = waits_for_window_ = false;
  window_first_ = window_last_ = 0;
  window_bytes_ = 0;
  slots_.clear();
  free_slots_.clear();
  remote_outstanding_ = 0;
  first_ = last_ = 0;
}

}  // namespace cm384::npu
