// Which fields of a row say what it is of: as results declare them, and of older results by their place.
#include <gtest/gtest.h>

#include "lab/report/comparison.h"
#include "workloads/frame/fields.h"

namespace cm384::report::roles_test {
namespace {

Json document(Json rows, std::optional<std::vector<std::string>> conditions = {}) {
  Json made = {{"study", "transfer"}, {"rows", std::move(rows)}};
  if (conditions) made["conditions"] = *conditions;
  return made;
}

// A result without a unit that stands early is measured: its change is one, and no row that has gone.
TEST(Roles, AnEarlyMeasureIsNoPartOfTheKey) {
  const std::vector<std::string> conditions{"ranks"};
  const Json before = document({{{"ranks", 8}, {"arrived", 100}, {"latency_us", 5.0}}}, conditions);
  const Json after = document({{{"ranks", 8}, {"arrived", 101}, {"latency_us", 5.0}}}, conditions);
  const ResultComparison comparison = compare_results(before, after, {});
  ASSERT_EQ(comparison.rows.size(), 1u);
  EXPECT_EQ(comparison.rows[0].key, "ranks=8");
  ASSERT_EQ(comparison.rows[0].changes.size(), 1u);
  EXPECT_EQ(comparison.rows[0].changes[0].field, "arrived");
  Tolerances wide;
  wide.set_default({.relative = 0.02});
  EXPECT_TRUE(compare_results(before, after, wide).within());
  // Results that do not declare are read as before.
  EXPECT_EQ(compare_results(document(before["rows"]), document(after["rows"]), {}).rows.size(), 2u);
}

// Booleans, and what stands behind a measure, are conditions where they are declared.
TEST(Roles, AConditionMayBeOfAnyKindAndStandAnywhere) {
  const std::vector<std::string> conditions{"simulated", "bytes"};
  const Json rows = {{{"simulated", true}, {"latency_us", 5.0}, {"bytes", 64}},
                     {{"simulated", true}, {"latency_us", 6.0}, {"bytes", 128}}};
  Json turned = rows;
  std::swap(turned[0], turned[1]);
  const ResultComparison comparison =
      compare_results(document(rows, conditions), document(turned, conditions), {});
  EXPECT_EQ(comparison.moved(), 0u);
  EXPECT_EQ(comparison.rows[0].key, "simulated=true bytes=64");
}

TEST(Roles, AResultOfBeforeHasTheConditionsOfTheOther) {
  const Json old = document({{{"ranks", 8}, {"arrived", 100}, {"latency_us", 5.0}}});
  const Json young = document({{{"ranks", 8}, {"arrived", 101}, {"mode", "x"}, {"latency_us", 5.0}}},
                              std::vector<std::string>{"ranks", "mode"});
  const ResultComparison comparison = compare_results(old, young, {});
  ASSERT_EQ(comparison.rows.size(), 1u);
  EXPECT_EQ(comparison.rows[0].key, "ranks=8") << "a condition that came since matches no row of before";
  EXPECT_EQ(comparison.rows[0].changes.size(), 2u);
  EXPECT_EQ(compare_results(young, old, {}).rows.size(), 1u);
}

TEST(Better, IsToldByTheLastUnit) {
  using studies::Better;
  using studies::better_of;
  EXPECT_EQ(better_of("latency_us.mean"), Better::lower);
  EXPECT_EQ(better_of("phases.send.mean_us"), Better::lower);
  EXPECT_EQ(better_of("latency_us.interval[0]"), Better::lower);
  EXPECT_EQ(better_of("bandwidth_GBps"), Better::higher);
  EXPECT_EQ(better_of("tokens_s_npu"), Better::higher);
  EXPECT_EQ(better_of("tokens_s_tflops"), Better::higher);
  EXPECT_EQ(better_of("goodput_rps"), Better::higher);
  EXPECT_EQ(better_of("instructions"), Better::neither);
  EXPECT_EQ(better_of(""), Better::neither);
  EXPECT_EQ(studies::unit_of("tokens_s"), "tokens/s");
  EXPECT_EQ(studies::unit_of("tokens_s_tflops"), "tokens/s per TFLOPS");
  EXPECT_EQ(studies::unit_of("step_s"), "s");
}

}  // namespace
}  // namespace cm384::report::roles_test
