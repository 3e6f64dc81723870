// The command as a user starts it: exit codes, one line a mistake, files.
#include <gmock/gmock.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "testbenches/hw/outcome.h"

namespace cm384::command_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

Outcome start(const std::string& program, const std::string& arguments) {
  return run_command(program + " " + arguments, ::testing::TempDir() + "cm384_command_test.err");
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
  const Outcome group = cm384("trace");
  EXPECT_EQ(group.code, 2);
  EXPECT_THAT(group.output, HasSubstr("cm384 trace cut IN OUT"));
  EXPECT_THAT(group.errors, HasSubstr("trace: incomplete; allowed next: info, check, convert, cut"));
  expect_refused(stand_in("run god"), "run god: no such study; did you mean good?");
  expect_refused(stand_in("run good --bytse 3"), "--bytse: no such option; did you mean --bytes?");
  expect_refused(stand_in("run good --bytes 7680"), "--bytes: '7680' has no unit");
  expect_refused(stand_in("run failed stray"), "'stray': unexpected argument");
  expect_refused(stand_in("run good --set die.avi=3"), "did you mean die.aiv?");
  expect_refused(stand_in("run good --set die.aiv=300"), "--set die.aiv: 300 is out of range");
  expect_refused(stand_in("run good --machine none.toml"), "none.toml: no such machine file");
  expect_refused(stand_in("run good --seed -1"), "--seed: -1 is out of range");
  expect_refused(stand_in("run good --stats-detail"), "--stats-detail: has an effect only with --stats FILE");
  expect_refused(cm384("run p2p --volume 0B --fault plane=0,die=0"),
                 "--fault: 'plane=0,die=0' does not name");
  expect_refused(cm384("machine shwo"), "machine shwo: no such command; did you mean show?");
  expect_refused(stand_in("run good --depth 2"), "--depth: has an effect only with --deep");
  expect_refused(stand_in("run good --columns bites"),
                 "--columns: 'bites': no such column; did you mean bytes?");
  expect_refused(stand_in("run good --columns bytes --format csv"),
                 "--columns: has an effect only with --format table");
  expect_refused(stand_in("run good --timeline t.json --timeline-from 2us --timeline-to 1us"),
                 "--timeline-to: is not after");
  expect_refused(cm384("machine check nod8"), "did you mean node8?");
}

// Studies without dies at work refuse by name what looks at these, and keep what they show themselves.
TEST(Command, WhatLooksAtDiesIsRefusedWhereNoneWork) {
  const std::string file = ::testing::TempDir() + "cm384_no_dies.out";
  const std::vector<std::string> all{"--stats " + file,    "--energy default",
                                     "--record " + file,   "--explain",
                                     "--gdb 3333",         "--profile " + file,
                                     "--time-limit 1us",   "--wave " + file,
                                     "--timeline " + file, "--timeline " + file + " --timeline-dies 1"};
  for (const std::string study : {"switch", "traffic", "balance", "serve", "jobs", "reliability"}) {
    for (const std::string& option : all) {
      const std::string name = option.substr(0, option.find(' '));
      const bool own_timeline = study == "serve" || study == "jobs" || study == "reliability";
      const bool of_dies = option.find("-dies") != std::string::npos;
      if (own_timeline && name == "--timeline" && !of_dies) continue;
      // A chip of RTL has waves.
      const std::string told = study == "switch" && name == "--wave"
                                   ? "--wave shows the RTL's signals"
                                   : (own_timeline && of_dies ? "--timeline-dies" : name) +
                                         ": observes dies, and run " + study + " simulates none";
      expect_refused(cm384("run " + study + " " + option), told);
    }
  }
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
  EXPECT_THAT(stand_in(options + "table").output, HasSubstr("    1024  k.elf          40         7\n"));
  EXPECT_EQ(stand_in(options + "csv").output, "bytes,program,aiv,seed,share\n1024,k.elf,40,7,0.25\n");
  const auto document = nlohmann::json::parse(stand_in(options + "json").output);
  EXPECT_EQ(document["machine"], "node8");
  EXPECT_EQ(document["seed"], 7);
  EXPECT_EQ(document["parameters"]["bytes"], "1KiB");
  EXPECT_EQ(document["machine_overrides"]["die.aiv"], "40");
  EXPECT_EQ(document["rows"][0]["aiv"], 40);
  EXPECT_EQ(document["complete"], true);
}

