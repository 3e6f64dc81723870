// The verdict of a run by how it ended and by its golden result, and JUnit made of it.
#include "lab/report/verdict.h"

#include <gmock/gmock.h>

#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>
#include <sstream>

#include "lab/report/junit.h"
#include "lab/report/night_page.h"

namespace cm384::report::verdict_test {
namespace {

using ::testing::HasSubstr;

// Of a run with a condition, a time, a rate and a number that gets neither better nor worse.
Json result(double time, double rate = 10, double count = 5) {
  return {{"schema", 1},
          {"study", "kernel"},
          {"machine", "m"},
          {"seed", 1},
          {"complete", true},
          {"parameters", {{"elf", "a.elf"}}},
          {"machine_overrides", Json::object()},
          {"conditions", {"kernel", "check"}},
          {"rows",
           {{{"kernel", "a.elf"},
             {"check", true},
             {"kernel_us", time},
             {"rate_GBps", rate},
             {"instructions", count}}}},
          {"inputs", {{{"path", "a.elf"}, {"hash", "fnv1a64:1"}, {"code", "fnv1a64:2"}}}},
          {"simulator", {{"simulated_us", 7.5}}}};
}

BaselineRun run_of(const char* text) {
  return parse_baseline(text, "baseline.toml").runs.front();
}

BaselineRun plain_run() {
  return run_of("relative = 0.05\n[[run]]\nname = 'a'\ncommand = 'kernel a.elf'");
}

RunVerdict judged(const Json& fresh, const std::optional<Json>& golden, RunEnd end = {},
                  const BaselineRun& run = plain_run()) {
  RunVerdict made;
  made.name = run.name;
  judge(made, run, end, fresh, golden);
  return made;
}

TEST(Verdict, TellsWorseFromBetterByTheUnit) {
  EXPECT_EQ(judged(result(10), result(10)).verdict, Verdict::passed);
  EXPECT_EQ(judged(result(10.5), result(10)).verdict, Verdict::passed);  // as far as it may
  const RunVerdict worse = judged(result(10.6), result(10));
  EXPECT_EQ(worse.verdict, Verdict::worse);
  EXPECT_EQ(worse.reason, "kernel_us +6 %, allowed: 5 % (kernel=a.elf check=true)");
  EXPECT_EQ(judged(result(9), result(10)).verdict, Verdict::improved);
  EXPECT_EQ(judged(result(10, 12), result(10, 10)).verdict, Verdict::improved);
  EXPECT_EQ(judged(result(10, 9), result(10, 10)).verdict, Verdict::worse);
  EXPECT_EQ(judged(result(10, 10, 6), result(10, 10, 5)).verdict, Verdict::moved);
  // The worst of them counts.
  EXPECT_EQ(judged(result(9, 10, 6), result(10, 10, 5)).verdict, Verdict::moved);
  EXPECT_EQ(judged(result(9, 9), result(10, 10)).verdict, Verdict::worse);
}

TEST(Verdict, TheFileMaySayWhatIsBetter) {
  const char* text =
      "[[field]]\nname = 'instructions'\nrelative = 0.1\nbetter = '%s'\n[[run]]\nname = 'a'\ncommand = 'x'";
  const auto with = [&](const char* word) {
    std::string made = text;
    made.replace(made.find("%s"), 2, word);
    return judged(result(10, 10, 4), result(10, 10, 5), {}, run_of(made.c_str())).verdict;
  };
  EXPECT_EQ(with("lower"), Verdict::improved);
  EXPECT_EQ(with("higher"), Verdict::worse);
  EXPECT_EQ(with("neither"), Verdict::moved);
}

TEST(Verdict, HowARunEndedComesBeforeItsNumbers) {
  const auto stopped = [](const char* kind) {
    Json fresh = result(10);
    fresh["stopped"] = {{"kind", kind}, {"report", "it stands\n  here"}};
    return fresh;
  };
  const auto verdict = [&](const Json& fresh, RunEnd end) { return judged(fresh, result(10), end); };
  EXPECT_EQ(verdict(stopped("hang"), {3, "it stands"}).verdict, Verdict::hung);
  EXPECT_EQ(verdict(stopped("hang"), {3, "it stands"}).report, "it stands\n  here");
  EXPECT_EQ(verdict(stopped("fault"), {3, "a trap"}).verdict, Verdict::faulted);
  EXPECT_EQ(verdict(stopped("time limit"), {3, "too long"}).verdict, Verdict::timed_out);
  EXPECT_EQ(verdict(result(10), {1, "a check failed"}).verdict, Verdict::check_failed);
  EXPECT_EQ(verdict(nullptr, {2, "--x: no such option"}).verdict, Verdict::refused);
  EXPECT_EQ(verdict(nullptr, {139, "ended by signal 11"}).verdict, Verdict::crashed);
  EXPECT_EQ(verdict(nullptr, {130, "", true}).verdict, Verdict::timed_out);
  EXPECT_THAT(verdict(nullptr, {130, "", true}).reason, HasSubstr("3600 s of the host"));
  EXPECT_EQ(judged(result(10), std::nullopt).verdict, Verdict::no_golden);
  EXPECT_DOUBLE_EQ(judged(result(10), result(10)).simulated_us, 7.5);
}

TEST(Verdict, ConditionsMayDifferWhereTheFileSaysSo) {
  Json other = result(10);
  other["inputs"][0]["code"] = "fnv1a64:3";
  other["seed"] = 2;
  const RunVerdict made = judged(other, result(10));
  EXPECT_EQ(made.verdict, Verdict::differs);
  EXPECT_EQ(made.reason, "seed, inputs[0] differ from the golden result's");
  const char* text = "may_differ = ['inputs*']\n[[run]]\nname = 'a'\ncommand = 'x'";
  EXPECT_EQ(judged(other, result(10), {}, run_of(text)).reason, "seed differ from the golden result's");
  other["seed"] = 1;
  EXPECT_EQ(judged(other, result(10), {}, run_of(text)).verdict, Verdict::passed);
}

// A comment moves lines in a kernel's debug information: the file is another one, what it loads is not.
TEST(Verdict, AKernelIsToldByWhatItLoads) {
  Json other = result(10), old = result(10);
  other["inputs"][0]["hash"] = "fnv1a64:9";
  EXPECT_EQ(judged(other, result(10)).verdict, Verdict::passed);
  // A golden result of before knows the file alone.
  old["inputs"][0].erase("code");
  EXPECT_EQ(judged(other, old).verdict, Verdict::differs);
  EXPECT_EQ(judged(result(10), old).verdict, Verdict::passed);
}

TEST(Verdict, NumbersOfRowsAreThoseThatWereMeasured) {
  const auto numbers = measured_numbers(result(10));
  ASSERT_EQ(numbers.size(), 3u);
  EXPECT_EQ(numbers[0].row, "kernel=a.elf check=true");
  EXPECT_EQ(numbers[0].field, "kernel_us");
  EXPECT_EQ(numbers[0].value, 10);
}

TEST(XmlText, KeepsWhatXmlCanHold) {
  EXPECT_EQ(xml_text("a\tb\nc \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"),
            "a\tb\nc \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
  EXPECT_EQ(xml_text(std::string("\0\x01\x1f\x7f\r", 5)), "?????");
  EXPECT_EQ(xml_text("\xff"), "?");
  EXPECT_EQ(xml_text("\xc3"), "?");            // cut
  EXPECT_EQ(xml_text("\xc0\x80"), "??");       // longer than it need be
  EXPECT_EQ(xml_text("\xed\xa0\x80"), "???");  // half of a pair
  EXPECT_EQ(xml_text("\xef\xbf\xbe"), "???");  // no character
  EXPECT_EQ(xml_text("\xef\xbf\xbd"), "\xef\xbf\xbd");
}

TEST(NightJunit, HasTimesCommandAndNumbers) {
  const Baseline baseline = parse_baseline("[[run]]\nname = 'a'\ncommand = 'kernel a.elf'", "b.toml");
  std::vector<RunVerdict> verdicts{judged(result(9), result(10)), judged(result(10.6), result(10)),
                                   judged(nullptr, result(10), {139, "signal \x01"})};
  verdicts[1].name = "b";
  verdicts[1].command = "cm384 run kernel a.elf";
  verdicts[1].wall_s = 1.25;
  verdicts[1].onsets.push_back({.field = "kernel_us", .commit = "abc", .subject = "slower", .nights = 2});
  Night night;
  night.date = "2026-05-04T12:00:00Z";
  night.commit = "abc";
  std::istringstream text(to_junit(night, verdicts, baseline));
  boost::property_tree::ptree document;
  boost::property_tree::read_xml(text, document);
  const auto& suites = document.get_child("testsuites");
  EXPECT_EQ(suites.get<int>("<xmlattr>.errors"), 1);
  EXPECT_EQ(suites.get<int>("<xmlattr>.failures"), 2);  // of b: the verdict and its row
  std::vector<const boost::property_tree::ptree*> list;
  for (const auto& [name, suite] : suites)
    if (name == "testsuite") list.push_back(&suite);
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[0]->get<int>("<xmlattr>.failures"), 0) << "what is better passes";
  EXPECT_EQ(list[1]->get<std::string>("<xmlattr>.time"), "1.250");
  EXPECT_EQ(list[1]->get<std::string>("<xmlattr>.timestamp"), "2026-05-04T12:00:00");
  const std::string failure = list[1]->get<std::string>("testcase.failure");
  EXPECT_THAT(failure, HasSubstr("to repeat: cm384 run kernel a.elf"));
  EXPECT_THAT(failure, HasSubstr("kernel_us since abc (2 nights): slower"));
  std::ostringstream again;
  boost::property_tree::write_xml(again, document);
  EXPECT_THAT(again.str(), HasSubstr("<property name=\"kernel_us\" value=\"10.6\"/>"));
  EXPECT_THAT(again.str(), HasSubstr("message=\"crash: signal ?\""));
}

TEST(NightJunit, WhatIsBetterFailsWhereTheFileSaysSo) {
  const Baseline baseline =
      parse_baseline("improved = 'fail'\n[[run]]\nname = 'a'\ncommand = 'kernel a.elf'", "b.toml");
  EXPECT_FALSE(judged(result(9), result(10)).passes(baseline));
  EXPECT_TRUE(judged(result(10), result(10)).passes(baseline));
  EXPECT_THAT(to_junit({}, {judged(result(9), result(10))}, baseline), HasSubstr("type=\"improved\""));
}

TEST(NightPage, HoldsItsDataAndNothingFromElsewhere) {
  const Baseline baseline = parse_baseline("[[run]]\nname = 'a'\ncommand = 'kernel a.elf'", "b.toml");
  RunVerdict made = judged(result(10.6), result(10));
  made.reason = "</script><b>";
  const std::string page = to_night_page(night_data({}, {made}, baseline));
  EXPECT_THAT(page, HasSubstr("\\u003c/script>\\u003cb>"));
  EXPECT_THAT(page, HasSubstr("\"verdict\":\"worse\""));
  EXPECT_EQ(page.find("{{"), std::string::npos);
  EXPECT_EQ(page.find("src="), std::string::npos);
}

}  // namespace
}  // namespace cm384::report::verdict_test
