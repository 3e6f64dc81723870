// The files that readers of results take, and what they refuse.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "lab/report/baseline.h"
#include "lab/report/result_file.h"
#include "lab/report/tolerances.h"
#include "testbenches/hw/refusal.h"

namespace cm384::report::files_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Fits, AStarFitsAnything) {
  EXPECT_TRUE(fits("latency_us.*", "latency_us.mean"));
  EXPECT_TRUE(fits("*", ""));
  EXPECT_TRUE(fits("a*b*c", "a-b-b-c"));
  EXPECT_TRUE(fits("phases.*.mean_us", "phases.send.mean_us"));
  EXPECT_FALSE(fits("latency_us", "latency_us.mean"));
  EXPECT_FALSE(fits("*.mean", "latency_us.mean_us"));
  EXPECT_FALSE(fits("", "x"));
  // In time that does not explode.
  EXPECT_FALSE(fits("*a*a*a*a*a*a*a*a*a*a*a*a*b", std::string(5000, 'a')));
}

TEST(Tolerances, TheFirstRuleThatFitsDecides) {
  const Tolerances tolerances = parse_tolerances(R"(
relative = 0.01
[[field]]
name = "latency_us.max"
relative = 0.5
direction = "up"
[[field]]
name = "latency_us.*"
absolute = 0.25
[[field]]
name = "notes*"
ignore = true
)",
                                                 "t.toml");
  EXPECT_EQ(tolerances.of("bandwidth_GBps").text(), "1 %");
  EXPECT_EQ(tolerances.of("latency_us.max").text(), "growth of 50 %");
  EXPECT_EQ(tolerances.of("latency_us.mean").text(), "0.25");
  EXPECT_EQ(tolerances.of("notes[0]").text(), "any");
  EXPECT_TRUE(tolerances.of("latency_us.max").allows(10, 1));
  EXPECT_TRUE(tolerances.of("latency_us.max").allows(10, 15));
  EXPECT_FALSE(tolerances.of("latency_us.max").allows(10, 15.01));
  EXPECT_TRUE(tolerances.of("latency_us.mean").allows(-10, -10.25));
  EXPECT_FALSE(tolerances.of("latency_us.mean").allows(-10, -9.5));
}

TEST(Tolerances, WrongFilesAreRefusedWithTheirLine) {
  const auto message = [](const char* text) { return refusal([&] { parse_tolerances(text, "t.toml"); }); };
  EXPECT_EQ(message("relativ = 1"),
            "t.toml:1: relativ: no such key; did you mean relative?; allowed: relative, absolute, field");
  EXPECT_EQ(message("\nrelative = -1"),
            "t.toml:2: relative: -1 is out of range; allowed: a number, 0 or more");
  EXPECT_EQ(message("relative = nan"),
            "t.toml:1: relative: 'nan' is not a number; allowed: a number, 0 or more");
  EXPECT_EQ(message("relative = '1'"), "t.toml:1: relative: \"1\" is a string; allowed: a number, 0 or more");
  EXPECT_EQ(message("[[field]]\nrelative = 1"), "t.toml:1: name: is missing; allowed: a string");
  EXPECT_EQ(message("[[field]]\nname = 'a'\ndirection = 'left'"),
            "t.toml:3: direction: 'left' is unknown; allowed: one of both, up, down");
  EXPECT_EQ(message("field = 3"), "t.toml:1: field: is not a list; allowed: [[field]]");
  EXPECT_EQ(message("field = [3]"), "t.toml:1: field: allowed: [[field]]");
  EXPECT_THAT(message("relative"), HasSubstr("t.toml:1: not valid TOML"));
}

TEST(Baseline, NamesRuns) {
  const Baseline baseline = parse_baseline(R"(
relative = 0.5
[[run]]
name = "p2p"
command = "p2p --set 'ub.link.bandwidth=28GB/s' --volume 0B"
)",
                                           "baseline.toml");
  ASSERT_EQ(baseline.runs.size(), 1u);
  EXPECT_EQ(baseline.runs[0].name, "p2p");
  EXPECT_THAT(baseline.runs[0].arguments,
              ElementsAre("p2p", "--set", "ub.link.bandwidth=28GB/s", "--volume", "0B"));
  EXPECT_EQ(baseline.tolerances.of("x").text(), "50 %");
}

