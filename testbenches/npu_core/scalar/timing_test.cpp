// Time of straight-line code, branches, caches and stalls against closed form.
#include <gtest/gtest.h>

#include "testbenches/npu_core/scalar/surroundings.h"

namespace cm384::npu::testing::timing_test {
namespace {

// run_warm() counts up to the issue of the closing ebreak.
TEST(Timing, OneInstructionACycle) {
  EXPECT_EQ(Bench("snippets").run_warm("eight_adds"), 8);
}

TEST(Timing, UseWaitsForItsResult) {
  const hw::ScalarCoreParameters p = small_core();
  Bench bench("snippets");
  // `la` is two instructions; then the load issues at 2 and its user at 2 + load_use.
  EXPECT_EQ(bench.run_warm("load_use"), 2 + p.load_use + 1);
  EXPECT_EQ(bench.run_warm("load_then_two_others"), 2 + 4);  // load_use = 3: nothing left to wait for
  EXPECT_EQ(bench.run_warm("multiply_use"), p.multiply + 1);
  EXPECT_EQ(bench.run_warm("divide_use"), p.divide + 1);
  EXPECT_EQ(bench.run_warm("float_use"), p.float_operation + 1);
  EXPECT_EQ(bench.run_warm("float_divide_use"), p.float_divide + 1);
  EXPECT_EQ(bench.run_warm("float_root_use"), p.float_square_root + 1);
  EXPECT_EQ(bench.run_warm("float_independent"), 2);
}

TEST(Timing, AResultUnderWayIsWaitedForAcrossAJump) {
  const hw::ScalarCoreParameters p = small_core();
  // The jump issues at 1 and loses a cycle: the user would issue at 3, the result is there at `multiply`.
  EXPECT_EQ(Bench("snippets").run_warm("carried"), p.multiply + 1);
}

TEST(Timing, Branches) {
  const hw::ScalarCoreParameters p = small_core();
  Bench bench("snippets");
  EXPECT_EQ(bench.run_warm("forward_not_taken"), 1);
  EXPECT_EQ(bench.run_warm("forward_taken"), 1 + p.branch_mispredict);
  EXPECT_EQ(bench.run_warm("loop_of_ten"), 1 + 10 * 2 + 9 * p.taken_branch + p.branch_mispredict);
  EXPECT_EQ(bench.run_warm("call_and_return"), 2 + 2 * p.taken_branch);
  EXPECT_EQ(bench.run_warm("indirect_jump"), 3 + p.branch_mispredict);
}

TEST(Timing, DataCacheMissBlocksForItsFill) {
  Bench bench("snippets");
  const std::uint64_t buffer = bench.address("buffer");
  bench.core().set_x(11, buffer);
  bench.run("load_word");
  EXPECT_EQ(bench.run("load_word"), 1);
  bench.core().set_x(11, buffer + 64);
  EXPECT_EQ(bench.run("load_word"), 1 + bench.surroundings().fill_cycles);
  EXPECT_EQ(bench.run("load_word"), 1);
  bench.run("load_across_lines");
  bench.core().set_x(11, buffer + 256);
  const std::uint64_t misses = bench.core().counters().data_misses;
  EXPECT_EQ(bench.run("load_across_lines"), 1 + 2 * bench.surroundings().fill_cycles);
  EXPECT_EQ(bench.run("load_across_lines"), 1);
  EXPECT_EQ(bench.core().counters().data_misses, misses + 2);
}

TEST(Timing, InstructionCacheMissBlocksForItsFill) {
  Bench bench("snippets");
  EXPECT_EQ(bench.run("eight_adds"), 8 + bench.surroundings().fill_cycles);
  EXPECT_EQ(bench.run("eight_adds"), 8);
  EXPECT_EQ(bench.core().counters().instruction_misses, 1u);
}

// A launch of the image that the core ran before finds its code, where a machine keeps it; of another image,
// not.
TEST(Timing, ALaunchFindsTheCodeThatIsKept) {
  for (const bool kept : {true, false}) {
    hw::ScalarCoreParameters p = small_core();
    p.instruction_cache_relaunch = kept ? "kept" : "dropped";
    Bench bench("snippets", p);
    const std::int64_t fill = bench.surroundings().fill_cycles;
    EXPECT_EQ(bench.run("eight_adds"), 8 + fill);
    bench.core().start(bench.program(), bench.core().cycle());
    EXPECT_EQ(bench.run("eight_adds"), kept ? 8 : 8 + fill);
    bench.core().start(std::make_shared<Program>(bench.program()->shared_image(), p), bench.core().cycle());
    EXPECT_EQ(bench.run("eight_adds"), 8 + fill);
  }
}

// Lines after a missing one are asked for in its cycle.
TEST(Timing, PrefetchBringsFollowingLines) {
  for (const int lines : {0, 1, 3}) {
    hw::ScalarCoreParameters p = small_core();
    p.instruction_prefetch = lines;
    Bench bench("snippets", p);
    const auto misses = static_cast<std::uint64_t>(4 / (lines + 1));
    const std::int64_t fill = bench.surroundings().fill_cycles;
    EXPECT_EQ(bench.run("four_lines"), 63 + static_cast<std::int64_t>(misses) * fill);
    const auto& fills = bench.surroundings().fills;
    ASSERT_EQ(fills.size(), 4u);
    for (std::size_t n = 0; n < fills.size(); ++n) {
      EXPECT_EQ(fills[n].address, fills[0].address + n * 64);
      EXPECT_EQ(fills[n].cycle, fills[n - n % static_cast<std::size_t>(lines + 1)].cycle);
    }
    const auto& counters = bench.core().counters();
    EXPECT_EQ(counters.instruction_misses, misses);
    EXPECT_EQ(counters.instruction_prefetches, 4 - misses);
    EXPECT_EQ(counters.instruction_stall_cycles, misses * static_cast<std::uint64_t>(fill));
  }
}

// Who comes to a line early waits for the rest of its way, once.
TEST(Timing, APrefetchedLineIsWaitedForUntilItIsThere) {
  hw::ScalarCoreParameters p = small_core();
  p.instruction_prefetch = 1;
  for (const std::int64_t more : {0, 7, 8, 9, 50}) {
    Bench bench("snippets", p);
    bench.surroundings().prefetch_cycles = more;
    const std::int64_t fill = bench.surroundings().fill_cycles;
    EXPECT_EQ(bench.run("eight_adds"), 8 + fill);
    EXPECT_EQ(bench.run("after_eight_adds"), 2 + std::max<std::int64_t>(0, more - 8)) << more;
    EXPECT_EQ(bench.run("after_eight_adds"), 2);
    EXPECT_EQ(bench.core().counters().instruction_misses, 1u);
  }
}

TEST(Timing, FetchFreeOfChargeTakesNoTime) {
  hw::ScalarCoreParameters p = small_core();
  p.instruction_fetch = "free";
  Bench bench("snippets", p);
  EXPECT_EQ(bench.run("eight_adds"), 8);
  EXPECT_TRUE(bench.surroundings().fills.empty());
  EXPECT_EQ(bench.core().counters().instruction_stall_cycles, 0u);
}

TEST(Timing, DataCacheHoldsItsWaysAndNoMore) {
  Bench bench("snippets");
  const hw::ScalarCoreParameters p = small_core();
  const std::uint64_t way = static_cast<std::uint64_t>(p.data_cache.count / p.data_cache_ways);
  const std::uint64_t base = CM384_PRIVATE_BASE + 0x100000;
  const auto touch = [&](std::uint64_t i) {
    bench.core().set_x(11, base + i * way);
    return bench.run("store_word");
  };
  touch(0);
  for (std::uint64_t i = 0; i < 4; ++i) touch(i);
  for (std::uint64_t i = 0; i < 4; ++i) EXPECT_EQ(touch(i), 1) << i;
  EXPECT_EQ(bench.core().counters().write_backs, 0u);
  EXPECT_EQ(touch(4), 1 + bench.surroundings().fill_cycles);
  EXPECT_EQ(bench.core().counters().write_backs, 1u);
  EXPECT_EQ(touch(0), 1 + bench.surroundings().fill_cycles);  // the oldest had gone
  EXPECT_EQ(touch(2), 1);
  EXPECT_EQ(touch(4), 1);                                     // the turn has moved on to the next way
  EXPECT_EQ(touch(1), 1 + bench.surroundings().fill_cycles);  // which was that of 1
  EXPECT_EQ(bench.core().counters().write_backs, 3u);
}

TEST(Timing, UbufferTakesItsParameters) {
  Bench bench("snippets");
  const hw::ScalarCoreParameters p = small_core();
  bench.core().set_x(11, CM384_UBUFFER_BASE + 64);
  bench.core().set_x(10, 0x1122334455667788);
  EXPECT_EQ(bench.run_warm("store_word"), 1 + p.ubuffer_store);
  EXPECT_EQ(bench.run_warm("load_word"), 1 + p.ubuffer_load);
  EXPECT_EQ(bench.core().x(10), 0x1122334455667788u);
  EXPECT_EQ(bench.core().counters().data_misses, 0u);
}

TEST(Timing, PipeInstructionsStallTheUnitUntilTheirRelease) {
  Bench bench("snippets");
  EXPECT_EQ(bench.run_warm("two_pipes"), 2);
  bench.surroundings().pipe_wait = 10;
  EXPECT_EQ(bench.run("two_pipes"), 20);
  const auto& cycles = bench.surroundings().pipe_cycles;
  EXPECT_EQ(cycles.back() - cycles[cycles.size() - 2], 10);
}

TEST(Timing, ParkingAndComingBackAtOnceCostsNothing) {
  Bench plain("snippets"), parking("snippets");
  parking.surroundings().park_fills = true;
  for (Bench* bench : {&plain, &parking}) {
    bench->core().set_x(11, bench->address("buffer"));
  }
  EXPECT_EQ(plain.run("load_then_pipe"), parking.run("load_then_pipe"));
  parking.surroundings().park_next = true;
  EXPECT_EQ(plain.run("load_then_pipe"), parking.run("load_then_pipe"));
  EXPECT_EQ(plain.core().instructions(), parking.core().instructions());
  EXPECT_EQ(parking.surroundings().pipes.size(), 2u);
}

TEST(Timing, AParkedInstructionGoesOnWhenResumed) {
  Bench bench("snippets");
  bench.run("one_pipe");
  bench.surroundings().park_next = true;
  ScalarCore& core = bench.core();
  core.set_pc(bench.address("one_pipe"));
  const std::int64_t begin = core.cycle();
  ASSERT_EQ(core.run(begin + 1000), Stop::parked);
  EXPECT_EQ(core.pc(), bench.address("one_pipe"));
  core.resume(begin + 500);
  ASSERT_EQ(core.run(begin + 1000), Stop::breakpoint);
  EXPECT_EQ(bench.surroundings().pipe_cycles.back(), begin + 500);
  EXPECT_EQ(core.cycle(), begin + 501);
}

TEST(Timing, TheLimitStopsAtTheNextBlock) {
  Bench bench("snippets");
  bench.run("loop_of_ten");
  ScalarCore& core = bench.core();
  core.set_x(10, 0);
  core.set_x(11, 1000);
  core.set_pc(bench.address("count_to"));
  const std::int64_t begin = core.cycle();
  const hw::ScalarCoreParameters p = small_core();
  ASSERT_EQ(core.run(begin + 300), Stop::limit);
  EXPECT_GE(core.cycle(), begin + 300);
  EXPECT_LE(core.cycle(), begin + 300 + 2 + p.taken_branch);
  while (core.run(core.cycle() + 7) == Stop::limit) {
  }
  // Cut into slices or not: the same time.
  const std::int64_t sliced = core.cycle() - begin - bench.surroundings().fill_cycles;
  core.set_x(10, 0);
  EXPECT_EQ(bench.run("count_to"), sliced);
}

TEST(Timing, CleaningCostsALineEach) {
  Bench bench("snippets");
  bench.core().set_x(11, bench.address("buffer"));
  bench.core().set_x(12, 640);
  const hw::ScalarCoreParameters p = small_core();
  EXPECT_EQ(bench.run_warm("clean_range"), 1 + 10 * p.cache_clean_line);
}

TEST(Timing, EveryParameterMovesItsSnippet) {
  struct Knob {
    int hw::ScalarCoreParameters::*field;
    const char* snippet;
  };
  for (const Knob& knob : {Knob{&hw::ScalarCoreParameters::load_use, "load_use"},
                           {&hw::ScalarCoreParameters::multiply, "multiply_use"},
                           {&hw::ScalarCoreParameters::divide, "divide_use"},
                           {&hw::ScalarCoreParameters::float_operation, "float_use"},
                           {&hw::ScalarCoreParameters::float_divide, "float_divide_use"},
                           {&hw::ScalarCoreParameters::float_square_root, "float_root_use"},
                           {&hw::ScalarCoreParameters::taken_branch, "call_and_return"},
                           {&hw::ScalarCoreParameters::branch_mispredict, "forward_taken"},
                           {&hw::ScalarCoreParameters::trap, "handled_trap"}}) {
    hw::ScalarCoreParameters slower = small_core();
    slower.*knob.field += 1;
    Bench before("snippets"), after("snippets", slower);
    EXPECT_GT(after.run_warm(knob.snippet), before.run_warm(knob.snippet)) << knob.snippet;
  }
}

}  // namespace
}  // namespace cm384::npu::testing::timing_test
