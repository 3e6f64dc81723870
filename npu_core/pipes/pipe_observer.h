// Observer of the inside of a core, vector or cube: what its pipes do when, and how one waits for another.
// All cycles are core cycles. A core tells as soon as it knows, often ahead of the die's time.
#pragma once

#include <cstdint>

#include "npu_core/pipes/pipe_instruction.h"

namespace cm384::npu {

struct MteCopy;
struct VectorInstruction;

// Of an instruction of a vector unit. Cycles.
struct VectorWork {
  const VectorInstruction* instruction = nullptr;
  std::int64_t busy = 0;       // the unit works on it
  std::int64_t conflicts = 0;  // of those, for banks of the UBuffer
  std::int64_t ordered = 0;    // it waited for an earlier one that touches its bytes (local_order.h)
};

// An instruction leaves its pipe's queue.
struct PipeStep {
  enum class Kind : std::uint8_t { work, copy, wait_flag, set_flag, cross_set, barrier };
  Kind kind = Kind::work;
  int pipe = 0;
  std::int64_t own = 0;    // until then what the pipe did before held it back
  std::int64_t start = 0;  // it begins: the latest of arrival, `own` and what it waits for
  // work: the unit takes the next one; copy: the first request may leave; wait and barrier: the pipe goes
  // on.
  std::int64_t end = 0;
  std::int64_t left = 0;   // its place in the queue is free
  std::uint32_t flag = 0;  // waited for
  const PipeInstruction* instruction = nullptr;
  std::uint64_t low = 0, high = 0;  // of a vector instruction: its mask
  const MteCopy* copy = nullptr;
  VectorWork vector;
};

// All callbacks default to nothing: an observer overrides those that it needs.
class PipeObserver {
 public:
  // The scalar unit stops at `cycle`, at an instruction that it will ask for again.
  virtual void scalar_parked(std::int64_t /*cycle*/) {}
  // From `from` on it wanted to put an instruction into a pipe's queue, in which a place was free from
  // `place` on.
  virtual void pushed(int /*pipe*/, std::int64_t /*from*/, std::int64_t /*place*/, std::int64_t /*arrival*/) {
  }
  virtual void left(const PipeStep& /*step*/) {}
  // All requests of the pipe's copy in hand have left.
  virtual void issued(int /*pipe*/, std::int64_t /*cycle*/) {}
  // A flag of a pipe is set (Pipe kPipeS: by the scalar unit); of an MTE pipe when the copies before it are
  // complete.
  virtual void flag_set(int /*pipe*/, std::uint32_t /*flag*/, std::int64_t /*cycle*/) {}
  virtual void cross_core_set(int /*pipe*/, std::uint32_t /*mode*/, std::uint32_t /*flag*/,
                              std::int64_t /*cycle*/) {}
  // The scalar unit stood from `from` to `to`. Where it was parked, `from` is when it asked again.
  virtual void scalar_waited_for_flag(std::uint32_t /*flag*/, std::int64_t /*from*/, std::int64_t /*to*/) {}
  virtual void scalar_waited_for_cross_core(std::uint32_t /*flag*/, std::int64_t /*from*/,
                                            std::int64_t /*to*/) {}
  virtual void scalar_waited_for_all(std::int64_t /*from*/, std::int64_t /*to*/) {}
  // For an instruction of the pipe that touches what the scalar unit accesses (npu_core/pipes/local_order.h).
  virtual void scalar_waited_for_pipe(int /*pipe*/, std::int64_t /*from*/, std::int64_t /*to*/) {}
  // It loads or stores bytes of the local buffer.
  virtual void scalar_access(std::uint32_t /*offset*/, std::uint32_t /*bytes*/, bool /*write*/,
                             std::uint64_t /*pc*/) {}
  // A write has touched what the scalar unit polls; it reads again from `to` on.
  virtual void scalar_polled(std::int64_t /*from*/, std::int64_t /*to*/) {}
  // A turn of a polling loop begins; `first`: what it reads has not been polled just before.
  virtual void poll_turn(bool /*first*/, std::int64_t /*cycle*/) {}
  // The kernel's phase mark.
  virtual void phase(std::uint32_t /*number*/, std::int64_t /*cycle*/) {}

 protected:
  ~PipeObserver() = default;
};

}  // namespace cm384::npu
