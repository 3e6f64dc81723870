// Queues, flags, barriers, cross-core flags and polling marks, to the cycle.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text/error.h"
#include "testbenches/npu_core/vector/stand_in.h"

namespace cm384::npu::testing::flags_test {
namespace {

constexpr int kS = CM384_PIPE_S, kV = CM384_PIPE_V, kMte2 = CM384_PIPE_MTE2, kMte3 = CM384_PIPE_MTE3;
constexpr std::uint64_t kOnes = ~std::uint64_t{0};

PipeInstruction unary(std::uint32_t repeats, std::uint32_t at = 0) {
  return vector(CM384_CLASS_VECTOR, CM384_VABS, CM384_F32, at, at, 0, repeats);
}
PipeInstruction nop() {
  return sync(CM384_SET_MASK, kOnes, kOnes);
}

TEST(Flags, ScalarWaitsForTheTailOfTheVectorPipe) {
  StandIn die;
  ASSERT_TRUE(die.run({unary(100), set_flag(kV, kS), wait_flag(kV, kS)}));
  EXPECT_EQ(die.released(0), 1);
  EXPECT_EQ(die.released(1), 2);
  EXPECT_EQ(die.released(2), 1 + 13 + 100 + 10 + 1);  // and one issue cycle
}

TEST(Flags, ASetFlagDoesNotHoldLaterInstructionsBack) {
  StandIn die;
  ASSERT_TRUE(die.run({unary(100), set_flag(kV, kMte3), unary(100)}));
  EXPECT_EQ(die.drained(), 1 + 13 + 200 + 10);
}

TEST(Flags, PipesWaitForEachOther) {
  // MTE2 reads (no event is left to be waited for by the scalar unit), V works, MTE3 writes.
  StandIn die;
  const std::uint64_t source = cm384_gm_die(kLocal, 0x1000), target = cm384_gm_die(kLocal, 0x8000);
  ASSERT_TRUE(die.run({copy_in(0, source, 512), set_flag(kMte2, kV), wait_flag(kMte2, kV), unary(2),
                       set_flag(kV, kMte3), wait_flag(kV, kMte3), copy_out(target, 0, 512)}));
  EXPECT_EQ(die.released(6), 7);  // the scalar unit never waited
  ASSERT_EQ(die.accesses.size(), 2u);
  const Time read = die.clock.start(1 + 200);
  EXPECT_EQ(die.accesses[0].at, read);
  const std::int64_t loaded = die.clock.tick_at_or_after(read + die.read_latency);
  const std::int64_t computed = loaded + 13 + 2 + 10;
  EXPECT_EQ(die.accesses[1].at, die.clock.start(computed + 50));
  EXPECT_EQ(die.drained(), die.clock.tick_at_or_after(die.accesses[1].at + die.write_latency));
  EXPECT_EQ(die.aiv.statistics().vector_wait_cycles, static_cast<std::uint64_t>(loaded - 3 - 1));
}

TEST(Flags, BarrierOfAllPipesWaitsForAccesses) {
  StandIn die;
  ASSERT_TRUE(die.run({copy_in(0, cm384_gm_die(kLocal, 0), 512), barrier(CM384_PIPE_ALL), nop()}));
  const std::int64_t loaded = die.clock.tick_at_or_after(die.clock.start(201) + die.read_latency);
  EXPECT_EQ(die.released(1), loaded + 1);
}

TEST(Flags, BarrierOfAPipeOrdersItsAccesses) {
  StandIn die;
  const std::uint64_t gm = cm384_gm_die(kRemote, 0);
  ASSERT_TRUE(die.run({copy_out(gm, 0, 512), barrier(kMte3), copy_out(gm + 4096, 0, 32)}));
  ASSERT_EQ(die.requests.size(), 2u);
  const std::int64_t acknowledged = die.clock.tick_at_or_after(die.requests[0].at + die.remote_latency);
  EXPECT_EQ(die.requests[1].at, die.clock.start(acknowledged + 50));
}

TEST(Flags, FullQueueStallsUntilAPlaceFrees) {
  // Depth 4: instruction i may be pushed when instruction i - 4 has left. V starts one every 100 cycles once
  // its head is hidden: instruction k leaves at 1 + 100 k.
  hw::VectorCore parameters = vector_parameters();
  parameters.queue_depth = 4;
  StandIn die(mte_parameters(), parameters);
  std::vector<PipeInstruction> program(8, unary(100));
  ASSERT_TRUE(die.run(program));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(die.released(static_cast<std::size_t>(i)), i + 1) << i;
  EXPECT_EQ(die.released(5), 101 + 1);
  EXPECT_EQ(die.released(6), 201 + 1);
  EXPECT_EQ(die.released(7), 301 + 1);
  EXPECT_EQ(die.aiv.statistics().queue_full, 3u);
  EXPECT_EQ(die.wakes, 0u);  // all was known in advance
}

TEST(Flags, FullQueueBehindAnUnknownFlagParks) {
  hw::VectorCore parameters = vector_parameters();
  parameters.queue_depth = 2;
  StandIn die(mte_parameters(), parameters);
  ASSERT_TRUE(die.run({copy_in(0x1000, cm384_gm_die(kRemote, 0), 64), set_flag(kMte2, kV),
                       wait_flag(kMte2, kV), unary(1), unary(1)}));
  const std::int64_t flagged = die.clock.tick_at_or_after(die.requests[0].at + die.remote_latency);
  EXPECT_EQ(die.released(3), 4);
  EXPECT_EQ(die.released(4), flagged - 1 + 1);  // the wait leaves its place when the flag comes
  EXPECT_EQ(die.wakes, 1u);
}

// Two sets before two waits: the second wait takes the second set, 100 cycles after the first.
TEST(Flags, FlagsCount) {
  StandIn die;
  ASSERT_TRUE(die.run({unary(100), set_flag(kV, kS, 3), unary(100), set_flag(kV, kS, 3), wait_flag(kV, kS, 3),
                       wait_flag(kV, kS, 3)}));
  EXPECT_EQ(die.released(4), 1 + 13 + 100 + 10 + 1);
  EXPECT_EQ(die.released(5), 1 + 13 + 200 + 10 + 1);
  // Long set: the waits take an issue cycle each.
  ASSERT_TRUE(die.run(
      {set_flag(kV, kS), set_flag(kV, kS), nop(), nop(), nop(), wait_flag(kV, kS), wait_flag(kV, kS)}, 1000));
  EXPECT_EQ(die.released(6), 1007);
  // There are as many waits as sets.
  EXPECT_FALSE(die.run(
      {set_flag(kV, kS), set_flag(kV, kS), wait_flag(kV, kS), wait_flag(kV, kS), wait_flag(kV, kS)}, 2000));
}

// Up to 15; the set after that waits, here for ever, by the scalar unit or in its pipe's queue.
TEST(Flags, CountToFifteen) {
  for (const int source : {kS, kMte2}) {
    std::vector<PipeInstruction> sets(15, set_flag(source, kV));
    StandIn die;
    EXPECT_TRUE(die.run(sets));
    sets.push_back(set_flag(source, kV));
    StandIn full;
    EXPECT_FALSE(full.run(sets));
    sets.insert(sets.begin(), wait_flag(source, kV));
    StandIn room;
    EXPECT_TRUE(room.run(sets));
  }
}

TEST(Flags, SetsAheadOfTheirWaitsKeepTheirCycles) {
  // V works ahead of MTE3 in time stamps: both sets, 100 cycles apart, are known before the first wait.
  StandIn die;
  const std::uint64_t gm = cm384_gm_die(kRemote, 0);
  ASSERT_TRUE(die.run({unary(100), set_flag(kV, kMte3), unary(100), set_flag(kV, kMte3), wait_flag(kV, kMte3),
                       copy_out(gm, 0, 32), wait_flag(kV, kMte3), copy_out(gm + 4096, 0, 32)}));
  ASSERT_EQ(die.requests.size(), 2u);
  EXPECT_EQ(die.clock.tick_at_or_after(die.requests[1].at) - die.clock.tick_at_or_after(die.requests[0].at),
            100);
}

TEST(Flags, FlagsThatDoNotExistAreErrors) {
  StandIn die;
  EXPECT_THROW(die.run({set_flag(kV, kV)}), MachineError);
  EXPECT_THROW(die.run({set_flag(kV, CM384_PIPE_M)}), MachineError);
  EXPECT_THROW(die.run({set_flag(kV, kS, 8)}), MachineError);
}

TEST(Flags, AWaitNobodyAnswersIsReported) {
  StandIn die;
  EXPECT_FALSE(die.run({wait_flag(kMte2, kV, 5), unary(1), wait_flag(kV, kS, 2)}));
  const std::string report = die.aiv.waiting_for(pc_text);
  EXPECT_THAT(report, ::testing::HasSubstr("V waits for flag MTE2->V id 5 since 0.001 us, pc 0x1000"));
  EXPECT_THAT(report, ::testing::HasSubstr("S waits for flag V->S id 2"));
}

TEST(Flags, ResetForgetsWaits) {
  StandIn die;
  EXPECT_FALSE(die.run({wait_flag(kMte2, kV), unary(1)}));
  die.aiv.reset();
  EXPECT_TRUE(die.run({unary(1)}, 1000));
  EXPECT_EQ(die.aiv.waiting_for(pc_text), "");
}

TEST(CrossCore, SetFiresWhenThePipesWorkIsComplete) {
  StandIn die;
  const auto set = [](int pipe, int mode, int flag) {
    return sync(CM384_CROSS_CORE_SET, static_cast<std::uint64_t>(pipe | mode << 8 | flag << 16));
  };
  ASSERT_TRUE(die.run(
      {unary(100), set(kV, 0, 14), copy_out(cm384_gm_die(kRemote, 0), 0x8000, 32), set(kMte3, 1, 2)}));
  ASSERT_EQ(die.cross_core_sets.size(), 2u);
  EXPECT_EQ(die.cross_core_sets[0], std::make_pair(14u, die.clock.start(1 + 13 + 100 + 10)));
  EXPECT_EQ(die.cross_core_sets[1].first, 1u << 8 | 2u);
  const std::int64_t acknowledged = die.clock.tick_at_or_after(die.requests[0].at + die.remote_latency);
  EXPECT_EQ(die.cross_core_sets[1].second, die.clock.start(acknowledged));
}

TEST(CrossCore, WaitTakesOneCountAtATime) {
  StandIn die;
  die.at(Time{2'000'000}, [&] { die.aiv.cross_core_flag(4, 2, Time{2'000'000}); });
  die.at(Time{9'000'000}, [&] { die.aiv.cross_core_flag(4, 1, Time{9'000'000}); });
  const PipeInstruction wait = sync(CM384_CROSS_CORE_WAIT, 4);
  ASSERT_TRUE(die.run({wait, wait, wait}));
  const std::int64_t first = die.clock.tick_at_or_after(Time{2'000'000});
  EXPECT_EQ(die.released(0), first + 1);
  EXPECT_EQ(die.released(1), first + 2);
  EXPECT_EQ(die.released(2), die.clock.tick_at_or_after(Time{9'000'000}) + 1);
}

// A polling loop: a mark, then work of `turn - 1` cycles.
std::vector<PipeInstruction> polling(int turns, int turn) {
  std::vector<PipeInstruction> program;
  for (int i = 0; i < turns; ++i) {
    PipeInstruction mark = sync(CM384_POLL_MARK, cm384_gm_die(kLocal, 0x400), 64);
    program.push_back(mark);
    for (int k = 0; k < turn - 1; ++k) program.push_back(nop());
  }
  return program;
}

TEST(PollMark, SkipsTurnsAndResumesOnThePollPeriod) {
  StandIn die;
  const Time write = die.clock.start(1234);
  die.at(write, [&] { die.aiv.watched_write(write); });
  ASSERT_TRUE(die.run(polling(3, 50)) == false);  // the third mark waits again
  EXPECT_EQ(die.watched_offset, 0x400u);
  EXPECT_EQ(die.watched_bytes, 64u);
  EXPECT_EQ(die.released(0), 1);
  // The second mark stands at 50; turns at 100, 150, ... are skipped up to 1250, the first not before 1234.
  EXPECT_EQ(die.released(50), 1250 + 1);
  EXPECT_EQ(die.aiv.statistics().skipped_polls, 24u);
  EXPECT_THAT(die.aiv.waiting_for(pc_text), ::testing::HasSubstr("a write to memory offset 0x400"));
}

TEST(PollMark, DoesNotParkAfterAWriteInTheTurn) {
  StandIn die;
  // The scalar unit stops at the flag of a copy, so that the write comes before the second mark is issued.
  std::vector<PipeInstruction> program = polling(1, 2);
  program.push_back(copy_in(0, cm384_gm_die(kLocal, 0x400), 64));
  program.push_back(set_flag(kMte2, kS));
  program.push_back(wait_flag(kMte2, kS));
  program.push_back(polling(1, 1)[0]);
  die.at(Time{100'000}, [&] { die.aiv.watched_write(Time{100'000}); });
  ASSERT_TRUE(die.run(program));
  EXPECT_EQ(die.released(5), die.released(4) + 1);
  EXPECT_EQ(die.aiv.statistics().skipped_polls, 0u);
}

// A loop that was left and is entered again: its first mark begins a turn and does not park, and its period
// is its own.
TEST(PollMark, ALoopThatWasLeftBeginsAnew) {
  for (const bool left : {true, false}) {
    StandIn die;
    std::vector<PipeInstruction> program = polling(1, 50);
    if (left) program.push_back(sync(CM384_POLL_MARK, cm384_gm_die(kLocal, 0x400), 0));
    for (int k = 0; k < 1000; ++k) program.push_back(nop());
    program.push_back(polling(1, 1)[0]);
    EXPECT_EQ(die.run(program), left);
  }
}

TEST(PollMark, HasNoEffectWithElisionOff) {
  AivOptions options;
  options.elide_polls = false;
  StandIn die(mte_parameters(), vector_parameters(), options);
  ASSERT_TRUE(die.run(polling(5, 10)));
  EXPECT_EQ(die.released(40), 41);
  EXPECT_EQ(die.watched_bytes, 0u);
}

}  // namespace
}  // namespace cm384::npu::testing::flags_test
