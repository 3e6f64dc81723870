// Finds accesses of two pipes to the same bytes of a local buffer that no flag or barrier orders.
//
// Vector clocks among the pipes of a core: each pipe numbers its accesses and knows, for every other pipe,
// the last access that is ordered before what it does next. set_flag carries the clock of its source,
// wait_flag joins it to its destination's. An instruction also knows what the scalar unit had waited for when
// it was pushed, and the scalar loads before it; scalar stores need a flag or a barrier of all pipes, as on
// the part. Instructions of one pipe begin in order, but those of V before earlier ones have written: what
// one writes, the next may use behind a barrier alone (ascend-facts A3); of these, reads are looked at.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "npu_core/pipes/pipe_queue.h"

namespace cm384::npu {

// The local buffers of a kind of core as one range of offsets.
struct HazardSpace {
  struct Buffer {
    const char* name;
    std::uint32_t begin;
  };
  std::span<const PipeDescription> pipes;
  std::span<const Buffer> buffers;  // ascending, the first at 0
  std::uint32_t bytes = 0;          // of all
  std::uint32_t grain = 0;          // accesses to the same `grain` bytes meet
  int pipelined = kMostPipes;       // the pipe whose instructions meet in the first buffer without a barrier
};

// Two accesses of which one may overtake the other.
struct Hazard {
  struct Access {
    const char* pipe;
    bool write;
    std::uint64_t pc;

    std::strong_ordering operator<=>(const Access&) const = default;
  };
  Access access, other;  // `other` came first
  bool ordered;          // by the compiler's order (npu_core/pipes/local_order.h), were there none here
  const char* buffer;
  std::uint32_t offset;  // of the block of bytes

  // "hazard in the UBuffer: V reads block 0x0 ({}), which MTE2 writes ({}); no flag or barrier orders them":
  // "{}" is the place of a pc.
  std::string text() const;
};

class HazardListener {
 public:
  virtual void hazard(const Hazard& found) = 0;

 protected:
  ~HazardListener() = default;
};

class HazardChecker {
 public:
  // `orders_scalar`: what the scalar unit accesses is ordered with the pipes' work. Hazards go to the
  // listener, each pair of places once; without one the first that nothing orders is thrown.
  explicit HazardChecker(const HazardSpace& space, bool orders_scalar = false,
                         HazardListener* listener = nullptr);

  // As after construction, in the memory that it has: a core has one launch after the other.
  void reset(bool orders_scalar, HazardListener* listener);

  // The scalar unit pushes an instruction; the pipe starts the oldest one pushed.
  void pushed(int pipe);
  void started(int pipe);
  // Flag number of (source, destination, id); sets and waits of one flag alternate in order.
  void flag_set(int source, std::uint32_t flag);
  void flag_waited(int destination, std::uint32_t flag);
  // The pipe has waited for its earlier instructions.
  void barrier(int pipe);
  // The scalar unit has waited for all pipes.
  void all_waited();

  // An access. Throws PipeFault naming both places where one of them may overtake the other and nobody
  // listens.
  void begin_access(int pipe) { ++clock_[pipe][pipe]; }
  void access(int pipe, std::uint32_t offset, std::uint32_t bytes, bool write, std::uint64_t pc);

 private:
  using VectorClock = std::array<std::uint32_t, kMostPipes>;
  struct Touch {
    std::uint32_t sequence = 0;
    std::uint64_t pc = 0;
  };
  struct Block {
    std::uint32_t launch = 0;          // since which the rest counts
    std::uint8_t writer = kMostPipes;  // none
    Touch write;
    std::array<Touch, kMostPipes> reads;
  };

  // Blocks come into being together, with the first access to one of them: a core touches a part of its
  // buffers, and a die has dozens of cores.
  static constexpr std::uint32_t kTogether = 16;
  Block& block(std::uint32_t number) {
    std::unique_ptr<Block[]>& blocks = blocks_[number / kTogether];
    if (!blocks) blocks = std::make_unique<Block[]>(kTogether);
    return blocks[number % kTogether];
  }

  void join(int pipe, const VectorClock& other);
  std::uint32_t first_buffer_blocks() const {
    return (space_.buffers.size() == 1 ? space_.bytes : space_.buffers[1].begin) / space_.grain;
  }
  void report(int pipe, bool write, std::uint64_t pc, int other, bool other_write, const Touch& touch,
              std::uint32_t block);

  HazardSpace space_;
  int pipes_;
  std::array<VectorClock, kMostPipes> clock_{};
  std::array<std::uint32_t, kMostPipes>
      scalar_before_{};               // scalar accesses before the pipe's running instruction
  std::uint32_t scalar_drained_ = 0;  // scalar accesses before the scalar unit last waited for all pipes
  std::uint32_t written_ = 0;         // accesses of the pipelined pipe that are complete for its next one
  struct Pushed {
    VectorClock scalar;
    std::uint32_t drained;
  };
  std::array<std::deque<Pushed>, kMostPipes> queue_;
  std::vector<std::vector<VectorClock>> flags_;  // sets of each, the oldest first: some few
  std::vector<std::unique_ptr<Block[]>> blocks_;
  std::uint32_t launch_ = 0;
  bool orders_scalar_;
  HazardListener* listener_;
  std::set<std::pair<Hazard::Access, Hazard::Access>> told_;
};

}  // namespace cm384::npu