TEST(Baseline, WrongFilesAreRefusedWithTheirLine) {
  const auto message = [](const char* text) { return refusal([&] { parse_baseline(text, "b.toml"); }); };
  EXPECT_EQ(message(""), "b.toml:1: run: names no run; allowed: [[run]]");
  EXPECT_EQ(message("[[run]]\nname = '../a'\ncommand = 'p2p'"),
            "b.toml:2: name: '../a'; allowed: letters, digits, '-', '_'");
  EXPECT_EQ(message("[[run]]\nname = 'a'\ncommand = 'x'\n[[run]]\nname = 'a'\ncommand = 'x'"),
            "b.toml:5: name: 'a' is listed twice");
  EXPECT_EQ(message("[[run]]\nname = 'a'"), "b.toml:1: command: is missing; allowed: a string");
  EXPECT_EQ(message("[[run]]\nname = 'a'\ncommand = 'p2p \\'"),
            "b.toml:3: command: 'p2p \\' has an escape that does not end");
}

TEST(ResultFile, WhatIsNoResultIsRefused) {
  const auto message = [](const std::string& text) { return refusal([&] { parse_result(text, "r.json"); }); };
  EXPECT_THAT(message(""), HasSubstr("r.json: not valid JSON"));
  EXPECT_THAT(message("{\"schema\": 1,\n]"), HasSubstr("line 2, column 1"));
  EXPECT_EQ(message("[]"), "r.json: is not a result of a run: has no `schema` and `rows`");
  EXPECT_EQ(message(R"({"schema": 2, "rows": []})"), "r.json: has schema 2; this program reads schema 1");
  EXPECT_EQ(message(R"({"schema": 1, "rows": []})"), "r.json: has no `study` (a string)");
  EXPECT_EQ(message(R"({"schema": 1, "study": "x", "rows": {}})"), "r.json: `rows` is not a list");
  EXPECT_EQ(message(R"({"schema": 1, "study": "x", "rows": [1]})"),
            "r.json: `rows` has an entry that is not an object");
  EXPECT_THAT(message(R"({"schema": 1, "study": "x", "rows": [{"a": 1e999}]})"), HasSubstr("not valid JSON"));
  EXPECT_EQ(message(R"({"schema": 1, "study": "x", "rows": []})"), "(accepted)");
}

TEST(ResultFile, DeepAndWideFilesAreRefused) {
  const auto nested = [](std::size_t levels) {
    return R"({"schema": 1, "study": "x", "rows": [], "deep": )" + std::string(levels, '[') +
           std::string(levels, ']') + "}";
  };
  EXPECT_EQ(refusal([&] { parse_result(nested(31), "r.json"); }), "(accepted)");
  EXPECT_EQ(refusal([&] { parse_result(nested(40), "r.json"); }),
            "r.json: is nested more than 32 levels deep");
  EXPECT_EQ(refusal([&] { parse_result(nested(2'000'000), "r.json"); }),
            "r.json: is nested more than 32 levels deep");
  std::string wide = R"({"schema": 1, "study": "x", "rows": [])";
  for (int i = 0; i < 5000; ++i) wide += fmt::format(", \"f{}\": 0", i);
  EXPECT_EQ(refusal([&] { parse_result(wide + "}", "r.json"); }), "r.json: has an object of too many fields");
}

TEST(Golden, HoldsAllButHowItWasMade) {
  const std::string text = golden_text(Json::parse(
      R"({"schema": 1, "invocation": {"date": "2026"}, "rows": [{"a": 0.1}], "simulator": {"wall_s": 3}})"));
  EXPECT_EQ(text, "{\n \"schema\": 1,\n \"rows\": [\n  {\n   \"a\": 0.1\n  }\n ]\n}\n");
}

// Found by the fuzz target: toml++ meets the characters where the guard before it sees a string.
TEST(TomlFiles, CharactersOutsideAsciiBehindANumberAreRefused) {
  using namespace std::string_view_literals;
  EXPECT_THROW(parse_baseline("relative =2'\0\0\xef\xbb\xbd]"sv, "limits.toml"), InputError);
}

}  // namespace
}  // namespace cm384::report::files_test
