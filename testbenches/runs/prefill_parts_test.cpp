// What a prefill's parts are measured by, and how two microbatches share a die: exchanges by SDMA against
// what a die can write and beside a kernel, tables of a step against what its kernel counts, a composed
// schedule against its rules and closed forms.
#include <gtest/gtest.h>

#include <numeric>

#include "testbenches/runs/machine_run.h"
#include "traces/random.h"
#include "workloads/collectives/exchange.h"
#include "workloads/kernels/op_cases.h"
#include "workloads/moe/moe_case.h"
#include "workloads/operators/all_to_all/step.h"
#include "workloads/operators/reference/expert_placement.h"
#include "workloads/prefill/prefill_schedule.h"

namespace cm384::testing::prefill_parts_test {
namespace {

using studies::ExchangeCase;
using studies::kCubeUnit;
using studies::kFabricUnit;
using studies::kVectorUnit;
using studies::PartKind;
using studies::PlannedPart;
using studies::Slowdowns;
using Chains = std::vector<std::vector<PlannedPart>>;
using Times = std::vector<std::vector<double>>;

Times ends_of(const Chains& chains, const Slowdowns& slowdowns = {}) {
  return studies::schedule_of(chains, slowdowns).ends;
}

TEST(Schedule, PartsOfOneMicrobatchFollowOneAnother) {
  const auto ends = ends_of({{{3, kCubeUnit}, {5, kFabricUnit}, {2, kCubeUnit}}});
  EXPECT_EQ(ends, (Times{{3, 8, 10}}));
}

// Layers of a part on cores and one on the fabric, from two microbatches: the larger of both twice, or both
// in turn where neither fills its unit.
TEST(Schedule, TwoMicrobatchesHideWhatIsShorter) {
  constexpr int kLayers = 20;
  for (const auto& [cores, fabric] : {std::pair{7.0, 3.0}, {3.0, 7.0}, {5.0, 5.0}}) {
    std::vector<PlannedPart> chain;
    for (int layer = 0; layer < kLayers; ++layer) {
      chain.push_back({cores, kCubeUnit | kVectorUnit});
      chain.push_back({fabric, kFabricUnit});
    }
    const auto ends = ends_of({chain, chain});
    EXPECT_DOUBLE_EQ((ends[1].back() - ends[1][1]) / (kLayers - 1), 2 * std::max(cores, fabric));
  }
}

TEST(Schedule, TheOneThatHasWaitedLongestIsNext) {
  // Both wait for the cube cores that the first has until 10; the third chain has waited longer.
  const auto ends =
      ends_of({{{10, kCubeUnit}}, {{6, kVectorUnit}, {1, kCubeUnit}}, {{4, kFabricUnit}, {1, kCubeUnit}}});
  EXPECT_EQ(ends[2].back(), 11);
  EXPECT_EQ(ends[1].back(), 12);
}

// Nothing shares a unit, and no part that could run waits.
TEST(Schedule, UnitsAreOneParts) {
  traces::Random random(7, 1);
  for (int round = 0; round < 50; ++round) {
    Chains chains(2);
    for (auto& chain : chains) {
      for (int n = 0; n < 30; ++n)
        chain.push_back(
            {1.0 + static_cast<double>(random.below(9)), 1 + static_cast<unsigned>(random.below(7))});
    }
    const auto ends = ends_of(chains);
    const auto start = [&](std::size_t m, std::size_t n) { return ends[m][n] - chains[m][n].us; };
    double before = 0;
    for (std::size_t n = 0; n < 30; ++n) {
      bool ends_something = start(0, n) == before;
      for (std::size_t k = 0; k < 30; ++k) {
        const bool shares = (chains[0][n].units & chains[1][k].units) != 0;
        EXPECT_TRUE(!shares || ends[1][k] <= start(0, n) || ends[0][n] <= start(1, k));
        ends_something = ends_something || (shares && ends[1][k] == start(0, n));
      }
      EXPECT_TRUE(ends_something);
      before = ends[0][n];
    }
  }
}

PlannedPart kernel(double us) {
  return {us, kCubeUnit | kVectorUnit, PartKind::attention};
}
PlannedPart copies(double us) {
  return {us, kFabricUnit, PartKind::exchange};
}
Slowdowns of_each_other(double of_kernel, double of_copies) {
  Slowdowns made;
  made.set(PartKind::attention, PartKind::exchange, of_kernel);
  made.set(PartKind::exchange, PartKind::attention, of_copies);
  return made;
}

// Two that halve each other's rate take twice, as if one after the other; alone they take what they take.
TEST(Schedule, PartsAtHalfRateTakeTwice) {
  EXPECT_EQ(ends_of({{kernel(5)}, {copies(5)}}, of_each_other(2, 2)), (Times{{10}, {10}}));
  EXPECT_EQ(ends_of({{kernel(5)}, {kernel(5)}}, of_each_other(2, 2)), (Times{{5}, {10}}));
  EXPECT_EQ(ends_of({{kernel(5), copies(5)}}, of_each_other(2, 2)), (Times{{5, 10}}));
}

// Kernels of 4 and 6 take twice as long beside copies of 12 and 1, which take half as long again. The first
// kernel ends at 8; the copies, 18 at their slow rate, at 18, when 5 of the second kernel are done; the last
// copies at 19.5, when 0.75 more are; the rest of it runs alone.
TEST(Schedule, WhatIsLeftRunsAtTheRateOfWhatIsBesideIt) {
  const studies::Schedule made =
      studies::schedule_of({{kernel(4), kernel(6)}, {copies(12), copies(1)}}, of_each_other(2, 1.5));
  EXPECT_EQ(made.starts, (Times{{0, 8}, {0, 18}}));
  EXPECT_EQ(made.ends, (Times{{8, 19.75}, {18, 19.5}}));
}

// Of its time alone a part has done what it had not to do when the other was through.
TEST(Overlap, AsMuchSlowerAsTheTimeTogetherSays) {
  EXPECT_EQ(studies::slowdown_while_both(10, 10, 4), 1);
  EXPECT_EQ(studies::slowdown_while_both(10, 20, 20), 2);
  EXPECT_EQ(studies::slowdown_while_both(10, 15, 10), 2);  // 5 done in 10, 5 alone
  EXPECT_EQ(studies::slowdown_while_both(10, 12, 0), 1);
}

// Rows by a norm and an exchange: 0.8 TB/s and 0.27 TB/s of a die's memory. HBM has room for both; at a
// quarter of its rate it has not, and both wait.
TEST(Overlap, SharesMemoryThatIsShort) {
  const auto overlap = [](const Changes& changes) {
    return run_overlap(2, {studies::operator_of({.name = "rms-norm", .shape = "1024x7168"})}, changes);
  };
  const studies::Overlap whole = overlap({}), quarter = overlap({"hbm.stacks=1"});
  for (const double slowdown : {whole.operator_slowdown, whole.exchange_slowdown}) {
    EXPECT_GT(slowdown, 0.98);
    EXPECT_LT(slowdown, 1.15);
  }
  EXPECT_GT(quarter.operator_slowdown, 1.5);
  EXPECT_GT(quarter.exchange_slowdown, 1.15);
  EXPECT_NEAR(whole.exchange_us, whole.operator_us, 0.3 * whole.operator_us);
}

double exchange_us(const ExchangeCase& exchange) {
  return run_exchange(exchange).max;
}

// A die writes to others at table 1's rate, but for its sibling, which has a link of its own.
TEST(Exchange, IsAsLongAsADieWrites) {
  constexpr std::uint64_t kBytes = 4 << 20;
  constexpr double kWrites = 137.2e3;  // bytes a microsecond
  const double four = exchange_us(ExchangeCase::even(4, kBytes));
  EXPECT_GT(four, 2 * kBytes / kWrites * 0.99);
  EXPECT_LT(four, 2 * kBytes / kWrites * 1.1);
  const double twice = exchange_us(ExchangeCase::even(4, 2 * kBytes));
  EXPECT_NEAR(twice - four, four, 0.1 * four);
}

// Bytes that end within a line cost no more than the line.
TEST(Exchange, BeginsWhatGoesToARankOnALine) {
  constexpr std::uint64_t kBytes = 1 << 20;
  const double whole = exchange_us(ExchangeCase::even(3, kBytes));
  EXPECT_NEAR(exchange_us(ExchangeCase::even(3, kBytes - 480)), whole, 0.01 * whole);
}

TEST(Exchange, TheRankWithMostBinds) {
  constexpr std::uint64_t kBytes = 1 << 20;
  ExchangeCase uneven = ExchangeCase::even(4, kBytes);
  const double even = exchange_us(uneven);
  for (std::size_t source = 0; source < 4; ++source) uneven.bytes[source][2] = 4 * kBytes;
  const studies::Summary to_one = run_exchange(uneven);
  EXPECT_GT(to_one.max, 2.5 * even);
  ExchangeCase none = ExchangeCase::even(3, 0);
  none.bytes[0][1] = kBytes;
  const studies::Summary one = run_exchange(none);
  EXPECT_GT(one.p50, 5);  // of sender and receiver; the third has nothing to do
  EXPECT_EQ(one.min, 0);
}

TEST(Steps, PackCountsAndOrdersAsTheTablesOfAllRanksSay) {
  for (const int rank : {0, 3}) {
    studies::DispatchCase setting = small_dispatch(4, 24, 256, 6);
    setting.redundant = 4;
    const reference::DispatchCase layer = studies::make_moe_case(3, setting);
    studies::OpSetting op{.groups = 3, .graph = true, .full = true};
    const studies::OpReading reading = run_operator(
        op, [&] { return std::make_unique<operators::AllToAllStep>(CM384_STEP_PACK, layer, rank); });
    EXPECT_TRUE(reading.correct && *reading.correct) << reading.first_difference;
  }
}

}  // namespace
}  // namespace cm384::testing::prefill_parts_test
