// Rows that only one of two results has: each alone, since either would hide that the other goes unnoticed.
#include <gtest/gtest.h>

#include "report/comparison.h"

namespace cm384::report {
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

}  // namespace
}  // namespace cm384::report
