// The inside of an Aiv: queues, flags, the V pipe's clockwork, two MTE engines, and why the scalar unit
// waits.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "npu_core/vector/aiv.h"
#include "npu_core/vector/hazard_checker.h"
#include "npu_core/vector/mte_engine.h"
#include "npu_core/vector/vector_unit.h"

namespace cm384::npu {

// A flag's sets that nobody has waited for yet. Pipes work out their time stamps ahead of each other, so more
// than one may be known; that the next one does not come before the wait is checked when the wait is known.
struct Flag {
  static constexpr std::uint32_t kDepth = 4;
  std::array<std::int64_t, kDepth> cycle{};
  std::array<std::uint64_t, kDepth> pc{};
  std::uint8_t first = 0;
  std::uint8_t count = 0;

  std::int64_t front() const { return cycle[first]; }
  std::uint32_t second() const { return (first + 1u) % kDepth; }
};

struct QueuedInstruction {
  PipeInstruction instruction;
  std::int64_t arrival = 0;         // cycle at which it is in the pipe's queue
  std::uint64_t low = 0, high = 0;  // vector: mask; MTE: source and destination stride
  bool allocate = true;             // MTE: in L2
};

// A pipe's bounded in-order queue. An instruction's place frees when it leaves for execution.
struct PipeQueue {
  std::vector<QueuedInstruction> slots;  // ring
  std::vector<std::int64_t> left;        // cycle at which instruction n left, at n mod depth
  std::uint64_t head = 0, tail = 0;
  std::int64_t ready = 0;  // the next instruction starts no earlier
  std::uint64_t last_pc = 0;

  bool empty() const { return head == tail; }
  QueuedInstruction& front() { return slots[head % slots.size()]; }
  const QueuedInstruction& front() const { return slots[head % slots.size()]; }
};

enum class ParkedOn : std::uint8_t { nothing, queue, flag, flag_room, all_pipes, cross_core, poll };

struct Aiv::State {
  enum Event : std::uint32_t { kMte2Request, kMte3Request, kFlagCheck, kCrossCoreSet };
  enum MarkKind : std::uint8_t { kCopy, kSetFlag, kCrossSet };
  static constexpr std::uint32_t kMte3Tags = 0x1000;

  State(std::uint16_t core_number, const hw::VectorCore& vector, const hw::Mte& mte, const Clock& core_clock,
        CoreSocket& die);

  // aiv.cpp: what the scalar unit asks for
  IssueAnswer issue_sync(const PipeInstruction& in, std::int64_t cycle);
  IssueAnswer push(int pipe, const PipeInstruction& in, std::int64_t cycle);
  IssueAnswer wait_all(std::int64_t cycle);
  IssueAnswer scalar_wait(std::uint32_t flag_number, std::int64_t cycle);
  IssueAnswer scalar_set(const PipeInstruction& in, std::uint32_t flag_number, std::int64_t cycle);
  IssueAnswer cross_core_wait(const PipeInstruction& in, std::int64_t cycle);
  IssueAnswer poll_mark(const PipeInstruction& in, std::int64_t cycle);
  IssueAnswer park(ParkedOn why, std::uint32_t operand, std::int64_t cycle);
  void wake(std::int64_t cycle);
  void wake_if_possible();

  // aiv_pipes.cpp: resolving what is queued
  void advance(std::uint32_t pipes);
  void run_vector();
  void run_mte(int pipe);
  void retire(int pipe);
  void leave(int pipe, std::int64_t cycle);
  void start_vector(QueuedInstruction& q);
  void start_copy(int pipe, const QueuedInstruction& q);
  bool wait_flag(int pipe, const QueuedInstruction& q);
  bool idle(std::int64_t& cycle);
  void check_hazards(const VectorInstruction& v);
  void check_hazards(int pipe, const MteCopy& copy);

  Flag& flag(std::uint32_t number);
  bool flag_full(std::uint32_t number) { return flag(number).count == Flag::kDepth; }
  void set_flag(std::uint32_t number, std::int64_t cycle, std::uint64_t pc);
  void consume_flag(std::uint32_t number, std::int64_t cycle, std::uint64_t pc);
  void check_flag(std::uint32_t number, Time now);
  void fire_cross_core(std::uint64_t operand, std::int64_t cycle);

  MteEngine& engine(int pipe) { return pipe == kPipeMte2 ? mte2 : mte3; }
  std::int64_t tick(Time t) const { return clock.tick_at_or_after(t); }
  bool timely(std::uint64_t argument) const { return argument >> 32 == (epoch & 0xffffffffu); }
  std::uint64_t argument(std::uint64_t low) const { return epoch << 32 | low; }

  const std::uint16_t core;
  const std::uint32_t depth;
  CoreSocket& socket;
  const Clock clock;
  const VectorCostTable costs;
  const MteTiming read_timing, write_timing;
  const std::int64_t setup[2];  // cycles, MTE2 and MTE3

  AivOptions options;
  AivStatistics statistics;
  UBuffer ubuffer;
  MteEngine mte2, mte3;
  std::unique_ptr<HazardChecker> hazards;

  std::array<PipeQueue, kPipes> queue;  // S has none
  std::int64_t vector_free = 0;         // the vector unit can take the next repeat
  std::int64_t vector_complete = 0;     // all results are visible
  std::uint32_t pending = 0;            // pipes to look at again

  std::uint64_t mask_low = ~std::uint64_t{0}, mask_high = ~std::uint64_t{0};
  std::uint64_t source_stride = 0, destination_stride = 0;
  bool allocate = true;

  std::array<std::unique_ptr<std::array<Flag, 8>>, kPipes * kPipes> flags;
  std::array<std::uint8_t, 16> cross_count{};
  std::array<std::int64_t, 16> cross_cycle{};

  ParkedOn parked_on = ParkedOn::nothing;
  std::uint32_t parked_operand = 0;
  std::int64_t parked_cycle = 0;
  std::uint64_t parked_pc = 0;

  bool watching = false, watched_written = false;
  std::uint64_t watch_offset = 0, watch_bytes = 0;
  std::int64_t mark_cycle = 0, poll_period = 0;

  std::uint64_t epoch = 0;
  std::uint64_t progress = 0;
};

// From enum cm384_pipe to Pipe; -1 for a pipe a vector core does not have.
int pipe_of(std::uint64_t isa_pipe);
// Number of the flag that a set_flag or wait_flag operand names, (source * 4 + destination) * 8 + id. Throws
// MachineError.
std::uint32_t flag_number(const PipeInstruction& in);
std::string flag_text(std::uint32_t number);

}  // namespace cm384::npu
