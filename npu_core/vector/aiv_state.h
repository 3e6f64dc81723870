// The inside of an Aiv: the V pipe's clockwork and two MTE engines.
#pragma once

#include "npu_core/pipes/mte_engine.h"
#include "npu_core/pipes/pipe_set.h"
#include "npu_core/vector/aiv.h"
#include "npu_core/vector/vector_pipes.h"
#include "npu_core/vector/vector_unit.h"

namespace cm384::npu {

// What follows from the machine description alone: once for all cores of a die.
struct AivTables {
  AivTables(const hw::VectorCore& vector, const hw::Mte& mte, const Clock& core_clock);

  const VectorCostTable costs;
  const MteTiming read, write;
};

struct Aiv::State final : PipeSet {
  State(std::uint16_t core_number, const hw::VectorCore& vector, const hw::Mte& mte, const Clock& core_clock,
        CoreSocket& die, std::shared_ptr<const AivTables> shared);

  void start_work(int pipe, QueuedInstruction& entry) override;
  MteCopy prepare_copy(int pipe, const QueuedInstruction& entry) override;
  void check_hazards(const VectorInstruction& v);
  void check_hazards(int pipe, const MteCopy& copy);

  AivStatistics statistics;
  const std::shared_ptr<const AivTables> tables;
  UBuffer ubuffer;
  MteEngine mte2, mte3;
};

}  // namespace cm384::npu
