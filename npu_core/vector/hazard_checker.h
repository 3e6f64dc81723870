// Finds pipes that meet in the UBuffer without a flag or barrier that orders them (on in tests and by
// option).
//
// Vector clocks among S, V, MTE2 and MTE3: each pipe numbers its accesses and knows, for every other pipe,
// the last access that is ordered before what it does next. set_flag carries the clock of its source,
// wait_flag joins it to its destination's. An instruction also knows what the scalar unit had waited for when
// it was pushed, and the scalar loads before it; scalar stores need a flag, as on the part.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "npu_core/vector/ubuffer.h"

namespace cm384::npu {

// The pipes of a vector core, numbered from 0 without gaps.
enum Pipe : std::uint8_t { kPipeS = 0, kPipeV = 1, kPipeMte2 = 2, kPipeMte3 = 3, kPipes = 4 };
const char* pipe_name(int pipe);

class HazardChecker {
 public:
  HazardChecker();

  // The scalar unit pushes an instruction; the pipe starts the oldest one pushed.
  void pushed(int pipe);
  void started(int pipe);
  // Flag number of (source, destination, id); sets and waits of one flag alternate in order.
  void flag_set(int source, std::uint32_t flag);
  void flag_waited(int destination, std::uint32_t flag);
  // The scalar unit has waited for all pipes.
  void all_waited();

  // An access; throws MachineError naming both pcs where one of them may overtake the other.
  void begin_access(int pipe) { ++clock_[pipe][pipe]; }
  void access(int pipe, std::uint32_t offset, std::uint32_t bytes, bool write, std::uint64_t pc);

 private:
  using VectorClock = std::array<std::uint32_t, kPipes>;
  struct Touch {
    std::uint32_t sequence = 0;
    std::uint64_t pc = 0;
  };
  struct Block {
    std::uint8_t writer = kPipes;  // none
    Touch write;
    std::array<Touch, kPipes> reads;
  };

  void join(int pipe, const VectorClock& other);
  [[noreturn]] void report(int pipe, bool write, std::uint64_t pc, int other, bool other_write,
                           std::uint64_t other_pc, std::uint32_t block) const;

  std::array<VectorClock, kPipes> clock_{};
  std::array<std::uint32_t, kPipes>
      scalar_before_{};  // scalar accesses before the pipe's running instruction
  std::array<std::deque<VectorClock>, kPipes> queue_;
  std::vector<std::deque<VectorClock>> flags_;
  std::vector<Block> blocks_;
};

}  // namespace cm384::npu
