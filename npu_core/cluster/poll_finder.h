// Recognises loops that poll without a mark: the same copy from the die's own memory at the head of each
// turn, computation on what it brings, and nothing that another turn would do once more.
//
// From the third turn on a turn is recorded: which pages of the UBuffer it writes, and which registers come
// from a counter of cycles. The next one is checked: nothing left the core, no branch, address, store or pipe
// instruction depended on a counter, all other registers, private memory, those pages and the state of the
// pipes are at its end what they were at its begin, and nothing was written to what it copied. Then the turns
// after it do the same until something is: the scalar unit is parked as by CM384_POLL_MARK.
#pragma once

#include <cstdint>

#include "npu_core/pipes/local_buffer.h"
#include "npu_core/pipes/pipe_instruction.h"

namespace cm384::npu {

class Aiv;
class ScalarCore;

class PollFinder {
 public:
  PollFinder(ScalarCore& scalar, Aiv& aiv) : scalar_(scalar), aiv_(aiv) {}
  PollFinder(const PollFinder&) = delete;  // the UBuffer writes to it

  // Before each copy (CM384_CLASS_MTE). True: the scalar unit is parked on it, and woken by a write to what
  // it copies.
  bool parks(const PipeInstruction& copy, std::int64_t cycle);
  // What ran before has no part in what comes.
  void forget();

 private:
  enum class Phase : std::uint8_t { counting, recording, checking, parked };

  bool same(const PipeInstruction& copy) const {
    return copy.pc == copy_.pc && copy.a == copy_.a && copy.b == copy_.b && copy.c == copy_.c &&
           copy.operation == copy_.operation;
  }
  void begin_turn(Phase phase, std::int64_t cycle);
  void count_on();

  ScalarCore& scalar_;
  Aiv& aiv_;
  PipeInstruction copy_;
  Phase phase_ = Phase::counting;
  std::uint32_t turns_ = 0, next_try_ = 0;
  std::uint64_t timed_ = 0, digest_ = 0;
  LocalBuffer::Pages pages_{}, written_{};  // those of such turns, of this turn
};

}  // namespace cm384::npu
