// A pipe's queue: what stands in it, and when its places became free.
#include "npu_core/pipes/pipe_queue.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <vector>

namespace cm384::npu::pipe_queue_test {
namespace {

PipeQueue queue_of(std::uint32_t depth) {
  PipeQueue q;
  q.depth = depth;
  q.freed = std::make_unique<std::int64_t[]>(depth);
  return q;
}

TEST(PipeQueue, KeepsOrderAndTheTimesOfItsPlaces) {
  for (const std::uint32_t depth : {1u, 2u, 5u, 32u}) {
    PipeQueue q = queue_of(depth);
    std::deque<std::uint32_t> held;
    std::vector<std::int64_t> left;  // by number of the instruction
    std::uint32_t pushed = 0, random = 1;
    while (pushed < 1000) {
      random = random * 1'664'525 + 1'013'904'223;
      const bool push = (random >> 16) % 16 < (pushed / 64 % 2 == 0 ? 12u : 5u);
      if (push && held.size() < depth) {
        EXPECT_EQ(q.freed[q.place], pushed < depth ? 0 : left[pushed - depth]) << pushed << " of " << depth;
        QueuedInstruction& slot = q.append();
        slot.instruction.pc = pushed;
        held.push_back(pushed++);
      } else if (!push && !held.empty()) {
        EXPECT_EQ(q.front().instruction.pc, held.front());
        q.pop(1000 + held.front());
        left.push_back(1000 + held.front());
        held.pop_front();
      }
      EXPECT_EQ(q.count, held.size());
      EXPECT_EQ(q.empty(), held.empty());
    }
  }
}

TEST(PipeQueue, AnEmptyOneStartsOver) {
  PipeQueue q = queue_of(32);
  const QueuedInstruction* const first = &q.append();
  q.pop(1);
  for (int turn = 0; turn < 40; ++turn) {
    EXPECT_EQ(&q.append(), first);
    q.pop(turn);
  }
  EXPECT_EQ(q.room, 2u);
}

TEST(PipeQueue, AResetOneIsAsNewInTheSameMemory) {
  PipeQueue q = queue_of(5);
  for (int n = 0; n < 4; ++n) q.append();
  for (int n = 0; n < 3; ++n) q.pop(100 + n);
  q.ready = q.unit_free = q.unit_complete = 7;
  const QueuedInstruction* const slots = q.slots.get();
  q.reset();
  EXPECT_TRUE(q.empty());
  EXPECT_EQ(q.slots.get(), slots);
  EXPECT_EQ(q.ready + q.unit_free + q.unit_complete, 0);
  for (std::uint32_t n = 0; n < 5; ++n) {
    EXPECT_EQ(q.place, n);
    EXPECT_EQ(q.freed[q.place], 0);
    q.append().instruction.pc = n;
  }
  EXPECT_EQ(q.front().instruction.pc, 0u);
  PipeQueue unused;
  unused.reset();
  EXPECT_TRUE(unused.empty());
}

}  // namespace
}  // namespace cm384::npu::pipe_queue_test
