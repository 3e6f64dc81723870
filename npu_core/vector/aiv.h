// One vector core (AIV) without its scalar unit: UBuffer, the pipes V, MTE2 and MTE3, flags and barriers.
//
// The scalar unit runs ahead of the die in local time and hands over pipe instructions with issue(). A pipe
// computes the start and finish of its instructions from time stamps (core cycles) as soon as what they
// depend on is known; only memory requests and unresolved dependencies become events of the die. Every call
// is made from the die's own activation; nothing blocks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "hw/parameters/vector_core.h"
#include "hw/units.h"
#include "npu_core/core_socket.h"
#include "npu_core/pipe_instruction.h"
#include "npu_core/vector/ubuffer.h"
#include "sim/statistics.h"
#include "sim/transaction.h"

namespace cm384::npu {

// Counters of one vector core since construction. Cycles are core cycles.
struct AivStatistics {
  std::uint64_t vector_instructions = 0, vector_repeats = 0, vector_busy_cycles = 0;
  std::uint64_t bank_conflict_cycles = 0;
  std::uint64_t mte2_instructions = 0, mte3_instructions = 0;
  std::uint64_t local_read_requests = 0, local_write_requests = 0;
  std::uint64_t remote_read_requests = 0, remote_write_requests = 0;
  std::uint64_t read_bytes = 0, written_bytes = 0;  // of the kernel's bursts, without padding and rounding
  std::uint64_t window_full = 0;                    // requests that waited for a place in a window
  std::uint64_t queue_full = 0;                     // pushes that found their pipe's queue full
  std::uint64_t scalar_flag_waits = 0;              // waits of the scalar unit that cost it time
  std::uint64_t flags_set = 0;
  std::uint64_t vector_wait_cycles = 0;  // V stood at a wait_flag whose flag was not set
  std::uint64_t mte2_wait_cycles = 0, mte3_wait_cycles = 0;
  std::uint64_t mte2_busy_ps = 0,
                mte3_busy_ps = 0;   // from an instruction's turn to issue to its last request
  std::uint64_t skipped_polls = 0;  // turns of polling loops that poll elision left out
};

struct AivOptions {
  bool elide_polls = true;     // CM384_POLL_MARK parks the scalar unit
  bool check_hazards = false;  // a MachineError where pipes meet in the UBuffer without a flag between them
};

class Aiv {
 public:
  Aiv(std::uint16_t core, const hw::VectorCore& vector, const hw::Mte& mte, const Clock& core_clock,
      CoreSocket& socket);
  ~Aiv();
  Aiv(Aiv&&) noexcept;

  void set_options(const AivOptions& options);

  // The scalar unit, at its local core cycle, hands over an instruction of class SYNC, MTE, VECTOR, REDUCE or
  // CONVERT. Answered with the cycle at which the scalar unit goes on (it takes one issue cycle, or waits for
  // a place in the queue, a flag, a barrier), or parked: then socket.wake_scalar() comes and the scalar unit
  // issues the same instruction again at that cycle. Throws MachineError, naming the pc, for an operand
  // outside the UBuffer, a misaligned one, an operation that does not exist for a type, a flag set twice.
  IssueAnswer issue(const PipeInstruction& instruction, std::int64_t cycle);

  // For the kernel's exit: all pipes idle, all accesses complete. Same pattern as issue().
  IssueAnswer drain(std::int64_t cycle);

  // An event asked for by socket.schedule() (`what` and `argument` come back as they were given).
  void handle(std::uint32_t what, std::uint64_t argument, Time now);
  // A request submitted to memory outside the die has completed. The payload is released here.
  void completed(const sim::Completion& completion, Time now);
  // A write has touched the range given to socket.watch().
  void watched_write(Time at);
  // The die has added `count` to the core's cross-core flag counter `flag` (0..15).
  void cross_core_flag(std::uint32_t flag, int count, Time at);

  // Before a launch: flags, masks, strides, queues and windows as after power-on. The UBuffer keeps its bytes
  // and tags. Must only be called when drained (or after a run that was given up).
  void reset();

  // Direct access of the scalar unit to its UBuffer (loads and stores at CM384_UBUFFER_BASE).
  UBuffer& ubuffer();
  const UBuffer& ubuffer() const;
  // Tells the hazard checker of such an access; does nothing when it is off.
  void scalar_access(std::uint32_t offset, std::uint32_t bytes, bool write, std::uint64_t pc);

  // For hang reports: one line a pipe that waits ("MTE2 waits for flag V->MTE2 id 3 since 12.345 us, pc
  // 0x..."), empty when nothing waits.
  std::string waiting_for() const;
  // pc of the last instruction a pipe (enum cm384_pipe) started; 0 for none.
  std::uint64_t last_pc(int pipe) const;
  // Grows by any progress of the core's pipes: for the detection of hangs.
  std::uint64_t progress() const;

  // Where the state of an MTE engine stands, for prefetching: events of `what` 0 and 1 go to engine `what`.
  static constexpr std::size_t kEngines = 2;
  const void* engine_state(std::size_t what) const;

  const AivStatistics& statistics() const;
  void declare_statistics(sim::Statistics& to, const sim::StatisticPath& at) const;
  std::uint16_t core() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cm384::npu
