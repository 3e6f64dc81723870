// The inside of an Aiv: the V pipe's clockwork and two MTE engines.
#pragma once

#include "npu_core/pipes/mte_engine.h"
#include "npu_core/pipes/pipe_set.h"
#include "npu_core/vector/aiv.h"
#include "npu_core/vector/vector_pipes.h"
#include "npu_core/vector/vector_unit.h"

namespace cm384::npu {

struct Aiv::State final : PipeSet {
  State(std::uint16_t core_number, const hw::VectorCore& vector, const hw::Mte& mte, const Clock& core_clock,
        CoreSocket& die);

  void start_work(int pipe, QueuedInstruction& entry) override;
  MteCopy prepare_copy(int pipe, const QueuedInstruction& entry) override;
  void check_hazards(const VectorInstruction& v);
  void check_hazards(int pipe, const MteCopy& copy);

  AivStatistics statistics;
  const VectorCostTable costs;
  const MteTiming read_timing, write_timing;
  UBuffer ubuffer;
  MteEngine mte2, mte3;
};

}  // namespace cm384::npu
