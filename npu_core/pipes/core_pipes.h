// The pipes of one core as its scalar unit and its die see them. Implemented for vector cores by
// npu_core/vector, for cube cores by npu_core/cube.
//
// The scalar unit runs ahead of the die in local time and hands over pipe instructions with issue(). A pipe
// computes the start and finish of its instructions from time stamps (core cycles) as soon as what they
// depend on is known; only memory requests and unresolved dependencies become events of the die. Every call
// is made from the die's own activation; nothing blocks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/engine/statistics.h"
#include "base/engine/transaction.h"
#include "base/text/units.h"
#include "npu_core/pipes/local_buffer.h"
#include "npu_core/pipes/local_order.h"
#include "npu_core/pipes/pipe_fault.h"
#include "npu_core/pipes/pipe_instruction.h"

namespace cm384::npu {

struct MteCopy;
class HazardListener;
class PipeObserver;

// What a core waits for when nothing of it is under way, and who could end that.
struct Standstill {
  enum class On : std::uint8_t {
    nothing,  // it runs, or something of it is under way
    own,      // its own pipes: nobody else can end that
    launch,   // a cross-core flag: another block of its launch
    memory,   // a write to the die's memory: anybody
  };
  On on = On::nothing;
  Time since;
};

class CorePipes {
 public:
  virtual ~CorePipes() = default;

  // The scalar unit, at its local core cycle, hands over a pipe instruction. Answered with the cycle at which
  // the scalar unit goes on (it takes one issue cycle, or waits for a place in the queue, a flag, a barrier),
  // or parked: then socket.wake_scalar() comes and the scalar unit issues the same instruction again at that
  // cycle. Throws PipeFault for an operand outside its buffer, a misaligned one, an
  // operation that does not exist for a type or on this kind of core.
  virtual IssueAnswer issue(const PipeInstruction& instruction, std::int64_t cycle) = 0;
  // For the kernel's exit: all pipes idle, all accesses complete. Same pattern as issue().
  virtual IssueAnswer drain(std::int64_t cycle) = 0;

  // An event asked for by socket.schedule() (`what` and `argument` come back as they were given).
  virtual void handle(std::uint32_t what, std::uint64_t argument, Time now) = 0;
  // A request submitted to memory outside the die has completed. The payload is released here.
  virtual void completed(const sim::Completion& completion, Time now) = 0;
  // A write has touched the range given to socket.watch().
  virtual void watched_write(Time at) = 0;
  // The die has added `count` to the core's cross-core flag counter `flag` (0..15).
  virtual void cross_core_flag(std::uint32_t flag, int count, Time at) = 0;

  // Before a launch: flags, masks, strides, queues and windows as after power-on. Local buffers keep their
  // bytes and tags. Must only be called when drained (or after a run that was given up).
  virtual void reset() = 0;

  // Adds an observer, from the next block on. The core must be idle; the observer must outlive its last
  // block.
  virtual void add_observer(PipeObserver& observer) = 0;
  // The scalar unit has reached a phase mark of its kernel.
  virtual void mark_phase(std::uint32_t phase, std::int64_t cycle) const = 0;

  // For replay, in place of a program: the engine of `pipe` takes a copy whose first request may leave at
  // `ready`. Requires that the engine has none in hand. handle() goes on with it.
  virtual void copy(int pipe, const MteCopy& copy, Time ready) = 0;
  // All of the core's local memory is payload from now on: what a replay moves has no bytes.
  virtual void forget_values() = 0;

  // The buffer that the scalar unit reaches at CM384_UBUFFER_BASE; null where a core has none.
  virtual LocalBuffer* scalar_buffer() { return nullptr; }
  // Tells the hazard checker of such an access; does nothing when it is off.
  virtual void check_scalar_access(std::uint32_t /*offset*/, std::uint32_t /*bytes*/, bool /*write*/,
                                   std::uint64_t /*pc*/) {}

  // From the next block on scalar accesses wait for pipes that touch their bytes (local_order.h). The core
  // must be idle.
  virtual void set_order(bool on) = 0;
  // Hears of hazards, where they are looked for; null: they are thrown. From the next block on.
  virtual void set_hazard_listener(HazardListener* listener) = 0;
  // The waits of the block, while its accesses are ordered; null otherwise.
  virtual const OrderWaits* order_waits() const = 0;
  // Before a scalar access to the local buffer: answered as issue(), at once when it is not ordered.
  virtual IssueAnswer scalar_access(const LocalRange& bytes, std::uint64_t pc, std::int64_t cycle) = 0;

  // CM384_CSR_MERGED, read by the instruction at `pc`. 0 where there is no vector unit.
  virtual std::uint64_t merged(std::uint64_t /*pc*/) { return 0; }

  // For hang reports: one line per pipe that waits ("MTE2 waits for flag V->MTE2 id 3 since 12.345 us,
  // Compute at hello.cpp:42, pc 0x80000124"), empty when nothing waits.
  virtual std::string waiting_for(const PlaceText& place) const = 0;
  // For hang detection: what the core waits for.
  virtual Standstill standstill() const = 0;
  // For asking the host's cache. Where the state of the pipes and of each engine stands; null for no engine.
  struct Places {
    const void* pipes = nullptr;
    std::size_t bytes = 0;  // of the pipes' state
    std::array<const void*, kEngines> engine{};
  };
  virtual Places places() const = 0;
  // Asks for what the core's next events will touch beyond that, in stages of which each follows what the one
  // before has asked for: 1 queues, 2 the data under way.
  virtual void prefetch(int /*stage*/) const {}
  // The same of engine `which`, to which events of that `what` go: 1 lists, 2 the data under way.
  virtual void prefetch_engine(std::uint32_t /*which*/, int /*stage*/) const {}
  // Tags of engine n's remote requests start at n of these; the engine of a completion, and what it touches.
  static constexpr std::uint32_t kEngineTags = 0x1000;
  static constexpr std::uint32_t engine_of(std::uint32_t tag) { return (tag & 0xffff) / kEngineTags; }
  virtual void prefetch_completion(std::uint32_t /*tag*/) const {}

  virtual void declare_statistics(sim::Statistics& to, const sim::StatisticPath& at) const = 0;
};

}  // namespace cm384::npu
