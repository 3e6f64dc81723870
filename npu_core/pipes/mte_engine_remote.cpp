// Requests to memory outside the die, and what comes back.
#include <fmt/format.h>

#include <algorithm>

#include "firmware/abi/memory_map.h"
#include "npu_core/pipes/mte_engine.h"
#include "npu_core/pipes/pipe_fault.h"

namespace cm384::npu {
namespace {

// The whole 32 B blocks that an access touches.
std::uint64_t block_begin(std::uint64_t address) {
  return address - address % sim::kBlockBytes;
}
std::uint32_t covered(std::uint64_t address, std::uint32_t bytes) {
  const auto lead = static_cast<std::uint32_t>(address % sim::kBlockBytes);
  return (lead + bytes + sim::kBlockBytes - 1) / sim::kBlockBytes * sim::kBlockBytes;
}

}  // namespace

void MteEngine::remote_request(Time now) {
  if (free_slots_.empty() && slots_.size() < timing_.remote_window) {
    free_slots_.push_back(static_cast<std::uint16_t>(slots_.size()));
    slots_.emplace_back();
  }
  const std::uint16_t slot = free_slots_.back();
  free_slots_.pop_back();
  RemoteSlot& place = slots_[slot];
  place = {.local = local_place(),
           .bytes = static_cast<std::uint16_t>(piece_),
           .lane = copy_.lane,
           .merge = merges() ? Merge::reads : Merge::none,
           .sequence = sequence_,
           .address = request_address_,
           .block_stride = copy_.block_stride};
  ++entry(sequence_).outstanding;
  ++remote_outstanding_;
  ++counters_.remote_requests;
  counters_.bytes += piece_;
  if (place.merge == Merge::none) return submit_remote(slot, copy_.operation, now);
  merging_ = true;
  ++counters_.merged;
  submit_remote(slot, sim::Operation::read, now);
}

// The planned request does. By the RDMA plane a write is of any number of bytes.
bool MteEngine::merges() const {
  return timing_.merges && copy_.operation == sim::Operation::write &&
         cm384_gm_via_rdma(request_address_) == 0 && (request_address_ | piece_) % sim::kBlockBytes != 0;
}

bool MteEngine::remote_waits() const {
  return remote_outstanding_ >= timing_.remote_window || (merging_ && merges());
}

// The slot's request; of one that merges the read of the whole blocks that it covers.
void MteEngine::submit_remote(std::uint16_t slot, sim::Operation operation, Time now) {
  const RemoteSlot& place = slots_[slot];
  sim::Request request;
  request.address = place.address;
  request.at = now;
  request.transaction = entry(place.sequence).transaction;
  request.bytes = place.bytes;
  request.tag = tag_of(slot);
  request.operation = operation;
  request.core = core_;
  request.lane = place.lane;
  if (place.merge == Merge::reads) {
    request.address = block_begin(place.address);
    request.bytes = covered(place.address, place.bytes);
  } else if (!reads_) {
    request.payload.tags = buffer_.tags(place.local, place.bytes);
    if (request.payload.tags != sim::all_tags(place.bytes)) {
      request.payload.chunk = socket_.payloads().allocate();
      buffer_.load(place.local, socket_.payloads().bytes(request.payload.chunk), place.bytes);
    }
  }
  socket_.submit(request);
}

// The whole blocks that were read, with the write's bytes in their place, go back.
void MteEngine::write_merged(std::uint16_t slot, const sim::Payload& old, Time now) {
  RemoteSlot& place = slots_[slot];
  place.merge = Merge::writes;
  sim::Request request;
  request.address = block_begin(place.address);
  request.at = now;
  request.transaction = entry(place.sequence).transaction;
  request.bytes = covered(place.address, place.bytes);
  request.tag = tag_of(slot);
  request.operation = sim::Operation::write;
  request.core = core_;
  request.lane = place.lane;
  request.payload = old;
  const auto lead = static_cast<std::uint32_t>(place.address - request.address);
  for (std::uint32_t done = 0; done < place.bytes;) {
    const std::uint32_t at = lead + done;
    const std::uint32_t n = std::min(place.bytes - done, sim::kBlockBytes - at % sim::kBlockBytes);
    if (buffer_.tags(place.local + done, n) != 0) request.payload.tags |= 1u << at / sim::kBlockBytes;
    done += n;
  }
  if (request.payload.tags == sim::all_tags(request.bytes)) {
    socket_.payloads().release(request.payload);
  } else {
    if (request.payload.chunk == sim::kNoChunk) {
      request.payload.chunk = socket_.payloads().allocate();
      std::memset(socket_.payloads().bytes(request.payload.chunk), 0, request.bytes);
    }
    buffer_.load(place.local, socket_.payloads().bytes(request.payload.chunk) + lead, place.bytes);
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
    fault(m.pc, fmt::format("{} outside the memory of its target", reads_ ? "read" : "write"));
  }
  if (place.merge == Merge::reads) {
    write_merged(slot, payload, now);
    return false;
  }
  if (reads_) {
    const std::byte* bytes =
        payload.chunk == sim::kNoChunk ? nullptr : socket_.payloads().bytes(payload.chunk);
    read_into(place, bytes, payload.tags);
  }
  socket_.payloads().release(payload);
  --m.outstanding;
  m.complete_ps = std::max(m.complete_ps, now.ps);
  if (m.issued && m.outstanding == 0) {
    socket_.transaction_completed(core_, m.transaction, Time{m.complete_ps});
  }
  free_slots_.push_back(slot);
  --remote_outstanding_;
  if (place.merge == Merge::writes) merging_ = false;
  if (!waits_for_window_ || remote_waits()) return false;
  waits_for_window_ = false;
  if (cursor_ps_ <= now.ps) return request(now);
  socket_.schedule(core_, Time{cursor_ps_}, event_, epoch_);
  return false;
}

}  // namespace cm384::npu
