// `cm384 compare` and `cm384 baseline` as a CI system starts them.
#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "testbenches/machine/outcome.h"

namespace cm384 {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

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
  EXPECT_EQ(same.output, "p2p: 1 rows, 1 fields compared: nothing moved\n");
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
  expect_refused("compare " + a + " " + path("none.json"), "none.json: no such file");
  expect_refused("compare " + a + " " + path(""), "result.json: no such file");
  expect_refused("compare " + a + " " + write("cut.json", result("2").substr(0, 40)),
                 "cut.json: not valid JSON");
  expect_refused("compare " + a + " " + a + " --tolerance " + write("t.toml", "x = 1"),
                 "t.toml:1: x: no such key");
  expect_refused("baseline chekc x", "did you mean check?");
  expect_refused("baseline check", "baseline: no folder given");
  expect_refused("baseline check " + path("none"), "baseline.toml: no such file");
}

TEST_F(CompareCommand, ABaselineIsMadeAndHeld) {
  write("baseline.toml",
        "[[run]]\nname = \"one\"\ncommand = \"good --bytes 1KiB\"\n[[run]]\nname = \"two\"\ncommand = \"good "
        "--seed 7\"\n");
  expect_refused("baseline check " + path(""), "one.json: no such result; `cm384 baseline update");
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
  EXPECT_THAT(read("junit.xml"), HasSubstr("failures=\"2\""));
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

}  // namespace
}  // namespace cm384
