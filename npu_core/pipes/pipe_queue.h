// A pipe's bounded in-order queue, and the flags between pipes.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "npu_core/pipe_instruction.h"

namespace cm384::npu {

inline constexpr int kMostPipes = 6;  // of a core, with S
inline constexpr int kPipeS = 0;      // the scalar unit, in every core

// A pipe of a kind of core.
struct PipeDescription {
  const char* name;
  std::uint64_t isa;  // enum cm384_pipe
};

// A flag's sets that nobody has waited for yet. Pipes work out their time stamps ahead of each other, so more
// than one may be known; that the next one does not come before the wait is checked when the wait is known.
struct alignas(64) Flag {
  static constexpr std::uint32_t kDepth = 4;
  std::array<std::int64_t, kDepth> cycle{};
  std::array<std::uint32_t, kDepth> pc{};
  std::uint8_t first = 0;
  std::uint8_t count = 0;

  std::int64_t front() const { return cycle[first]; }
  std::uint32_t second() const { return (first + 1u) % kDepth; }
};
static_assert(sizeof(Flag) == 64);

// A place in a pipe's queue. A supernode has some five million of them: one line of the host's cache each.
struct alignas(64) QueuedInstruction {
  PipeInstruction instruction;
  // While the instruction stands in the queue, at which it came; after that, at which it left.
  std::int64_t cycle = 0;
  std::uint64_t low = 0, high = 0;  // vector: mask; others: source and destination stride
  bool allocate = true;             // copies: in L2
};
static_assert(sizeof(QueuedInstruction) == 64);

// An instruction's place frees when it leaves for execution.
struct alignas(64) PipeQueue {
  std::unique_ptr<QueuedInstruction[]> slots;  // ring, made with the first instruction
  std::uint32_t depth = 0;
  std::uint32_t last_pc = 0;
  std::uint64_t head = 0, tail = 0;
  std::int64_t ready = 0;  // the next instruction starts no earlier
  // Pipes that work by time stamps alone: the unit takes the next piece of work; all results are visible.
  std::int64_t unit_free = 0, unit_complete = 0;

  bool empty() const { return head == tail; }
  QueuedInstruction& at(std::uint64_t n) { return slots[n % depth]; }
  const QueuedInstruction& at(std::uint64_t n) const { return slots[n % depth]; }
  QueuedInstruction& front() { return at(head); }
  const QueuedInstruction& front() const { return at(head); }
};
static_assert(sizeof(PipeQueue) == 64);

}  // namespace cm384::npu
