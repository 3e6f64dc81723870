// FusedCombine: what comes out equals the host's reference bit for bit, in both payload modes at the same
// times, whichever way a row says that it has arrived.
#include <gtest/gtest.h>

#include <tuple>

#include "testbenches/runs/machine_run.h"

namespace cm384::testing::combine_test {
namespace {

using studies::CombineCase;
using studies::CombineReading;

void expect_sums(CombineCase setting, const Changes& changes = {}) {
  const std::string what = setting.routing + ", completion by " + setting.completion;
  setting.full = true;
  const CombineReading full = run_combine(setting, changes);
  ASSERT_TRUE(full.combine.correct.has_value()) << what;
  EXPECT_TRUE(*full.combine.correct) << what << ": " << full.combine.first_difference;
  EXPECT_EQ(full.combine.tasks.size(), static_cast<std::size_t>(setting.ranks * setting.iterations)) << what;
  setting.full = false;
  const CombineReading control = run_combine(setting, changes);
  EXPECT_FALSE(control.combine.correct.has_value()) << what;
  EXPECT_EQ(times_differ(full.combine, control.combine), "") << what;
}

class Completion : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(EachWay, Completion, ::testing::Values("flag", "atomic"),
                         [](const auto& way) { return std::string(way.param); });

TEST_P(Completion, SumsOfUniformRoutingThreeTimesWithSkew) {
  CombineCase setting = small_combine(8, 16, 512, 16);
  setting.completion = GetParam();
  setting.iterations = 3;  // the third call uses the half of the windows that the first has left
  setting.start_skew = 10_us;
  setting.check_hazards = "on";
  expect_sums(setting);
}

TEST_P(Completion, SumsOfSkewedRouting) {
  CombineCase setting = small_combine(20, 12, 512, 16);
  setting.completion = GetParam();
  setting.routing = "zipf:1.2";
  expect_sums(setting);
}

TEST_P(Completion, SumsWhereRanksHaveUnlikeBatches) {
  CombineCase setting = small_combine(12, 8, 512, 16);
  setting.completion = GetParam();
  setting.batches = "uniform:1..16";
  setting.shared_copies = 2;
  setting.iterations = 3;
  expect_sums(setting);
}

TEST_P(Completion, SumsOfRanksThatHoldAllExperts) {
  CombineCase setting = small_combine(12, 8, 512, 16);
  setting.completion = GetParam();
  setting.expert_ranks = 5;
  setting.shared_copies = 1;
  setting.iterations = 3;
  expect_sums(setting);
}

TEST_P(Completion, SumsOfTheRecordedRouting) {
  CombineCase setting = small_combine(60, 8, 512, 16);
  setting.completion = GetParam();
  setting.routing = "trace:" + sample_trace();
  expect_sums(setting);
}

TEST(Combine, SumsOfTheWholeRecording) {
  if (full_trace().empty()) GTEST_SKIP() << "../shared/traces is not there; the repository has a part of it";
  CombineCase setting = small_combine(60, 8, 512, 16);
  setting.routing = "trace:" + full_trace();
  setting.drop_repeats = true;
  expect_sums(setting);
}

// The shared expert's rows come back with the others, come from the rank itself, or are left out.
TEST(Combine, SumsWithSharedExperts) {
  for (const bool own : {false, true}) {
    CombineCase setting = small_combine(12, 8, 512, 16);
    setting.shared_copies = 3;
    setting.no_shared_output = !own;
    setting.placement = "strided";
    expect_sums(setting);
  }
  CombineCase none = small_combine(8, 4, 256, 8);
  none.no_shared_output = true;
  expect_sums(none);
}

TEST(Combine, SumsAtOddSizes) {
  for (const auto& [batch, hidden, cores] :
       {std::tuple{1, 32, 1}, std::tuple{5, 96, 3}, std::tuple{7, 2080, 48}}) {
    CombineCase setting = small_combine(8, batch, hidden, cores);
    setting.top_k = 3;
    setting.experts = 17;
    setting.check_hazards = "on";
    expect_sums(setting);
  }
}

// A rank with more rows than one load of triples takes.
TEST(Combine, SumsOfAHotExpert) {
  CombineCase setting = small_combine(16, 96, 64, 1);
  setting.top_k = 2;
  setting.experts = 16;
  setting.routing = "zipf:3";
  expect_sums(setting);
}

// Atomic adds to one word of a token against 32 B stores of their own: both take their time at the target.
TEST(Combine, CompletionByAtomicAddIsAMechanismOfItsOwn) {
  CombineCase setting = small_combine(8, 16, 512, 16);
  const CombineReading flag = run_combine(setting);
  setting.completion = "atomic";
  const CombineReading atomic = run_combine(setting);
  EXPECT_NE(times_differ(flag.combine, atomic.combine), "");
  EXPECT_NEAR(atomic.combine.kernel_us.mean / flag.combine.kernel_us.mean, 1.0, 0.1);
}

TEST(Combine, TheDispatchBeforeItIsThatOfRunDispatch) {
  const CombineCase setting = small_combine(8, 16, 512, 16);
  EXPECT_EQ(times_differ(run_combine(setting).dispatch, run_dispatch(setting)), "");
}

}  // namespace
}  // namespace cm384::testing::combine_test