// What `./dev demo` runs first is of the same parts.
TEST(Command, TheExchangeAloneSaysWhatTheWholeSays) {
  for (const char* run : {"run dispatch --ranks 8 --batch 4 --payload control --format csv",
                          "run combine --ranks 8 --batch 4 --format csv", "run dispatch --rank 8"}) {
    const Outcome alone = start(CM384_EXCHANGE, run), whole = cm384(run);
    EXPECT_EQ(alone.code, whole.code) << run;
    EXPECT_EQ(alone.output, whole.output) << run;
  }
  expect_refused(start(CM384_EXCHANGE, "run dispatch --ranks 8 --ensemble 2"), "allowed: the whole cm384");
  EXPECT_THAT(start(CM384_EXCHANGE, "report").errors, HasSubstr("no such command"));
}

// The golden results have the same run on the machine as it was published, with the figure beside it.
TEST(Command, NoPublishedFigureBesideAChangedMachine) {
  const auto row = nlohmann::json::parse(
      cm384("run dispatch --set ub.link.trunk_latency=300ns --format json").output)["rows"][0];
  EXPECT_EQ(row["ranks"], 8);
  EXPECT_TRUE(row["published_us"].is_null());
  EXPECT_TRUE(row["error"].is_null());
  // Nor what was measured on the part.
  const std::string stream = "run stream --shape 64x128 --format json --set ";
  const auto of = [&](const char* set) {
    return nlohmann::json::parse(cm384(stream + set).output)["rows"][0]["measured_TBps"];
  };
  EXPECT_TRUE(of("hbm.bandwidth=2.4TB/s").is_null());
  EXPECT_TRUE(of("die.aiv=48 --machine cloudmatrix384-920c").is_null());
}

TEST(Command, ValidateSaysWhereTheMachineIsAnotherOne) {
  EXPECT_EQ(stand_in("validate").errors, "");
  EXPECT_THAT(
      stand_in("validate --set die.aiv=40").errors,
      HasSubstr(
          "hold for the unchanged machine cloudmatrix384; this is cloudmatrix384, parameters changed: 1"));
  EXPECT_THAT(stand_in("validate --machine node8").errors, HasSubstr("this is node8"));
}

TEST(Command, ValidateRunsWhatIsAskedFor) {
  expect_refused(cm384("validate --only zzz"), "--only: no figure's id begins with 'zzz'");
  expect_refused(cm384("validate --only t7-dispach-8"), "did you mean t7-dispatch-8?");
  const Outcome one = cm384("validate --only s-aiv-startup --format json");
  ASSERT_EQ(one.code, 0) << one.errors;
  const auto rows = nlohmann::json::parse(one.output);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0]["id"], "s-aiv-startup");
  EXPECT_EQ(rows[0]["status"], "within");
  // What it says to give the figure does.
  const std::string given_by = rows[0]["given_by"];
  const auto result = nlohmann::json::parse(cm384(given_by + " --format json").output);
  ASSERT_EQ(result["rows"].size(), 1u);
  EXPECT_EQ(result["rows"][0]["startup_us"], rows[0]["predicted"]);
}

TEST(Command, WhatAnInterruptionKeptFromRunningWasNotRun) {
  const Outcome cut =
      start("timeout --foreground --preserve-status -s INT 2", CM384_COMMAND " validate --format json");
  EXPECT_EQ(cut.code, 130);
  int not_run = 0;
  for (const auto& row : nlohmann::json::parse(cut.output)) {
    const std::string id = row["id"], status = row["status"];
    if (id.starts_with("t4-") || id == "t5-5") {  // minutes each
      EXPECT_EQ(status, "left out") << id;
    } else if (id.starts_with("t") || id.starts_with("s-")) {
      EXPECT_TRUE(status == "not run" || !row["predicted"].is_null()) << id;
    }
    EXPECT_EQ(row["predicted"].is_null(), status.starts_with("not ") || status == "left out") << id;
    not_run += status == "not run" ? 1 : 0;
  }
  EXPECT_GT(not_run, 10);
}

