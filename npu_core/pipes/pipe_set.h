// What the pipes of every kind of core share: queues, flags, barriers, cross-core flags, copies through MTE
// engines, poll marks, and why the scalar unit waits. A kind of core derives from it and adds its units.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "base/engine/statistics.h"
#include "base/text/units.h"
#include "npu_core/core_socket.h"
#include "npu_core/pipes/core_pipes.h"
#include "npu_core/pipes/hazard_checker.h"
#include "npu_core/pipes/local_order.h"
#include "npu_core/pipes/mte_engine.h"
#include "npu_core/pipes/pipe_fault.h"
#include "npu_core/pipes/pipe_observer.h"
#include "npu_core/pipes/pipe_queue.h"

namespace cm384::npu {

// What every kind of core counts. Cycles are core cycles.
struct PipeStatistics {
  std::uint64_t window_full = 0;        // requests that waited for a place in a window of an engine
  std::uint64_t merged_writes = 0;      // remote writes of part of a 32 B block
  std::uint64_t queue_full = 0;         // pushes that found their pipe's queue full
  std::uint64_t scalar_flag_waits = 0;  // waits of the scalar unit that cost it time
  std::uint64_t flags_set = 0;
  std::uint64_t skipped_polls = 0;  // turns of polling loops that poll elision left out, with their requests
};

// Tells them to the registry.
void declare_pipe_statistics(sim::Statistics& to, const sim::StatisticPath& at, const PipeStatistics& s);

// Cycles a pipe had nothing left to do and stood at a wait_flag, by the pipe that was to set the flag.
using PipeWaits = std::array<std::uint64_t, kMostPipes>;

enum class ParkedOn : std::uint8_t { nothing, queue, flag, flag_room, all_pipes, cross_core, poll, order };

class PipeSet : public CorePipes {
 public:
  // Events. Those of engines come first, in the order in which the core's kind adds them.
  enum Event : std::uint32_t { kEngine0, kEngine1, kEngine2, kCrossCoreSet };

  // `kind`: "a vector core". `pipes`: in the order of their numbers, S first.
  PipeSet(std::uint16_t core_number, const char* kind, const HazardSpace& space, std::uint32_t queue_depth,
          const Clock& core_clock, CoreSocket& die, PipeStatistics& counted);
  // pipe_set.cpp: what the scalar unit asks for
  // Before each instruction: the scalar unit is running again, whatever it waited for.
  void unpark() { parked_on = ParkedOn::nothing; }
  IssueAnswer issue_sync(const PipeInstruction& in, std::int64_t cycle);
  IssueAnswer push(int pipe, const PipeInstruction& in, std::int64_t cycle);
  IssueAnswer drain(std::int64_t cycle) final;
  void watched_write(Time at) final;
  void cross_core_flag(std::uint32_t flag, int count, Time at) final;

  // pipe_set_order.cpp: the order between the scalar unit and the pipes (local_order.h), off unless asked for
  void set_order(bool on) final;
  void set_hazard_listener(HazardListener* listener) final { hazard_listener = listener; }
  const OrderWaits* order_waits() const final { return order ? &order->waits() : nullptr; }
  IssueAnswer scalar_access(const LocalRange& bytes, std::uint64_t pc, std::int64_t cycle) final;

  // pipe_set_poll.cpp: loops that poll without a mark
  // The copy reads the die's own memory, which may be watched for it.
  bool can_watch(const PipeInstruction& copy) const;
  // Whether no instruction or request is in flight.
  bool settled();
  // A digest of the state that instructions leave behind in the pipes.
  std::uint64_t digest() const;
  // The copy begins a turn of such a loop; what it reads is watched from here on.
  void begin_poll_turn(const PipeInstruction& copy, std::int64_t cycle);
  bool poll_input_written() const { return watched; }
  // The turns that would follow do what the last one did, until what is watched is written.
  void park_polling(const PipeInstruction& copy, std::int64_t cycle);
  void end_polling();
  void reset() final;
  void copy(int pipe, const MteCopy& copy, Time ready) final { engine[pipe]->start(copy, ready); }

  // pipe_set_run.cpp: resolving what is queued
  void handle(std::uint32_t what, std::uint64_t argument, Time now) final;
  void completed(const sim::Completion& completion, Time now) final;
  void advance(std::uint32_t which);
  void retire(int pipe, std::int64_t cycle);

  // pipe_set_report.cpp
  void add_observer(PipeObserver& observer) final { observers.push_back(&observer); }
  void mark_phase(std::uint32_t phase, std::int64_t cycle) const final;
  Places places() const override;
  void prefetch(int stage) const final;
  void prefetch_engine(std::uint32_t which, int stage) const final;
  void prefetch_completion(std::uint32_t tag) const final;
  std::string waiting_for(const PlaceText& place) const final;
  Standstill standstill() const final;
  // -1 for a pipe that this kind of core does not have.
  int pipe_of(std::uint64_t isa_pipe) const {
    return isa_pipe < pipe_by_isa.size() ? pipe_by_isa[isa_pipe] : -1;
  }
  // Number of the flag that a set_flag or wait_flag operand names, (source * pipes + destination) * 8 + id.
  // Throws PipeFault.
  std::uint32_t flag_number(const PipeInstruction& in) const;
  const char* pipe_name(int pipe) const { return space.pipes[static_cast<std::size_t>(pipe)].name; }

  void set_hazards(bool on);

  const std::uint16_t core;
  const char* const kind;
  const HazardSpace space;
  const int pipes;
  const std::uint32_t depth;
  CoreSocket& socket;
  const Clock clock;
  PipeStatistics& counted;

