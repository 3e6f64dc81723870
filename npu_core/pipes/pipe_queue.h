// A pipe's bounded in-order queue, and the flags between pipes.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <utility>

#include "npu_core/pipes/pipe_instruction.h"

namespace cm384::npu {

inline constexpr int kMostPipes = 6;  // of a core, with S
inline constexpr int kPipeS = 0;      // the scalar unit, in every core

// A pipe of a kind of core.
struct PipeDescription {
  const char* name;
  std::uint64_t isa;  // enum cm384_pipe
};

// A flag's sets that nobody has waited for yet: it counts them. One that would be one too many waits for a
// wait (how far the part counts is not known).
struct Flag {
  static constexpr std::uint32_t kMost = 15;
  std::int64_t cycle = 0;   // of the oldest set
  std::uint32_t count = 0;  // of sets
};
static_assert(sizeof(Flag) == 16);

// The flags from one pipe to another.
struct alignas(64) FlagGroup {
  std::array<Flag, 8> flags;
};

// A set of a flag that is still set.
struct LaterSet {
  std::uint32_t flag = 0;
  std::int64_t cycle = 0;
};

// An instruction in a pipe's queue: one line of the host's cache.
struct alignas(64) QueuedInstruction {
  PipeInstruction instruction;
  std::int64_t cycle = 0;           // at which it came
  std::uint64_t low = 0, high = 0;  // vector: mask; others: source and destination stride
  bool allocate = true;             // copies: in L2
  // Copies from GM: bytes around a burst, and the elements they are filled with.
  std::uint8_t pad_left = 0, pad_right = 0, pad_size = 0;
  std::uint32_t pad_value = 0;
};
static_assert(sizeof(QueuedInstruction) == 64);

// An instruction's place frees when it leaves for execution. Pipes run ahead, so that few instructions stand
// in a queue at a time: these use the same lines of the host's cache again and again, apart from the cycles
// at which the queue's places became free.
struct alignas(64) PipeQueue {
  std::unique_ptr<QueuedInstruction[]> slots;  // ring of `room`, a power of two; grows up to the depth
  std::unique_ptr<std::int64_t[]> freed;       // by place of the queue; made with the first instruction
  std::uint32_t depth = 0;
  std::uint32_t room = 0;
  std::uint32_t first = 0, count = 0;  // in slots
  std::uint32_t place = 0;             // the next instruction's
  std::int64_t ready = 0;              // the next instruction starts no earlier
  // Pipes that work by time stamps alone: the unit takes the next piece of work; all results are visible.
  std::int64_t unit_free = 0, unit_complete = 0;

  bool empty() const { return count == 0; }
  QueuedInstruction& front() { return slots[first]; }
  const QueuedInstruction& front() const { return slots[first]; }
  // Number `n`, counted from the front.
  const QueuedInstruction& at(std::uint32_t n) const { return slots[(first + n) & (room - 1)]; }
  // Requires room in the queue.
  QueuedInstruction& append() {
    if (count == room) grow();
    if (count == 0) first = 0;
    if (++place == depth) place = 0;
    return slots[(first + count++) & (room - 1)];
  }
  // The front leaves.
  void pop(std::int64_t cycle) {
    freed[place >= count ? place - count : place + depth - count] = cycle;
    first = (first + 1) & (room - 1);
    --count;
  }
  // As before the first instruction, but for the memory: a launch resets the queues of each core.
  void reset() {
    std::fill_n(freed.get(), freed == nullptr ? 0 : depth, 0);
    first = count = place = 0;
    ready = unit_free = unit_complete = 0;
  }

 private:
  void grow() {
    const std::uint32_t larger = room == 0 ? 2 : 2 * room;
    auto moved = std::make_unique<QueuedInstruction[]>(larger);
    for (std::uint32_t n = 0; n < count; ++n) moved[n] = slots[(first + n) & (room - 1)];
    slots = std::move(moved);
    first = 0;
    room = larger;
  }
};
static_assert(sizeof(PipeQueue) == 64);

}  // namespace cm384::npu
