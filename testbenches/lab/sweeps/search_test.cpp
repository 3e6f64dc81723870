// Bisection against functions whose border is known.
#include "lab/sweeps/search.h"

#include <gmock/gmock.h>

#include <cmath>

#include "lab/sweeps/sweep.h"
#include "testbenches/lab/sweeps/stand_in_subject.h"

namespace cm384::sweeps::search_test {
namespace {

using ::testing::HasSubstr;

struct Ended {
  std::optional<std::string> found;
  std::string reason;
  int runs = 0;
};

// Runs a search over `axis` where a value meets the target if `meets` says so.
template <class Meets>
Ended search(const std::string& axis, const std::string& find, Meets&& meets) {
  StandInSubject subject;
  const Plan plan = parse_plan(
      "study = \"dispatch\"\n[[axis]]\n" + axis + "\n[find]\nmetric = \"share\"\nat_most = 1\n" + find,
      "s.toml", subject);
  Search search(*plan.find, plan.axes.front());
  Ended ended;
  while (!search.done()) {
    const auto values = search.ask();
    EXPECT_FALSE(values.empty()) << "a search that neither asks nor ends";
    if (values.empty() || ended.runs > 100) break;
    for (const std::string& value : values) {
      ++ended.runs;
      search.tell(value, meets(*plan.axes.front().scale.number(value)));
    }
  }
  ended.found = search.found();
  ended.reason = search.reason();
  return ended;
}

const std::string kRate = "key = \"link.rate\"\nfrom = \"1GB/s\"\nto = \"400GB/s\"\nscale = \"logarithmic\"";
const std::string kFindRate = "axis = \"link.rate\"\n";

TEST(Search, FindsTheSmallestWithinItsResolution) {
  for (const double border : {1.5e9, 37.3e9, 399e9}) {
    const Ended ended = search(kRate, kFindRate, [&](double rate) { return rate >= border; });
    ASSERT_TRUE(ended.found) << ended.reason;
    const double found = *parse_quantity(*ended.found);
    EXPECT_GE(found, border);
    EXPECT_LE(found, border * 1.012);
    EXPECT_LE(ended.runs, 2 + static_cast<int>(std::ceil(std::log2(std::log(400) / std::log(1.01)))));
  }
}

TEST(Search, FindsTheLargest) {
  const Ended ended =
      search(kRate, kFindRate + "best = \"largest\"\n", [](double rate) { return rate <= 37.3e9; });
  ASSERT_TRUE(ended.found);
  EXPECT_LE(*parse_quantity(*ended.found), 37.3e9);
  EXPECT_GE(*parse_quantity(*ended.found), 37.3e9 / 1.012);
}

TEST(Search, OfAListFindsTheExactValue) {
  const std::string ranks = "key = \"ranks\"\nvalues = [8, 16, 32, 64, 128, 256]";
  for (const double border : {9.0, 64.0, 200.0}) {
    const Ended ended = search(ranks, "axis = \"ranks\"\n", [&](double n) { return n >= border; });
    ASSERT_TRUE(ended.found);
    EXPECT_EQ(*ended.found, border == 9 ? "16" : border == 64 ? "64" : "256");
  }
  const Ended largest =
      search(ranks, "axis = \"ranks\"\nbest = \"largest\"\n", [](double n) { return n <= 100; });
  EXPECT_EQ(largest.found, "64");
}

TEST(Search, SaysWhyNothingIsFound) {
  EXPECT_THAT(search(kRate, kFindRate, [](double) { return false; }).reason,
              HasSubstr("missed at both ends"));
  EXPECT_THAT(
      search(kRate, kFindRate, [](double rate) { return rate > 1.1e9 ? std::nullopt : std::optional(false); })
          .reason,
      HasSubstr("failed"));
}

TEST(Search, TheBestEndMeetsTheTargetAtOnce) {
  const Ended ended = search(kRate, kFindRate, [](double) { return true; });
  EXPECT_EQ(ended.found, "1GB/s");
  EXPECT_EQ(ended.runs, 2);
  const Ended upside_down = search(kRate, kFindRate, [](double rate) { return rate < 10e9; });
  EXPECT_THAT(upside_down.reason, HasSubstr("met at the best end of the axis and missed at the other"));
}

TEST(Pareto, MarksWhatNoOtherRowBeats) {
  using studies::Row;
  studies::Rows rows{Row{{"a", 1}, {"b", 9}}, Row{{"a", 2}, {"b", 5}},
                     Row{{"a", 3}, {"b", 6}}, Row{{"a", 4}, {"b", 1}},
                     Row{{"a", 4}, {"b", 2}}, Row{{"a", 2}, {"b", 5}},
                     Row{{"a", 0}},           Row{{"a", 0}, {"b", 0}, {"failed", "hung"}}};
  mark_pareto(rows, {{"a", true}, {"b", true}});
  std::string marks;
  for (const Row& row : rows) marks += *row["pareto"].boolean() ? '1' : '0';
  EXPECT_EQ(marks, "11010100");
  mark_pareto(rows, {{"a", false}, {"b", true}});
  marks.clear();
  for (const Row& row : rows) marks += *row["pareto"].boolean() ? '1' : '0';
  EXPECT_EQ(marks, "00010000");
}

}  // namespace
}  // namespace cm384::sweeps::search_test
