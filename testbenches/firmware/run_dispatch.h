// Kernel `dispatch` on a small machine, for the tests.
#pragma once

#include <string>
#include <vector>

#include "base/text/units.h"
#include "workloads/operators/reference/dispatch_reference.h"

namespace cm384::firmware {

struct DispatchRunOptions {
  int blocks = 8;
  bool control = false;  // payload is tagged, not moved
  bool elide_polls = true;
  int calls = 1;  // launches one after another on all ranks, on the same windows
};

struct DispatchRun {
  std::string difference;         // of the last call's outputs, or windows, from the reference; empty: none
  std::vector<Time> kernel_ends;  // last retired instruction, by call and rank
};

// Throws MachineError where the kernel faults or hangs. The hazard checker is on.
DispatchRun run_dispatch(const reference::DispatchCase& dispatch, const DispatchRunOptions& options);

}  // namespace cm384::firmware
