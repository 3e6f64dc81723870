// What loops that poll without a mark need of the pipes (npu_core/cluster/poll_finder.h).
#include <algorithm>
#include <boost/container_hash/hash.hpp>
#include <cstdint>

#include "firmware/abi/memory_map.h"
#include "npu_core/pipes/pipe_set.h"

namespace cm384::npu {
namespace {

// Bytes from the first that a copy reads to the last: bursts of `c`, as firmware/abi/isa.h has it.
std::uint64_t span_of(const PipeInstruction& copy, std::uint64_t stride) {
  const std::uint64_t bytes = copy.c & 0xffffffff, bursts = std::max<std::uint64_t>(1, copy.c >> 32);
  return bursts == 1 ? bytes : (bursts - 1) * stride + bytes;
}

}  // namespace

bool PipeSet::can_watch(const PipeInstruction& copy) const {
  // A loop that marks its turns watches by itself.
  return elide_polls && !watching && cm384_is_gm(copy.b) && socket.is_local(copy.b);
}

bool PipeSet::settled() {
  std::int64_t done = 0;
  return later_sets.empty() && idle(done);
}

std::uint64_t PipeSet::digest() const {
  std::size_t sum = 0;
  for (const std::uint64_t word : {mask_low, mask_high, source_stride, destination_stride, padding,
                                   std::uint64_t{atomic}, std::uint64_t{allocate}})
    boost::hash_combine(sum, word);
  for (const auto& group : flags) {
    if (group == nullptr) continue;
    for (const Flag& f : group->flags) boost::hash_combine(sum, f.count);
  }
  return sum;
}

void PipeSet::begin_poll_turn(const PipeInstruction& copy, std::int64_t cycle) {
  const bool first = watch(cm384_gm_offset(copy.b), span_of(copy, source_stride));
  for (PipeObserver* o : observers) o->poll_turn(first, cycle);
  watched = false;
  mark_cycle = cycle;
}

void PipeSet::park_polling(const PipeInstruction& copy, std::int64_t cycle) {
  parked_pc = copy.pc;
  poll_period = cycle - mark_cycle;
  park(ParkedOn::poll, 0, cycle);
}

}  // namespace cm384::npu
