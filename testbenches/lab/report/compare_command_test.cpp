// `cm384 compare` and `cm384 baseline` as a CI system starts them.
#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>

#include "base/text/json.h"
#include "testbenches/hw/outcome.h"

namespace cm384::compare_command_test {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

class CompareCommand : public ::testing::Test {
 protected:
  CompareCommand() { fs::create_directories(folder_); }
  ~CompareCommand() override { fs::remove_all(folder_); }

  Outcome start(const std::string& arguments) const {
    return run_command(CM384_STAND_IN " " + arguments, path("errors"));
  }
  void expect_refused(const std::string& arguments, const std::string& message) const {
    const Outcome outcome = start(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_THAT(outcome.errors, HasSubstr(message));
    EXPECT_EQ(std::count(outcome.errors.begin(), outcome.errors.end(), '\n'), 1) << outcome.errors;
  }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string read(const std::string& name) const {
    std::ifstream stream(folder_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return path(name);
  }

 private:
  fs::path folder_ = fs::path(::testing::TempDir()) / ("cm384_compare_" + std::to_string(getpid()));
};

std::string result(const std::string& latency) {
  return R"({"schema": 1, "study": "p2p", "rows": [{"op": "read", "latency_us": )" + latency + "}]}\n";
}

TEST_F(CompareCommand, ExitsWith1PastTolerance) {
  const std::string a = write("a.json", result("2.0")), b = write("b.json", result("2.125"));
  const Outcome same = start("compare " + a + " " + a);
  EXPECT_EQ(same.code, 0);
  EXPECT_THAT(same.output, EndsWith("p2p: 1 rows, 1 fields compared: nothing moved\n"));
  EXPECT_THAT(same.output, HasSubstr("before: " + a + ": does not say which build wrote it\nafter:  " + a +
                                     ": does not say which build wrote it\n"));
  const std::string junit = " --junit " + path("out/junit.xml");
  const Outcome moved = start("compare " + a + " " + b + junit);
  EXPECT_EQ(moved.code, 1);
  EXPECT_THAT(moved.output, HasSubstr("op=read  latency_us   2.000  2.125  +6.25 %  exact    past"));
  EXPECT_THAT(read("out/junit.xml"), HasSubstr("latency_us: 2.0 -&gt; 2.125 (+6.25 %)"));
  const std::string tight = write("tight.toml", "[[field]]\nname = \"latency*\"\nrelative = 0.06\n");
  const std::string wide = write("wide.toml", "[[field]]\nname = \"latency*\"\nrelative = 0.0625\n");
  EXPECT_EQ(start("compare " + a + " " + b + " --tolerance " + tight).code, 1);
  const Outcome allowed = start("compare " + a + " " + b + " --tolerance " + wide + junit + " --format csv");
  EXPECT_EQ(allowed.code, 0);
  EXPECT_THAT(allowed.output, HasSubstr("op=read,latency_us,2.0,2.125,+6.25 %,6.25 %,within"));
  EXPECT_THAT(read("out/junit.xml"), HasSubstr("failures=\"0\""));
}

// Three rows, of which each moves by more than the one before, and a text.
TEST_F(CompareCommand, ShowsTheLargestChangesFirst) {
  const auto made = [](const std::array<double, 3>& times, const char* version) {
    Json document = {{"schema", 1},
                     {"study", "p2p"},
                     {"invocation", {{"date", "2026-05-04T12:00:00Z"}}},
                     {"simulator", {{"build", {{"version", version}, {"commit", "abc"}}}}},
                     {"rows", Json::array()}};
    for (int n = 0; n < 3; ++n)
      document["rows"].push_back(
          {{"op", "op" + std::to_string(n)}, {"latency_us", times[n]}, {"wait_us", 1.0}});
    return document.dump();
  };
  const std::string a = write("a.json", made({100, 100, 100}, "1.0")),
                    b = write("b.json", made({101, 97, 110}, "1.1"));
  const auto shown = [&](const std::string& more) {
    std::vector<std::string> rows;
    const Outcome outcome = start("compare " + a + " " + b + " --format json " + more);
    EXPECT_EQ(outcome.code, 1) << more;
    for (const Json& row : Json::parse(outcome.output)) rows.push_back(row["row"]);
    return rows;
  };
  EXPECT_THAT(shown(""), ElementsAre("op=op0", "op=op1", "op=op2"));
  EXPECT_THAT(shown("--sort change"), ElementsAre("op=op2", "op=op1", "op=op0"));
  EXPECT_THAT(shown("--sort change --top 1"), ElementsAre("op=op2"));
  EXPECT_THAT(shown("--row '*op1'"), ElementsAre("op=op1"));
  EXPECT_THAT(shown("--field 'wait*'"), ElementsAre());
  const std::string wide = write("wide.toml", "relative = 0.02");
  EXPECT_THAT(shown("--status past --tolerance " + wide), ElementsAre("op=op1", "op=op2"));
  const Outcome table = start("compare " + a + " " + b + " --top 1");
  EXPECT_THAT(table.output, HasSubstr("before: " + a + ": cm384 1.0 abc, 2026-05-04T12:00:00Z\n"));
  EXPECT_THAT(table.output, HasSubstr("after:  " + b + ": cm384 1.1 abc, 2026-05-04T12:00:00Z\n"));
  EXPECT_THAT(table.output, HasSubstr("(2 more that moved are not shown)\n"));
}

TEST_F(CompareCommand, TakesFoldersOfRuns) {
  EXPECT_EQ(start("run good --bytes 1KiB --out " + path("a")).code, 0);
  EXPECT_EQ(start("run good --bytes 1KiB --out " + path("b") + " --set die.aiv=40").code, 0);
  const Outcome outcome = start("compare " + path("a") + " " + path("b"));
  EXPECT_THAT(outcome.output, HasSubstr("machine_overrides.die.aiv"));
  EXPECT_EQ(outcome.code, 1);  // the stand-in's only row has the number of cores among its conditions
  EXPECT_EQ(start("compare " + path("a") + " " + path("a") + " --same-conditions").code, 0);
}

TEST_F(CompareCommand, MistakesAreOneLine) {
  const std::string a = write("a.json", result("2"));
  expect_refused("compare " + a, "compare: takes two results");
  expect_refused("compare " + a + " " + path("none.json"), "none.json: cannot be read: No such file");
  expect_refused("compare " + a + " " + path(""), "result.json: cannot be read: No such file");
  expect_refused("compare " + a + " " + write("cut.json", result("2").substr(0, 40)),
                 "cut.json: not valid JSON");
  expect_refused("compare " + a + " " + a + " --tolerance " + write("t.toml", "x = 1"),
                 "t.toml:1: x: no such key");
  expect_refused("baseline chekc x", "did you mean check?");
  expect_refused("baseline check", "baseline: no folder given");
  expect_refused("baseline check " + path("none"), "baseline.toml: cannot be read: No such file");
}

TEST_F(CompareCommand, ABaselineIsMadeAndHeld) {
  write("baseline.toml",
        "[[run]]\nname = \"one\"\ncommand = \"good --bytes 1KiB\"\n[[run]]\nname = \"two\"\ncommand = \"good "
        "--seed 7\"\n");
  const Outcome none = start("baseline check " + path(""));
  EXPECT_EQ(none.code, 1);
  EXPECT_THAT(none.output, HasSubstr("one: no golden result: `cm384 baseline update` makes it"));
  const Outcome made = start("baseline update " + path(""));
  EXPECT_EQ(made.code, 0) << made.errors;
  EXPECT_EQ(made.output, "one: new\ntwo: new\n");
  EXPECT_THAT(read("one.json"), Not(HasSubstr("simulator")));
  EXPECT_EQ(start("baseline check " + path("")).code, 0);
  // A field that moved.
  const std::string good = read("two.json");
  std::string moved = good;
  moved.replace(moved.rfind("\"seed\": 7"), 9, "\"seed\": 8");
  ASSERT_NE(moved, good);
  write("two.json", moved);
  const Outcome failed = start("baseline check " + path("") + " --junit " + path("junit.xml"));
  EXPECT_EQ(failed.code, 1);
  EXPECT_THAT(read("junit.xml"), HasSubstr("failures=\"3\""));  // the verdict, a row gone, a row new
  EXPECT_EQ(start("baseline check --only one " + path("")).code, 0);
  expect_refused("baseline check --only on " + path(""), "did you mean one?");
  EXPECT_EQ(start("baseline update " + path("")).code, 0);
  EXPECT_EQ(read("two.json"), good);
  // Other options than those it was made with fail too, though the rows are the same.
  write("one.json", [&] {
    std::string text = read("one.json");
    return text.replace(text.find("\"1KiB\""), 6, "\"2KiB\"");
  }());
  const Outcome conditions = start("baseline check " + path(""));
  EXPECT_EQ(conditions.code, 1);
  EXPECT_THAT(conditions.output, HasSubstr("parameters.bytes"));
}

// A hang, a fault of the program, a check that fails, one without end and one of bad input stand between runs
// that are good: each has its verdict, and all that is asked for is written.
TEST_F(CompareCommand, ANightGoesOnWhateverOneRunDoes) {
  std::string file;
  for (const auto& [name, command] : {std::pair{"first", "good"},
                                      {"hung", "hung"},
                                      {"broken", "broken"},
                                      {"failed", "failed"},
                                      {"endless", "endless"},
                                      {"wrong", "good --bytes 9GiB"},
                                      {"last", "good --seed 2"}})
    file += "[[run]]\nname = '" + std::string(name) + "'\ncommand = '" + command + "'\nwall_limit = '1s'\n";
  write("baseline.toml", file);
  const Outcome made = start("baseline update --jobs 0 " + path(""));
  EXPECT_EQ(made.code, 1);
  EXPECT_TRUE(fs::exists(path("last.json")));
  EXPECT_FALSE(fs::exists(path("hung.json")));
  const Outcome outcome =
      start("baseline check " + path("") + " --junit " + path("junit.xml") + " --out " + path("night") +
            " --jobs 3 --history " + path("history.sqlite") + " --commit abc --subject 'the first'");
  EXPECT_EQ(outcome.code, 1) << outcome.errors;
  for (const char* line :
       {"first: passed; good: 1 rows, 1 fields compared: nothing moved", "hung: hang: no progress for 5 ms",
        "die 0 aiv 3 waits for flag 7", "broken: crash: internal error: an invariant",
        "failed: check failed: a check failed",
        "endless: time limit: did not end within 1 s of the host's time", "wrong: bad input: --bytes",
        "last: passed", "7 runs: 1 crash, 1 hang, 1 time limit, 1 bad input, 1 check failed, 2 passed",
        "hung: hang since abc (the first), 1 night"})
    EXPECT_THAT(outcome.output, HasSubstr(line));
  EXPECT_THAT(read("junit.xml"), HasSubstr("errors=\"4\""));
  EXPECT_THAT(read("junit.xml"), HasSubstr("name=\"command\" value=\"cm384 run good --seed 2\""));
  EXPECT_TRUE(fs::exists(path("night/hung/result.json")));
  EXPECT_TRUE(fs::exists(path("night/broken/errors")));
  EXPECT_FALSE(fs::exists(path("night/first")));
  EXPECT_THAT(read("night/index.html"), HasSubstr("\"verdict\":\"time-limit\""));
  const Outcome history = start("baseline history " + path("history.sqlite") + " --format csv");
  EXPECT_EQ(history.code, 0);
  EXPECT_THAT(history.output, HasSubstr("abc,the first,2,5,"));
  expect_refused("baseline history " + path("history.sqlite") + " --run hugn", "did you mean hung?");
  expect_refused("baseline history " + path("none"), "none: no such history of nights");
}

// A folder of --out that holds something else is not touched.
TEST_F(CompareCommand, WhatStandsInTheWayOfANightStays) {
  write("baseline.toml", "[[run]]\nname = 'one'\ncommand = 'good'\n");
  EXPECT_EQ(start("baseline update " + path("")).code, 0);
  fs::create_directories(path("night/one"));
  write("night/one/thesis", "three years");
  const Outcome outcome = start("baseline check " + path("") + " --out " + path("night"));
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.output, HasSubstr("exists already, and is not the output of a run"));
  EXPECT_EQ(read("night/one/thesis"), "three years");
}

// Conditions that may differ are named by the file, or for one night by the command line.
TEST_F(CompareCommand, ConditionsMayDifferWhereToldSo) {
  write("baseline.toml", "[[run]]\nname = 'one'\ncommand = 'good --bytes 1KiB'\n");
  EXPECT_EQ(start("baseline update " + path("")).code, 0);
  std::string text = read("one.json");
  text.replace(text.find("\"1KiB\""), 6, "\"2KiB\"");
  write("one.json", text);
  const Outcome refused = start("baseline check " + path(""));
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.output, HasSubstr("one: other conditions"));
  EXPECT_EQ(start("baseline check " + path("") + " --may-differ 'parameters.*'").code, 0);
}

}  // namespace
}  // namespace cm384::compare_command_test
