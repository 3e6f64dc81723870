// Rows that only one of two results has: each alone, since either would hide that the other goes unnoticed.
#include <gtest/gtest.h>

#include <string>

#include "lab/report/comparison.h"
#include "lab/report/junit.h"

namespace cm384::report::lonely_rows_test {
namespace {

Json result(std::initializer_list<int> ranks) {
  Json document = {{"study", "dispatch"}, {"rows", Json::array()}};
  for (const int n : ranks) document["rows"].push_back({{"ranks", n}, {"latency_us", 10.0}});
  return document;
}

void expect_one_lonely_row(const Json& before, const Json& after, const char* in_before,
                           const char* in_after) {
  Tolerances loose;
  loose.set_default({.relative = 10});
  const ResultComparison comparison = compare_results(before, after, loose);
  EXPECT_FALSE(comparison.within());
  const studies::Rows rows = change_rows(comparison);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(*rows[0]["row"].text(), "ranks=16");
  EXPECT_EQ(*rows[0]["before"].text(), in_before);
  EXPECT_EQ(*rows[0]["after"].text(), in_after);
  EXPECT_EQ(*rows[0]["status"].text(), "past");
  EXPECT_NE(summary_line(comparison).find("1 rows are in one result only"), std::string::npos);
}

TEST(LonelyRows, ARowThatTheNewResultLacksDoesNotPass) {
  expect_one_lonely_row(result({8, 16}), result({8}), "there", "missing");
}

TEST(LonelyRows, ARowThatTheOldResultLacksDoesNotPass) {
  expect_one_lonely_row(result({8}), result({8, 16}), "missing", "there");
}

// A direction lets the other one pass, and only that.
TEST(Direction, LetsTheOtherOnePass) {
  const auto allows = [](Tolerance::Direction direction, double before, double after) {
    return Tolerance{.relative = 0.1, .direction = direction}.allows(before, after);
  };
  for (const double sign : {1.0, -1.0}) {
    EXPECT_TRUE(allows(Tolerance::Direction::up, 10 * sign, 10 * sign - 5));
    EXPECT_FALSE(allows(Tolerance::Direction::up, 10 * sign, 10 * sign + 5));
    EXPECT_TRUE(allows(Tolerance::Direction::up, 10 * sign, 10 * sign + 0.5));
    EXPECT_TRUE(allows(Tolerance::Direction::down, 10 * sign, 10 * sign + 5));
    EXPECT_FALSE(allows(Tolerance::Direction::down, 10 * sign, 10 * sign - 5));
    EXPECT_TRUE(allows(Tolerance::Direction::down, 10 * sign, 10 * sign - 0.5));
    EXPECT_FALSE(allows(Tolerance::Direction::both, 10 * sign, 10 * sign + 5));
    EXPECT_FALSE(allows(Tolerance::Direction::both, 10 * sign, 10 * sign - 5));
  }
}

// A change is a share of what was before.
TEST(Change, IsAShareOfTheOldValue) {
  Json after = result({8});
  after["rows"][0]["latency_us"] = 15.0;
  const ResultComparison comparison = compare_results(result({8}), after, {});
  EXPECT_DOUBLE_EQ(*comparison.rows.at(0).changes.at(0).relative, 0.5);
}

TEST(JunitCounts, ARowWithTwoChangesIsOneFailedCase) {
  Json before = result({8}), after = result({8});
  before["rows"][0]["bandwidth_GBps"] = 1.0;
  after["rows"][0]["bandwidth_GBps"] = 2.0;
  after["rows"][0]["latency_us"] = 15.0;
  const std::string text = to_junit({{"p2p", compare_results(before, after, {}), false}});
  EXPECT_NE(text.find("failures=\"1\""), std::string::npos) << text;
}

}  // namespace
}  // namespace cm384::report::lonely_rows_test
