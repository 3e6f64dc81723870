// Scalar accesses to the local buffer that wait for pipes (local_order.h).
#include <algorithm>
#include <utility>

#include "firmware/abi/isa.h"
#include "npu_core/pipes/pipe_set.h"

namespace cm384::npu {

void PipeSet::set_order(bool on) {
  order = on ? std::make_unique<LocalOrder>() : nullptr;
}

// When all that pipes do with the bytes is complete, or kUnknown; `pipe`: the one that takes longest.
std::int64_t PipeSet::order_complete(const LocalRange& bytes, int& pipe) const {
  std::int64_t last = 0;
  for (int p = 1; p < pipes; ++p) {
    const PipeQueue& q = queue[static_cast<std::size_t>(p)];
    std::int64_t complete = order->complete(p, bytes);
    for (std::uint32_t n = 0; n < q.count && complete != LocalOrder::kUnknown; ++n) {
      const QueuedInstruction& entry = q.at(n);
      if (entry.instruction.instruction_class == CM384_CLASS_SYNC) continue;
      if (touched(p, entry).meet(bytes)) complete = LocalOrder::kUnknown;
    }
    if (complete <= last) continue;
    last = complete;
    pipe = p;
  }
  return last;
}

// Costs what a wait for a flag costs that the pipe would set: the time until then, and the cycle of the wait.
// Where nothing is under way the compiler's flags would cost their two instructions, which are left out.
IssueAnswer PipeSet::scalar_access(const LocalRange& bytes, std::uint64_t pc, std::int64_t cycle) {
  parked_on = ParkedOn::nothing;
  if (!order) return IssueAnswer::at(cycle);
  int pipe = 0;
  const std::int64_t complete = order_complete(bytes, pipe);
  if (complete == LocalOrder::kUnknown) {
    parked_access = bytes;
    parked_pc = static_cast<std::uint32_t>(pc);
    if (access_asked < 0) access_asked = cycle;
    return park(ParkedOn::order, static_cast<std::uint32_t>(pipe), cycle);
  }
  const std::int64_t from = access_asked < 0 ? cycle : std::exchange(access_asked, -1);
  if (complete <= from) return IssueAnswer::at(cycle);
  const std::int64_t done = std::max(cycle, complete);
  order->waited({.pc = static_cast<std::uint32_t>(pc), .pipe = pipe, .write = bytes.write}, done + 1 - from);
  for (PipeObserver* o : observers) o->scalar_waited_for_pipe(pipe, cycle, done);
  return IssueAnswer::at(done + 1);
}

}  // namespace cm384::npu
