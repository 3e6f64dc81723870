// The order between the scalar unit and the pipes: who waits for whom, to the byte and to the cycle.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testbenches/npu_core/vector/stand_in.h"

namespace cm384::npu::testing::order_test {
namespace {

constexpr int kS = CM384_PIPE_S, kV = CM384_PIPE_V, kMte2 = CM384_PIPE_MTE2;
constexpr std::int64_t kNow = 10;  // cycle of the accesses
constexpr std::uint64_t kPc = 0xabc;

PipeInstruction unary(std::uint32_t to, std::uint32_t from, std::uint32_t repeats) {
  return vector(CM384_CLASS_VECTOR, CM384_VABS, CM384_F32, to, from, 0, repeats);
}
// Of `repeats` that an idle vector unit begins at `start`: all results are there.
std::int64_t complete(std::int64_t start, std::uint32_t repeats) {
  return start + 13 + repeats + 10;
}

struct Ordered : StandIn {
  Ordered() { aiv.set_order(true); }
  // Cycle of a scalar access; -1: it is parked.
  std::int64_t access(std::uint32_t at, std::uint32_t bytes, bool write, std::int64_t cycle = kNow) {
    const IssueAnswer answer = aiv.scalar_access({at, at + bytes, write}, kPc, cycle);
    return answer.parked ? -1 : answer.release_cycle;
  }
  // The same of one that parks, once all is done.
  std::int64_t access_in_the_end(std::uint32_t at, std::uint32_t bytes, bool write) {
    EXPECT_EQ(access(at, bytes, write), -1);
    EXPECT_TRUE(run({}, kNow));
    return access(at, bytes, write);
  }
  OrderWait waited(int pipe, bool write) const {
    const auto found = aiv.order_waits()->find({.pc = kPc, .pipe = pipe, .write = write});
    return found == aiv.order_waits()->end() ? OrderWait{} : found->second;
  }
};

// As a flag from V to S that is set right after the instruction (Flags.ScalarWaitsForTheTailOfTheVectorPipe).
TEST(Order, LoadsWaitForResultsOfTheVectorUnit) {
  Ordered die;
  die.aiv.issue(unary(0x1000, 0, 100), 0);
  EXPECT_EQ(die.access(0x1000, 4, false), complete(1, 100) + 1);
  EXPECT_EQ(die.waited(kPipeV, false).count, 1u);
  EXPECT_EQ(die.waited(kPipeV, false).cycles, complete(1, 100) + 1 - kNow);
  // It is complete at that cycle: nothing is left to wait for.
  EXPECT_EQ(die.access(0x1000, 4, false, complete(1, 100)), complete(1, 100));
  EXPECT_EQ(die.access(0x1000, 4, false, complete(1, 100) - 1), complete(1, 100) + 1);
}

TEST(Order, WaitsForTheBytesAlone) {
  Ordered die;
  die.aiv.issue(unary(0x1000, 0x100, 1), 0);  // 256 B each
  for (const auto& [at, bytes] : {std::pair{0x1000u, 1u}, {0x10ffu, 1u}, {0xffcu, 8u}, {0x10fcu, 8u}})
    EXPECT_EQ(die.access(at, bytes, false), complete(1, 1) + 1) << at;
  for (const auto& [at, bytes] : {std::pair{0xff8u, 8u}, {0x1100u, 8u}, {0x100u, 4u}, {0x8000u, 4u}})
    EXPECT_EQ(die.access(at, bytes, false), kNow) << at;
  // What is only read is not to be overwritten.
  EXPECT_EQ(die.access(0x100, 4, true), complete(1, 1) + 1);
  EXPECT_EQ(die.access(0x1fc, 4, true), complete(1, 1) + 1);
  EXPECT_EQ(die.access(0x200, 4, true), kNow);
  EXPECT_EQ(die.access(0xfc, 4, true), kNow);
}

TEST(Order, WaitsForTheLastThatMeetsIt) {
  Ordered die;
  die.aiv.issue(unary(0x1000, 0x8000, 1), 0);
  die.aiv.issue(unary(0x2000, 0x8000, 50), 1);
  EXPECT_EQ(die.access(0x1000, 4, false), complete(1, 1) + 1);
  EXPECT_EQ(die.access(0x2000, 4, false), 1 + 13 + 1 + 50 + 10 + 1);  // its head is hidden
  EXPECT_EQ(die.access(0x8000, 4, true), 1 + 13 + 1 + 50 + 10 + 1);
}

TEST(Order, LoadsWaitForCopies) {
  Ordered die;
  die.aiv.issue(copy_in(0x1000, cm384_gm_die(kLocal, 0), 512), 0);
  EXPECT_EQ(die.access(0xffc, 4, false), kNow);
  EXPECT_EQ(die.access(0x1200, 4, true), kNow);
  const std::int64_t loaded = die.clock.tick_at_or_after(die.clock.start(201) + die.read_latency);
  EXPECT_EQ(die.access_in_the_end(0x11fc, 4, false), loaded + 1);
  EXPECT_EQ(die.waited(kPipeMte2, false).count, 1u);
  EXPECT_EQ(die.waited(kPipeMte2, false).cycles, loaded + 1 - kNow);
}

TEST(Order, StoresWaitForCopiesOut) {
  for (const std::uint64_t target : {kLocal, kRemote}) {
    Ordered die;
    die.aiv.issue(copy_out(cm384_gm_die(target, 0), 0x1000, 512), 0);
    EXPECT_EQ(die.access(0x1000, 4, false), kNow);  // both read
    const std::int64_t written = die.clock.tick_at_or_after(
        die.clock.start(51) + (target == kLocal ? die.write_latency : die.remote_latency));
    EXPECT_EQ(die.access_in_the_end(0x1000, 4, true), written + 1);
  }
}

// A copy's bursts and what lies between them.
TEST(Order, BurstsOfACopy) {
  Ordered die;
  ASSERT_TRUE(die.run({sync(CM384_SET_STRIDE, 64, 128)}));
  die.aiv.issue(copy_in(0x1000, cm384_gm_die(kLocal, 0), 64, 4), kNow);
  EXPECT_EQ(die.access(0x1040, 64, true, 2 * kNow), 2 * kNow);
  EXPECT_EQ(die.access(0x10bc, 4, true, 2 * kNow), -1);
}

TEST(Order, WaitsForWhatStillStandsInAQueue) {
  Ordered die;
  die.aiv.issue(wait_flag(kMte2, kV), 0);
  die.aiv.issue(unary(0x1000, 0, 1), 1);
  EXPECT_EQ(die.access(0x2000, 4, false), kNow);
  EXPECT_EQ(die.access(0x1000, 4, false), -1);
  EXPECT_THAT(
      die.aiv.waiting_for(pc_text),
      ::testing::HasSubstr("S waits for V to be done with what it accesses since 0.005 us, pc 0xabc"));
}

// As a barrier between them: PipeBarrier<PIPE_V>.
TEST(Order, VectorInstructionsWaitForEachOther) {
  const auto drained = [](bool ordered, const std::vector<PipeInstruction>& program) {
    StandIn die;
    die.aiv.set_order(ordered);
    EXPECT_TRUE(die.run(program));
    return die.drained();
  };
  const std::vector<PipeInstruction> dependent{unary(0x1000, 0, 1), unary(0x2000, 0x1000, 1)};
  const std::vector<PipeInstruction> apart{unary(0x1000, 0, 1), unary(0x2000, 0, 1)};
  EXPECT_EQ(drained(true, dependent), complete(complete(1, 1), 1));
  EXPECT_EQ(drained(false, {dependent[0], barrier(kV), dependent[1]}), complete(complete(1, 1), 1));
  EXPECT_EQ(drained(true, {dependent[0], barrier(kV), dependent[1]}), complete(complete(1, 1), 1));
  EXPECT_EQ(drained(true, apart), drained(false, apart));
  EXPECT_LT(drained(false, dependent), drained(true, dependent));
}

// A kernel with flags of its own takes the same time.
TEST(Order, CostsNothingWhereFlagsOrder) {
  Ordered die;
  ASSERT_TRUE(die.run({unary(0x1000, 0, 100), set_flag(kV, kS), wait_flag(kV, kS)}));
  EXPECT_EQ(die.access(0x1000, 4, true, die.released(2)), die.released(2));
  EXPECT_TRUE(die.aiv.order_waits()->empty());
}

TEST(Order, IsOffUnlessAskedFor) {
  StandIn die;
  die.aiv.issue(unary(0x1000, 0, 100), 0);
  EXPECT_EQ(die.aiv.scalar_access({0x1000, 0x1004, false}, kPc, kNow).release_cycle, kNow);
  EXPECT_EQ(die.aiv.order_waits(), nullptr);
}

}  // namespace
}  // namespace cm384::npu::testing::order_test