  std::unique_ptr<HazardChecker> hazards;
  HazardListener* hazard_listener = nullptr;
  std::unique_ptr<LocalOrder> order;
  bool elide_polls = true;
  std::vector<PipeObserver*> observers;

  std::array<PipeQueue, kMostPipes> queue;               // S has none
  std::array<MteEngine*, kMostPipes> engine{};           // of pipes that copy
  std::array<std::int64_t, kMostPipes> setup{};          // of copies, cycles
  std::array<std::uint64_t*, kMostPipes> wait_cycles{};  // stood at a wait_flag whose flag was not set
  PipeWaits* waits = nullptr;                            // of each pipe, where the kind of core counts them
  std::uint64_t mask_low = ~std::uint64_t{0}, mask_high = ~std::uint64_t{0};  // of vector instructions
  std::uint64_t source_stride = 0, destination_stride = 0;

 protected:
  void step(PipeStep::Kind which, int pipe, const QueuedInstruction& q, std::int64_t own, std::int64_t start,
            std::int64_t end, std::int64_t left, const MteCopy* copy = nullptr,
            const VectorWork& vector = {}) const;
  enum MarkKind : std::uint8_t { kCopy, kSetFlag, kCrossSet, kOrdered };

  void add_engine(int pipe, MteEngine& made, std::uint32_t event);
  // Whether an instruction of a pipe with an engine is a copy; what is not is start_work's.
  virtual bool copies(const PipeInstruction& /*in*/) const { return true; }
  // Work that needs no engine: the unit computes its time stamps and performs it; calls retire().
  virtual void start_work(int pipe, QueuedInstruction& entry) = 0;
  // The copy an instruction of a pipe with an engine makes, checked; its hazards reported.
  virtual MteCopy prepare_copy(int pipe, const QueuedInstruction& entry) = 0;

  // What an instruction of the pipe other than a synchronisation touches in the buffer of the scalar unit.
  virtual LocalRanges touched(int /*pipe*/, const QueuedInstruction& /*entry*/) const { return {}; }

  // No bytes, or no bursts: such a copy does nothing, and no pipe sees it.
  static bool copies_nothing(const PipeInstruction& copy) {
    return (copy.c & 0xffffffff) == 0 || copy.c >> 32 == 0;
  }
  std::uint8_t atomic_mode() const { return atomic; }  // enum cm384_atomic
  std::int64_t tick(Time t) const { return clock.tick_at_or_after(t); }

 private:
  IssueAnswer scalar_wait(std::uint32_t flag_number, std::int64_t cycle);
  IssueAnswer scalar_set(std::uint32_t flag_number, std::int64_t cycle);
  IssueAnswer cross_core_wait(const PipeInstruction& in, std::int64_t cycle);
  IssueAnswer poll_mark(const PipeInstruction& in, std::int64_t cycle);
  bool watch(std::uint64_t offset, std::uint64_t bytes);
  IssueAnswer park(ParkedOn why, std::uint32_t operand, std::int64_t cycle);
  void wake(std::int64_t cycle);
  void wake_if_possible();

  std::int64_t order_complete(const LocalRange& bytes, int& pipe) const;

  void run_work(int pipe);
  void run_copies(int pipe);
  void start_copy(int pipe, const QueuedInstruction& entry);
  void issued(int pipe, Time now);
  void retire(int pipe);
  bool wait_flag(int pipe, const QueuedInstruction& entry);
  bool idle(std::int64_t& cycle);

  Flag& flag(std::uint32_t number);
  bool flag_full(std::uint32_t number) { return flag(number).count == Flag::kMost; }
  int flag_source(std::uint32_t number) const { return static_cast<int>(number / 8) / pipes; }
  int flag_destination(std::uint32_t number) const { return static_cast<int>(number / 8) % pipes; }
  std::string flag_text(std::uint32_t number) const;
  // The second oldest set of a flag that has several.
  std::vector<LaterSet>::iterator second_set(std::uint32_t number);
  void set_flag(std::uint32_t number, std::int64_t cycle);
  void consume_flag(std::uint32_t number);
  void fire_cross_core(int pipe, std::uint64_t operand, std::int64_t cycle);

  bool timely(std::uint64_t argument) const { return argument >> 32 == (epoch & 0xffffffffu); }
  std::uint64_t argument(std::uint64_t low) const { return epoch << 32 | low; }

  std::array<int, 3> engine_pipe{};  // by event
  std::array<std::int8_t, 8> pipe_by_isa{};
  std::uint32_t pending = 0;  // pipes to look at again
  bool allocate = true;
  std::uint8_t atomic = 0;    // enum cm384_atomic
  std::uint64_t padding = 0;  // as CM384_SET_PADDING has it

  // By source * pipes + destination; and what was set again before it was waited for, oldest first: seldom
  // anything.
  std::array<std::unique_ptr<FlagGroup>, kMostPipes * kMostPipes> flags;
  std::vector<LaterSet> later_sets;
  std::array<std::uint8_t, 16> cross_count{};
  std::array<std::int64_t, 16> cross_cycle{};

  ParkedOn parked_on = ParkedOn::nothing;
  std::uint32_t parked_operand = 0;
  std::int64_t parked_cycle = 0;
  std::uint32_t parked_pc = 0;
  LocalRange parked_access;        // ParkedOn::order
  std::int64_t access_asked = -1;  // a scalar access has parked: since when

  bool watching = false, watched = false;
  std::uint64_t watch_offset = 0, watch_bytes = 0;
  std::int64_t mark_cycle = 0, poll_period = 0;

  std::uint64_t epoch = 0;
};

}  // namespace cm384::npu