TEST(Command, ColumnsAreChosenByName) {
  EXPECT_EQ(stand_in("run good --columns seed,share").output,
            "    seed     share\n--------  --------\n       1    25.0 %\n");
  EXPECT_THAT(stand_in("run good --columns all").output, HasSubstr("share"));
  EXPECT_THAT(stand_in("run good").output, Not(HasSubstr("share")));
}

TEST(Command, AFieldThatNobodyDeclaredIsAnInternalError) {
  const Outcome outcome = stand_in("run undeclared");
  EXPECT_EQ(outcome.code, 4);
  EXPECT_THAT(outcome.errors, HasSubstr("field surprise of a row is not declared"));
}

// Nothing is lost: rows are printed before files are written, and a file that cannot be written is an error
// of its own.
TEST(Command, OutputsThatCannotBeWritten) {
  for (const char* arguments : {"run good", "run good --format json", "run good --format csv", "validate",
                                "validate --format json", "machine show node8", "--help", "schema"}) {
    const Outcome outcome = start(CM384_STAND_IN, std::string(arguments) + " >/dev/full");
    EXPECT_EQ(outcome.code, 5) << arguments;
    EXPECT_THAT(outcome.errors, HasSubstr("standard output: cannot be written: No space left on device"))
        << arguments;
  }
  // Before the work starts, where that can be known.
  for (const char* option : {"--out", "--stats", "--record", "--timeline", "--wave"}) {
    const Outcome outcome = stand_in(std::string("run good ") + option + " /proc/none/x");
    EXPECT_EQ(outcome.code, 5) << option;
    EXPECT_EQ(outcome.output, "") << option;
    EXPECT_THAT(outcome.errors, HasSubstr("/proc/none/x")) << option;
  }
  const Outcome full = stand_in("run good --stats /dev/full");
  EXPECT_EQ(full.code, 5);
  EXPECT_THAT(full.output, HasSubstr("7680"));
  EXPECT_THAT(full.errors, HasSubstr("/dev/full: cannot be written: No space left on device"));
}

TEST(Command, AMachineThatHangsLeavesTheRowsBefore) {
  const fs::path folder = fs::path(::testing::TempDir()) / "cm384_command_hung";
  fs::remove_all(folder);
  const Outcome outcome = stand_in("run hung --out " + folder.string());
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.output, HasSubstr("7680"));
  std::ifstream stream(folder / "result.json");
  const auto document = nlohmann::json::parse(stream);
  EXPECT_EQ(document["complete"], false);
  EXPECT_EQ(document["rows"].size(), 1u);
  EXPECT_EQ(document["notes"][0], "no progress for 5 ms of simulated time");
  fs::remove_all(folder);
}

// What a run would refuse is refused, what follows from a kind of topology is told.
TEST(Command, AMachineIsCheckedWithItsFabric) {
  expect_refused(cm384("machine check --set topology.kind=full-mesh --set topology.shape=5x5"),
                 "do not share 768 dies");
  expect_refused(cm384("machine check --set topology.kind=torus --set ub.link.lanes=2"),
                 "allowed: at least 4");
  expect_refused(cm384("machine check --set ub.switch.routing=ugal"), "has no detours to draw from");
  for (const char* kind : {"clos3", "full-mesh", "mesh", "torus", "dragonfly", "star"}) {
    const Outcome outcome = cm384(std::string("machine check --set topology.kind=") + kind);
    EXPECT_EQ(outcome.code, 0) << outcome.errors;
    EXPECT_THAT(outcome.output, HasSubstr("good")) << kind;
  }
  const Outcome torus = cm384("machine check --set topology.kind=torus");
  EXPECT_THAT(torus.output, HasSubstr("ub.link.lanes = 4 (was 2)"));
  EXPECT_THAT(torus.errors, HasSubstr("ub.link.lanes: 4 instead of 2"));
  expect_refused(cm384("machine check --set topology.groups=4"), "has no effect with topology.kind=clos");
  const Outcome where_used = cm384("machine check --set-where-used topology.groups=4");
  EXPECT_EQ(where_used.code, 0);
  EXPECT_THAT(where_used.errors, HasSubstr("topology.groups=4: has no effect with topology.kind=clos"));
  expect_refused(cm384("machine check --set-where-used topology.groups=0"), "topology.groups");
}

