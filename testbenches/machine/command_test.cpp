// The command as a user starts it: exit codes, one line a mistake, files.
#include <gmock/gmock.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace cm384 {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

struct Outcome {
  int code = -1;
  std::string output, errors;
};

Outcome start(const std::string& program, const std::string& arguments) {
  const std::string errors = ::testing::TempDir() + "cm384_command_test.err";
  Outcome outcome;
  FILE* pipe = popen((program + " " + arguments + " 2>" + errors).c_str(), "r");
  std::array<char, 4096> block{};
  while (const std::size_t n = fread(block.data(), 1, block.size(), pipe))
    outcome.output.append(block.data(), n);
  const int status = pclose(pipe);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  std::ifstream stream(errors);
  outcome.errors.assign(std::istreambuf_iterator<char>(stream), {});
  return outcome;
}

Outcome cm384(const std::string& arguments) {
  return start(CM384_COMMAND, arguments);
}
Outcome stand_in(const std::string& arguments) {
  return start(CM384_STAND_IN, arguments);
}

void expect_refused(const Outcome& outcome, const std::string& message) {
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.output, "");
  EXPECT_THAT(outcome.errors, HasSubstr(message));
  EXPECT_EQ(std::count(outcome.errors.begin(), outcome.errors.end(), '\n'), 1) << outcome.errors;
}

TEST(Command, HelpIsOnStandardOutput) {
  for (const char* arguments :
       {"--help", "run --help", "validate --help", "machine --help", "machine show --help"}) {
    const Outcome outcome = cm384(arguments);
    EXPECT_EQ(outcome.code, 0) << arguments;
    EXPECT_THAT(outcome.output, HasSubstr("cm384 ")) << arguments;
    EXPECT_EQ(outcome.errors, "") << arguments;
  }
  const Outcome study = stand_in("run good --help");
  EXPECT_THAT(study.output, HasSubstr("--bytes SIZE (=7.5KiB)"));
  EXPECT_THAT(study.output, HasSubstr("--machine PRESET|FILE (=cloudmatrix384)"));
  EXPECT_THAT(study.output, HasSubstr("ends well"));
}

TEST(Command, MistakesAreOneLineAndExitCode2) {
  expect_refused(cm384("rnu"), "cm384: rnu: no such command; did you mean run?");
  for (const char* later : {"trace", "report", "sweep"}) expect_refused(cm384(later), "not built yet");
  expect_refused(stand_in("run god"), "run god: no such study; did you mean good?");
  expect_refused(stand_in("run good --bytse 3"), "--bytse: no such option; did you mean --bytes?");
  expect_refused(stand_in("run good --bytes 7680"), "--bytes: '7680' has no unit");
  expect_refused(stand_in("run failed stray"), "'stray': unexpected argument");
  expect_refused(stand_in("run good --set die.avi=3"), "did you mean die.aiv?");
  expect_refused(stand_in("run good --set die.aiv=300"), "--set die.aiv: 300 is out of range");
  expect_refused(stand_in("run good --machine none.toml"), "none.toml: no such machine file");
  expect_refused(stand_in("run good --seed -1"), "--seed: '-1' is negative");
  expect_refused(cm384("machine shwo"), "machine shwo: unknown; did you mean show?");
  expect_refused(cm384("machine check nod8"), "did you mean node8?");
}

TEST(Command, ExitCodesOfTheContract) {
  EXPECT_EQ(stand_in("run good").code, 0);
  EXPECT_EQ(stand_in("run failed").code, 1);
  const Outcome hung = stand_in("run hung");
  EXPECT_EQ(hung.code, 3);
  EXPECT_THAT(hung.errors, HasSubstr("die 0 aiv 3 waits for flag 7"));
  const Outcome broken = stand_in("run broken");
  EXPECT_EQ(broken.code, 4);
  EXPECT_THAT(broken.errors, HasSubstr("internal error: an invariant"));
}

TEST(Command, RowsAsTableJsonAndCsv) {
  const std::string options =
      "run good k.elf --bytes 1KiB --seed 7 --set die.aiv=40 --machine node8 --format ";
  EXPECT_THAT(stand_in(options + "table").output, HasSubstr("1024  k.elf     40     7"));
  EXPECT_EQ(stand_in(options + "csv").output, "bytes,program,aiv,seed\n1024,k.elf,40,7\n");
  const auto document = nlohmann::json::parse(stand_in(options + "json").output);
  EXPECT_EQ(document["machine"], "node8");
  EXPECT_EQ(document["seed"], 7);
  EXPECT_EQ(document["parameters"]["bytes"], "1KiB");
  EXPECT_EQ(document["machine_overrides"]["die.aiv"], "40");
  EXPECT_EQ(document["rows"][0]["aiv"], 40);
  EXPECT_EQ(document["complete"], true);
}

TEST(Command, AnInterruptedRunWritesWhatItKnows) {
  const fs::path folder = fs::path(::testing::TempDir()) / "cm384_command_test_out";
  fs::remove_all(folder);
  const Outcome outcome =
      start("timeout --preserve-status -s INT 0.5 " CM384_STAND_IN, "run endless --out " + folder.string());
  EXPECT_EQ(outcome.code, 130);
  std::ifstream stream(folder / "result.json");
  const auto document = nlohmann::json::parse(stream);
  EXPECT_EQ(document["complete"], false);
  EXPECT_EQ(document["rows"].size(), 1u);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 1);
  fs::remove_all(folder);
}

TEST(Command, MachineShowReadsBack) {
  const fs::path file = fs::path(::testing::TempDir()) / "cm384_shown.toml";
  const Outcome shown = cm384("machine show node8 --set die.aiv=40");
  EXPECT_EQ(shown.code, 0);
  std::ofstream(file) << shown.output;
  EXPECT_EQ(cm384("machine show " + file.string()).output, shown.output);
  EXPECT_EQ(cm384("machine check " + file.string()).code, 0);
  const auto json = nlohmann::json::parse(cm384("machine show --format json").output);
  EXPECT_EQ(json["parameters"]["die.clock"]["value"], "1.85GHz");
  EXPECT_EQ(json["parameters"]["die.clock"]["from"], "published");
  fs::remove(file);
}

TEST(Command, MachineListNamesThePresets) {
  const Outcome outcome = cm384("machine list");
  EXPECT_EQ(outcome.code, 0);
  for (const char* name : {"cloudmatrix384 ", "cloudmatrix384-920c", "node8"})
    EXPECT_THAT(outcome.output, HasSubstr(name));
}

TEST(Command, ValidateListsWhatIsNotModelled) {
  const Outcome outcome = stand_in("validate --format json");
  EXPECT_EQ(outcome.code, 0);
  const auto rows = nlohmann::json::parse(outcome.output);
  EXPECT_EQ(rows.size(), 28u);
  EXPECT_EQ(rows[0]["status"], "not modelled");
  EXPECT_THAT(stand_in("validate --markdown").output, HasSubstr("# Validation"));
}

}  // namespace
}  // namespace cm384
