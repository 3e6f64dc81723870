// One vector core (AIV) without its scalar unit: UBuffer, the pipes V, MTE2 and MTE3, flags and barriers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "hw/parameters/vector_core.h"
#include "hw/units.h"
#include "npu_core/core_socket.h"
#include "npu_core/pipe_instruction.h"
#include "npu_core/pipes/core_pipes.h"
#include "npu_core/pipes/pipe_set.h"
#include "npu_core/vector/ubuffer.h"
#include "sim/statistics.h"
#include "sim/transaction.h"

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

struct AivTables;

class Aiv final : public CorePipes {
 public:
  // `tables`: of the same parameters, for cores to share.
  Aiv(std::uint16_t core, const hw::VectorCore& vector, const hw::Mte& mte, const Clock& core_clock,
      CoreSocket& socket, std::shared_ptr<const AivTables> tables);
  Aiv(std::uint16_t core, const hw::VectorCore& vector, const hw::Mte& mte, const Clock& core_clock,
      CoreSocket& socket)
      : Aiv(core, vector, mte, core_clock, socket, tables(vector, mte, core_clock)) {}
  static std::shared_ptr<const AivTables> tables(const hw::VectorCore& vector, const hw::Mte& mte,
                                                 const Clock& core_clock);
  ~Aiv() override;
  Aiv(Aiv&&) noexcept;

  void set_options(const AivOptions& options);
  void add_observer(PipeObserver& observer) override;
  void mark_phase(std::uint32_t phase, std::int64_t cycle) const override;
  void copy(int pipe, const MteCopy& copy, Time ready) override;
  void forget_values() override;

  // Instructions of class SYNC, MTE, VECTOR, REDUCE or CONVERT.
  IssueAnswer issue(const PipeInstruction& instruction, std::int64_t cycle) override;
  IssueAnswer drain(std::int64_t cycle) override;
  void handle(std::uint32_t what, std::uint64_t argument, Time now) override;
  void completed(const sim::Completion& completion, Time now) override;
  void watched_write(Time at) override;
  void cross_core_flag(std::uint32_t flag, int count, Time at) override;
  void reset() override;

  // Direct access of the scalar unit to its UBuffer (loads and stores at CM384_UBUFFER_BASE).
  UBuffer& ubuffer();
  const UBuffer& ubuffer() const;
  LocalBuffer* scalar_buffer() override { return &ubuffer(); }
  void scalar_access(std::uint32_t offset, std::uint32_t bytes, bool write, std::uint64_t pc) override;

  std::string waiting_for(const PlaceText& place) const override;
  Standstill standstill() const override;
  bool checks_hazards() const;
  // pc of the last instruction a pipe (enum cm384_pipe) started; 0 for none.
  std::uint64_t last_pc(int pipe) const;
  // Grows by any progress of the core's pipes: for the detection of hangs.
  std::uint64_t progress() const;
  Places places() const override;
  void prefetch(int stage) const override;
  void prefetch_engine(std::uint32_t which, int stage) const override;
  void prefetch_completion(std::uint32_t tag) const override;

  const AivStatistics& statistics() const;
  void declare_statistics(sim::Statistics& to, const sim::StatisticPath& at) const override;
  std::uint16_t core() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cm384::npu