// A mesh of 4 x 4 without routes: six links of the longest way are six classes of two lanes.
TEST(Command, AMeshFromFilesTakesTwelveLanes) {
  const fs::path folder = fs::path(::testing::TempDir()) / "cm384_mesh";
  fs::create_directories(folder);
  std::ofstream(folder / "node.csv") << "nodeId,nodeType,portNum\n0..15,DEVICE,4\n";
  std::ofstream links(folder / "topology.csv");
  links << "nodeId1,portId1,nodeId2,portId2,bandwidth,delay\n";
  for (int node = 0; node < 16; ++node) {
    if (node % 4 < 3) links << node << ",0," << node + 1 << ",1,400Gbps,20ns\n";
    if (node < 12) links << node << ",2," << node + 4 << ",3,400Gbps,20ns\n";
  }
  links.close();
  const Outcome checked = cm384("machine check " + folder.string());
  EXPECT_EQ(checked.code, 0) << checked.errors;
  EXPECT_THAT(checked.errors, HasSubstr("ub.link.lanes: 12 instead of 8"));
  expect_refused(cm384("machine check " + folder.string() + " --set ub.link.lanes=8"),
                 "allowed: at least 12");
  fs::remove_all(folder);
}

// What can be counted, though packets cannot name all of it, is good.
TEST(Command, AMachineOfManySupernodesIsChecked) {
  const Outcome many = cm384("machine check --set topology.supernodes=432");
  EXPECT_EQ(many.code, 0);
  EXPECT_THAT(many.output, HasSubstr("cloudmatrix384: good"));
  EXPECT_THAT(many.errors, HasSubstr("of 68 supernodes"));
  EXPECT_EQ(cm384("machine check --set topology.supernodes=68").errors, "");
  EXPECT_THAT(cm384("machine count --set topology.supernodes=432 --format json").output,
              HasSubstr("\"racks\": 6912"));
  // What does not fit is found all the same.
  expect_refused(cm384("machine check --set topology.supernodes=432 --set topology.kind=torus --set "
                       "ub.link.lanes=2"),
                 "ub.link.lanes");
}

TEST(Command, AMachineIsWhatItsValuesAre) {
  const fs::path folder = fs::path(::testing::TempDir()) / "cm384_identity";
  fs::create_directories(folder);
  const std::string saved = (folder / "saved.toml").string(), edited = (folder / "edited.toml").string();
  const std::string text = cm384("machine show").output;
  std::ofstream(saved) << text;
  EXPECT_EQ(cm384("machine check " + saved).output.substr(0, 20), "cloudmatrix384: good");
  std::string changed = text;
  const std::string before = "aiv = { value = 48";
  ASSERT_NE(changed.find(before), std::string::npos);
  changed.replace(changed.find(before), before.size(), "aiv = { value = 40");
  std::ofstream(edited) << changed;
  const std::string answer = cm384("machine check " + edited).output;
  EXPECT_THAT(answer, HasSubstr("edited: good"));
  EXPECT_THAT(answer, HasSubstr("1 of them not as in cloudmatrix384"));
  EXPECT_THAT(answer, HasSubstr("die.aiv = 40 (was 48)"));
  const auto shown = nlohmann::json::parse(cm384("machine show --format json " + edited).output);
  EXPECT_EQ(shown["parameters"]["die.aiv"]["from"], "user file");
  EXPECT_THAT(shown["parameters"]["die.aiv"]["source"].get<std::string>(), HasSubstr("edited.toml:"));
  // The same under the preset's own name, and without naming its base.
  std::ofstream(folder / "cloudmatrix384.toml") << changed;
  EXPECT_THAT(cm384("machine check " + (folder / "cloudmatrix384.toml").string()).output,
              HasSubstr("cloudmatrix384 (changed): good"));
  const std::string base = "base = \"cloudmatrix384\"\n";
  changed.erase(changed.find(base), base.size());
  std::ofstream(edited) << changed;
  EXPECT_THAT(cm384("machine check " + edited).output, HasSubstr("1 of them not as in cloudmatrix384"));
  fs::remove_all(folder);
}

