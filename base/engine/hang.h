// Ways a simulated machine ends without a fault of what it runs: a run can be told apart by them.
#pragma once

#include "base/text/error.h"

namespace cm384::sim {

// Nothing that is under way can make progress.
class MachineHang : public MachineError {
 public:
  using MachineError::MachineError;
};

// The run has not ended within the simulated time that it was given.
class TimeLimitReached : public MachineError {
 public:
  using MachineError::MachineError;
};

}  // namespace cm384::sim
