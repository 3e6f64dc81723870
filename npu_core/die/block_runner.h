// Runs blocks in place of the programs of a die: implemented by a replay.
#pragma once

#include <cstdint>

#include "base/engine/transaction.h"
#include "npu_core/devices/scheduler/task_scheduler.h"

namespace cm384::npu {

class BlockRunner {
 public:
  // The scheduler starts a block; its runner reports the end to the scheduler.
  virtual void run_block(int die, const BlockStart& block) = 0;
  // The first request of a stream's copy leaves; returns the id of its transaction.
  virtual sim::TransactionId copy_begins(int die, std::uint32_t stream) = 0;

 protected:
  ~BlockRunner() = default;
};

}  // namespace cm384::npu