TEST(Command, AnInterruptedRunWritesWhatItKnows) {
  const fs::path folder = fs::path(::testing::TempDir()) / "cm384_command_test_out";
  fs::remove_all(folder);
  // In the foreground: else the program gets the signal twice, and the second one ends it at once.
  const Outcome outcome = start("timeout --foreground --preserve-status -s INT 2 " CM384_STAND_IN,
                                "run endless --out " + folder.string());
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
  const Outcome shown = cm384("machine show node8");
  EXPECT_EQ(shown.code, 0);
  std::ofstream(file) << shown.output;
  EXPECT_EQ(cm384("machine show " + file.string()).output, shown.output);
  EXPECT_EQ(cm384("machine check " + file.string()).code, 0);
  const auto json = nlohmann::json::parse(cm384("machine show --format json").output);
  EXPECT_EQ(json["parameters"]["die.clock"]["value"], "1.85GHz");
  EXPECT_EQ(json["parameters"]["die.clock"]["from"], "published");
  fs::remove(file);
}

// What a result needs to be had again: the options as they took effect, the machine, its changes, the seed.
TEST(Command, AResultNamesEverythingItCameFrom) {
  const fs::path folder = fs::path(::testing::TempDir()) / "cm384_provenance_test";
  fs::remove_all(folder);
  fs::create_directories(folder);
  const fs::path machine = folder / "mine.toml", stats = folder / "stats.json";
  std::ofstream(machine) << cm384("machine show node8").output;
  const std::string command =
      "run p2p --op write --target npu --distance intra-node --volume 0B --seed 5 --machine " +
      machine.string() + " --set die.aiv=40 --set ub.link.trunk_latency=300ns" +
      " --fault die=2,plane=1,rate=0.25 --rtl l1:0.0 --format json";
  const Outcome plain = cm384(command);
  ASSERT_EQ(plain.code, 0) << plain.errors;
  const auto result = nlohmann::json::parse(plain.output);
  EXPECT_EQ(result["seed"], 5);
  EXPECT_EQ(result["machine_overrides"].size(), 2u);
  EXPECT_EQ(result["machine_overrides"]["die.aiv"], "40");
  EXPECT_EQ(result["machine_overrides"]["ub.link.trunk_latency"], "300ns");
  ASSERT_EQ(result["inputs"].size(), 1u);
  EXPECT_EQ(result["inputs"][0]["path"], machine.string());
  EXPECT_THAT(result["inputs"][0]["hash"].get<std::string>(), HasSubstr("fnv1a64:"));
  EXPECT_FALSE(result["simulator"]["build"]["version"].get<std::string>().empty());
  // Every option of the study, given or not, as `run p2p --help` lists them.
  const std::string help = cm384("run p2p --help").output;
  const std::string own = help.substr(0, help.find("options of every run"));
  std::size_t options = 0;
  for (std::size_t at = own.find("\n  --"); at != std::string::npos;
       at = own.find("\n  --", at + 1), ++options) {
    const std::size_t begin = at + 5;
    const std::string name = own.substr(begin, own.find_first_of(" =", begin) - begin);
    EXPECT_TRUE(result["parameters"].contains(name)) << name;
  }
  EXPECT_EQ(options, result["parameters"].size());
  EXPECT_EQ(result["parameters"]["fault"][0], "die=2,plane=1,rate=0.25");
  EXPECT_EQ(result["parameters"]["bytes"], "512B");
  // The same again, with statistics: the same rows, and a whole file beside them.
  const auto again = nlohmann::json::parse(cm384(command + " --stats " + stats.string()).output);
  EXPECT_EQ(again["rows"], result["rows"]);
  EXPECT_EQ(again["parameters"], result["parameters"]);
  std::ifstream stream(stats);
  EXPECT_EQ(nlohmann::json::parse(stream)["rows"].size(), 1u);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 2);
  fs::remove_all(folder);
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
  EXPECT_EQ(rows.size(), 208u);
  EXPECT_EQ(rows[0]["status"], "not modelled");
  EXPECT_THAT(stand_in("validate --markdown").output, HasSubstr("# Validation"));
}

}  // namespace
}  // namespace cm384::command_test
