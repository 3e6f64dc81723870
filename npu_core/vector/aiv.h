// One vector core (AIV) without its scalar unit: UBuffer, the pipes V, MTE2 and MTE3, flags and barriers.
#pragma once

#include <cstdint>
#include <memory>

#include "base/engine/statistics.h"
#include "base/engine/transaction.h"
#include "base/text/units.h"
#include "hw/parameters/vector_core.h"
#include "npu_core/core_socket.h"
#include "npu_core/pipes/mte_engine.h"
#include "npu_core/pipes/pipe_instruction.h"
#include "npu_core/pipes/pipe_set.h"
#include "npu_core/vector/ubuffer.h"
#include "npu_core/vector/vector_pipes.h"
#include "npu_core/vector/vector_unit.h"

namespace cm384::npu {

// Counters of one vector core since construction. Cycles are core cycles.
struct AivStatistics : PipeStatistics {
  std::uint64_t vector_instructions = 0, vector_repeats = 0, vector_busy_cycles = 0;
  std::uint64_t bank_conflict_cycles = 0;
  std::uint64_t mte2_instructions = 0, mte3_instructions = 0;
  std::uint64_t local_read_requests = 0, local_write_requests = 0;
  std::uint64_t remote_read_requests = 0, remote_write_requests = 0;
  std::uint64_t read_bytes = 0, written_bytes = 0;  // of the kernel's bursts, without padding and rounding
  std::uint64_t vector_wait_cycles = 0;             // V stood at a wait_flag whose flag was not set
  std::uint64_t mte2_wait_cycles = 0, mte3_wait_cycles = 0;
  std::uint64_t mte2_busy_ps = 0,
                mte3_busy_ps = 0;  // from an instruction's turn to issue to its last request
};

struct AivOptions {
  bool elide_polls = true;     // CM384_POLL_MARK parks the scalar unit
  bool check_hazards = false;  // a MachineError where pipes meet in the UBuffer without a flag between them
};

// What follows from the machine description alone: once for all cores of a die.
struct AivTables {
  AivTables(const hw::VectorCore& vector, const hw::Mte& mte, const Clock& core_clock);

  const VectorCostTable costs;
  const MteTiming read, write;
};

class Aiv final : public PipeSet {
 public:
  // `tables`: of the same parameters, for cores to share.
  Aiv(std::uint16_t core_number, const hw::VectorCore& vector, const hw::Mte& mte, const Clock& core_clock,
      CoreSocket& die, std::shared_ptr<const AivTables> tables);
  Aiv(std::uint16_t core_number, const hw::VectorCore& vector, const hw::Mte& mte, const Clock& core_clock,
      CoreSocket& die)
      : Aiv(core_number, vector, mte, core_clock, die,
            std::make_shared<const AivTables>(vector, mte, core_clock)) {}

  void set_options(const AivOptions& options);
  bool checks_hazards() const { return hazards != nullptr; }

  // Instructions of class SYNC, MTE, VECTOR, REDUCE or CONVERT.
  IssueAnswer issue(const PipeInstruction& instruction, std::int64_t cycle) override;
  void forget_values() override { ubuffer_.set_payload(0, kUBufferBytes, true); }

  // Direct access of the scalar unit to its UBuffer (loads and stores at CM384_UBUFFER_BASE).
  UBuffer& ubuffer() { return ubuffer_; }
  const UBuffer& ubuffer() const { return ubuffer_; }
  LocalBuffer* scalar_buffer() override { return &ubuffer_; }
  void check_scalar_access(std::uint32_t offset, std::uint32_t bytes, bool write, std::uint64_t pc) override;

  std::uint64_t merged(std::uint64_t pc) override;

  Places places() const override;
  const AivStatistics& statistics() const { return statistics_; }
  void declare_statistics(sim::Statistics& to, const sim::StatisticPath& at) const override;

 private:
  void start_work(int pipe, QueuedInstruction& entry) override;
  MteCopy prepare_copy(int pipe, const QueuedInstruction& entry) override;
  LocalRanges touched(int pipe, const QueuedInstruction& entry) const override;
  void check_hazards(const VectorInstruction& v);
  void check_hazards(int pipe, const MteCopy& copy);

  AivStatistics statistics_;
  std::uint64_t merged_ = 0;  // as CM384_CSR_MERGED has it
  const std::shared_ptr<const AivTables> tables_;
  UBuffer ubuffer_;
  MteEngine mte2_, mte3_;
};

}  // namespace cm384::npu
