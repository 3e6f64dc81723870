#include "lab/report/comparison.h"

#include <gmock/gmock.h>

#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>
#include <sstream>

#include "lab/report/junit.h"
#include "testbenches/hw/refusal.h"

namespace cm384::report::comparison_test {
namespace {

using ::testing::HasSubstr;

Json sample() {
  return Json::parse(R"({
    "schema": 1, "study": "dispatch", "machine": "node8", "seed": 1, "complete": true,
    "parameters": {"batch": 128}, "machine_overrides": {},
    "rows": [
      {"ranks": 8, "path": "aiv-direct", "latency_us": {"mean": 100.0, "p99": 120.0}, "correct": true,
       "phases": [{"name": "init", "mean_us": 2.0}, {"name": "send", "mean_us": 51.0}]},
      {"ranks": 16, "path": "aiv-direct", "latency_us": {"mean": 110.0, "p99": 130.0}, "correct": true,
       "phases": [{"name": "init", "mean_us": 2.0}, {"name": "send", "mean_us": 61.0}]}],
    "inputs": [{"path": "a.jsonl", "hash": "fnv1a64:1"}],
    "simulator": {"wall_s": 1.5}})");
}

TEST(Comparison, OfAResultWithItselfNothingMoved) {
  Json again = sample();
  again["simulator"]["wall_s"] = 99;
  again["invocation"] = {{"command", "cm384 run dispatch"}, {"date", "2026-05-04T12:00:00Z"}};
  again["inputs"][0]["path"] = "elsewhere/a.jsonl";
  const ResultComparison comparison = compare_results(sample(), again, {});
  EXPECT_EQ(comparison.rows.size(), 2u);
  EXPECT_EQ(comparison.fields(), 10u);  // mean, p99, correct, two phases, in each row
  EXPECT_EQ(comparison.moved(), 0u);
  EXPECT_TRUE(comparison.conditions.empty());
  EXPECT_TRUE(comparison.within());
  EXPECT_EQ(summary_line(comparison), "dispatch: 2 rows, 10 fields compared: nothing moved");
}

// A comment above a kernel's line moves it; what a note says beside it is compared.
TEST(Comparison, TakesNoteOfNoLinesOfSource) {
  Json before = sample(), after = sample();
  before["notes"] = {"automatic order: main at copies.cpp:15: V waited 9 times"};
  after["notes"] = {"automatic order: main at copies.cpp:170: V waited 9 times"};
  EXPECT_TRUE(compare_results(before, after, {}).within());
  after["notes"] = {"automatic order: main at copies.cpp:15: V waited 8 times"};
  EXPECT_FALSE(compare_results(before, after, {}).within());
  const Tolerances wide = parse_tolerances("relative = 0.2\n", "wide.toml");
  EXPECT_TRUE(compare_results(before, after, wide).within());
  after["notes"] = {"automatic order: main at copies.cpp:15: V waited once"};
  EXPECT_FALSE(compare_results(before, after, wide).within());
  after["notes"] = {"automatic order: main at others.cpp:15: V waited 9 times"};
  EXPECT_FALSE(compare_results(before, after, {}).within());
}

TEST(Comparison, NamesRowFieldAndAmount) {
  Json after = sample();
  after["rows"][1]["latency_us"]["mean"] = 112.2;
  after["rows"][0]["phases"][1]["mean_us"] = 25.5;
  const ResultComparison comparison = compare_results(sample(), after, {});
  ASSERT_EQ(comparison.rows[1].changes.size(), 1u);
  EXPECT_EQ(comparison.rows[1].key, "ranks=16 path=aiv-direct");
  EXPECT_EQ(comparison.rows[1].changes[0].field, "latency_us.mean");
  EXPECT_NEAR(*comparison.rows[1].changes[0].relative, 0.02, 1e-12);
  EXPECT_EQ(comparison.rows[0].changes[0].field, "phases.send.mean_us");
  EXPECT_NEAR(*comparison.rows[0].changes[0].relative, -0.5, 1e-12);
  EXPECT_FALSE(comparison.within());
  const studies::Rows rows = change_rows(comparison);
  EXPECT_EQ(*rows[1]["change"].text(), "+2 %");
  EXPECT_EQ(*rows[1]["status"].text(), "past");
  EXPECT_EQ(summary_line(comparison), "dispatch: 2 rows, 10 fields compared: 2 moved, 2 past tolerance");
}

// A change that holds on nine of ten members, and one that holds on eight.
TEST(Comparison, AChangeIsSignificantIfItHoldsAcrossMembers) {
  const auto result = [](double mean, std::vector<double> members, const char* first = "m1") {
    Json document = sample();
    document["rows"][0]["latency_us"]["mean"] = mean;
    document["ensemble"] = {{"names", {first, "m2"}},
                            {"values", {{{"latency_us.mean", members}}, Json::object()}}};
    return document;
  };
  const std::vector<double> before(10, 100);
  std::vector<double> nine(10, 105), eight(10, 105);
  nine[3] = 99;
  eight[3] = eight[4] = 99;
  const auto significant = [&](const Json& after) {
    return compare_results(result(100, before), after, {}).rows[0].changes[0].significant;
  };
  // Of changes of 5 % nine times and -1 % once the 5th percentile is 45 % of the way up from the lowest.
  const Change change = compare_results(result(100, before), result(105, nine), {}).rows[0].changes[0];
  ASSERT_TRUE(change.interval.has_value());
  EXPECT_NEAR(change.interval->first, -0.01 + 0.45 * 0.06, 1e-12);
  EXPECT_NEAR(change.interval->second, 0.05, 1e-12);
  EXPECT_EQ(*change_rows(compare_results(result(100, before), result(105, nine), {}))[0]["interval"].text(),
            "+1.7 to +5 %");
  // Members that lie far apart, all slower by a tenth: what they share is none of the change.
  std::vector<double> apart, slower;
  for (int member = 0; member < 10; ++member) {
    apart.push_back(50 + 20.0 * member);
    slower.push_back(apart.back() * 1.1);
  }
  const Change paired = compare_results(result(100, apart), result(110, slower), {}).rows[0].changes[0];
  EXPECT_NEAR(paired.interval->first, 0.1, 1e-12);
  EXPECT_NEAR(paired.interval->second, 0.1, 1e-12);
  EXPECT_FALSE(compare_results(result(100, std::vector<double>(10, 0)), result(105, nine), {})
                   .rows[0]
                   .changes[0]
                   .interval.has_value());
  EXPECT_EQ(significant(result(105, nine)), true);
  EXPECT_EQ(significant(result(105, eight)), false);
  EXPECT_EQ(significant(result(95, std::vector<double>(10, 99))), true);
  EXPECT_EQ(significant(result(100.5, before)), false);
  EXPECT_FALSE(significant(result(105, nine, "other")).has_value());
  EXPECT_FALSE(significant(result(105, {1, 2})).has_value());
  Json plain = sample();
  plain["rows"][0]["latency_us"]["mean"] = 105;
  EXPECT_FALSE(significant(plain).has_value());
  EXPECT_TRUE(change_rows(compare_results(sample(), plain, {}))[0]["significant"].empty());
}

// The limit of a tolerance, on both sides.
TEST(Comparison, ToleranceIsTight) {
  Tolerances tolerances;
  tolerances.add("latency_us.*", {.relative = 0.125});
  Json after = sample();
  after["rows"][0]["latency_us"]["mean"] = 112.5;
  EXPECT_TRUE(compare_results(sample(), after, tolerances).within());
  EXPECT_EQ(compare_results(sample(), after, tolerances).moved(), 1u);
  after["rows"][0]["latency_us"]["mean"] = 112.6;
  EXPECT_FALSE(compare_results(sample(), after, tolerances).within());
  after["rows"][0]["latency_us"]["mean"] = 87.5;
  EXPECT_TRUE(compare_results(sample(), after, tolerances).within());
  after["rows"][0]["latency_us"]["mean"] = 87.4;
  EXPECT_FALSE(compare_results(sample(), after, tolerances).within());
  after["rows"][0]["latency_us"]["mean"] = 100.0;
  after["rows"][0]["phases"][0]["mean_us"] = 2.001;  // no rule names it
  EXPECT_FALSE(compare_results(sample(), after, tolerances).within());
}

TEST(Comparison, WhatIsNoNumberMustBeEqual) {
  Tolerances loose;
  loose.set_default({.relative = 10});
  Json after = sample();
  after["rows"][0]["correct"] = false;
  EXPECT_FALSE(compare_results(sample(), after, loose).within());
  after["rows"][0]["correct"] = nullptr;
  EXPECT_FALSE(compare_results(sample(), after, loose).within());
  after["rows"][0].erase("correct");
  EXPECT_FALSE(compare_results(sample(), after, loose).within());
  EXPECT_FALSE(compare_results(after, sample(), loose).within());
  loose.add("correct", {.ignore = true});
  EXPECT_TRUE(compare_results(sample(), after, loose).within());
  after = sample();
  after["complete"] = false;
  EXPECT_FALSE(compare_results(sample(), after, loose).within());
}

TEST(Comparison, RowsAreMatchedByTheirConditions) {
  Json after = sample();
  std::swap(after["rows"][0], after["rows"][1]);
  EXPECT_EQ(compare_results(sample(), after, {}).moved(), 0u);
  after["rows"][0]["ranks"] = 32;
  const ResultComparison comparison = compare_results(sample(), after, {});
  ASSERT_EQ(comparison.rows.size(), 3u);
  EXPECT_FALSE(comparison.rows[1].in_after);
  EXPECT_EQ(comparison.rows[2].key, "ranks=32 path=aiv-direct");
  EXPECT_FALSE(comparison.rows[2].in_before);
  EXPECT_FALSE(comparison.within());
  EXPECT_THAT(summary_line(comparison), HasSubstr("2 rows are in one result only"));
  // Rows of equal conditions are taken in their order.
  Json twins = sample();
  twins["rows"][1] = twins["rows"][0];
  Json moved = twins;
  moved["rows"][1]["latency_us"]["mean"] = 1.0;
  EXPECT_EQ(compare_results(twins, moved, {}).rows[1].key, "ranks=8 path=aiv-direct #2");
  EXPECT_EQ(compare_results(twins, moved, {}).moved(), 1u);
}

TEST(Comparison, ConditionsAreToldButDoNotFail) {
  Json after = sample();
  after["parameters"]["batch"] = 64;
  after["machine_overrides"]["die.aiv"] = "40";
  after["inputs"][0]["hash"] = "fnv1a64:2";
  const ResultComparison comparison = compare_results(sample(), after, {});
  ASSERT_EQ(comparison.conditions.size(), 3u);
  EXPECT_EQ(comparison.conditions[0].field, "parameters.batch");
  EXPECT_TRUE(comparison.within());
  EXPECT_THAT(summary_line(comparison), HasSubstr("3 conditions differ"));
  EXPECT_FALSE(comparison.same_conditions());
  // An option that the older result does not know was at its default then.
  Json newer = sample();
  newer["parameters"]["layout"] = "flat";
  EXPECT_TRUE(compare_results(sample(), newer, {}).same_conditions());
  EXPECT_FALSE(compare_results(newer, sample(), {}).same_conditions());
}

TEST(Comparison, OtherStudiesAreRefused) {
  Json after = sample();
  after["study"] = "p2p";
  EXPECT_EQ(refusal([&] { compare_results(sample(), after, {}); }),
            "a result of `dispatch` cannot be compared with one of `p2p`");
}

TEST(Junit, OneCaseARowWithWhatMoved) {
  Json after = sample();
  after["rows"][0]["latency_us"]["mean"] = 105.0;
  after["rows"][1]["path"] = "<a & \"b\">\x01";
  const std::string text = to_junit({{"ep8", compare_results(sample(), after, {}), true},
                                     {"same", compare_results(after, after, {}), false}});
  std::istringstream stream(text);
  boost::property_tree::ptree document;
  boost::property_tree::read_xml(stream, document);
  const auto& suite = document.get_child("testsuites").front().second;
  EXPECT_EQ(suite.get<std::string>("<xmlattr>.name"), "ep8");
  EXPECT_EQ(suite.get<int>("<xmlattr>.tests"), 5);  // conditions, run, three rows
  EXPECT_EQ(suite.get<int>("<xmlattr>.failures"), 3);
  std::vector<std::string> failed;
  for (const auto& [tag, test] : suite) {
    if (tag == "testcase" && test.get_child_optional("failure"))
      failed.push_back(test.get<std::string>("<xmlattr>.name") + "|" + test.get<std::string>("failure"));
  }
  EXPECT_THAT(failed, ::testing::ElementsAre(
                          "ranks=8 path=aiv-direct|latency_us.mean: 100.0 -> 105.0 (+5 %); allowed: exact",
                          "ranks=16 path=aiv-direct|the row is missing",
                          "ranks=16 path=<a & \"b\">?|the row is new"));
  EXPECT_EQ(document.get_child("testsuites").back().second.get<int>("<xmlattr>.failures"), 0);
}

}  // namespace
}  // namespace cm384::report::comparison_test
