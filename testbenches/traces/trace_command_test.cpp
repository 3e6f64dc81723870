// `cm384 trace` as a user starts it: files that are their own input, windows without records, both kinds of
// traces, imports that keep locality, and what a replay writes.
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace cm384 {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

class TraceCommand : public ::testing::Test {
 protected:
  TraceCommand() { fs::create_directories(folder_); }
  ~TraceCommand() override { fs::remove_all(folder_); }

  struct Outcome {
    int code = -1;
    std::string output, errors;
  };
  Outcome start(const std::string& arguments) const {
    Outcome outcome;
    const std::string command =
        "cd " + folder_.string() + " && " CM384_COMMAND " trace " + arguments + " 2>errors";
    FILE* pipe = popen(command.c_str(), "r");
    std::array<char, 4096> block{};
    while (const std::size_t n = fread(block.data(), 1, block.size(), pipe))
      outcome.output.append(block.data(), n);
    const int status = pclose(pipe);
    outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    outcome.errors = read("errors");
    return outcome;
  }
  Outcome done(const std::string& arguments) const {
    Outcome outcome = start(arguments);
    EXPECT_EQ(outcome.code, 0) << arguments << "\n" << outcome.errors;
    return outcome;
  }
  void expect_refused(const std::string& arguments, const std::string& message) const {
    const Outcome outcome = start(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments << outcome.output;
    EXPECT_THAT(outcome.errors, HasSubstr(message)) << arguments;
    EXPECT_EQ(std::count(outcome.errors.begin(), outcome.errors.end(), '\n'), 1) << outcome.errors;
  }
  Json json(const std::string& arguments) const { return Json::parse(done(arguments).output); }

  fs::path at(const std::string& name) const { return folder_ / name; }
  std::string read(const std::string& name) const {
    std::ifstream stream(at(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(at(name), std::ios::binary) << text;
  }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) names.push_back(entry.path().filename());
    std::ranges::sort(names);
    return names;
  }

 private:
  fs::path folder_ = fs::path(::testing::TempDir()) / ("cm384_trace_" + std::to_string(getpid()));
};

TEST_F(TraceCommand, CutsAndConvertsAFileIntoItself) {
  for (const std::string name : {"a.trace", "a.csv"}) {
    done("generate traffic " + name + " --dies 4 --transfers 500");
    EXPECT_THAT(done("cut " + name + " other-" + name + " --to 1us").output, HasSubstr("of 500 records"));
    done("cut " + name + " " + name + " --to 1us");
    EXPECT_EQ(read(name), read("other-" + name));
  }
  // Through a link the file behind it is replaced, and the link stays.
  fs::create_symlink("a.trace", at("link.trace"));
  const Json before = json("info a.trace --format json");
  done("cut link.trace link.trace --from 200ns");
  EXPECT_TRUE(fs::is_symlink(at("link.trace")));
  EXPECT_LT(json("info a.trace --format json")["records"], before["records"]);
  EXPECT_GT(json("info a.trace --format json")["records"], 0);

  expect_refused("convert a.csv a.csv", "a.csv is both input and output");
  expect_refused("convert a.trace link.trace", "a.trace is both input and output");
  done("check a.csv a.trace");
  EXPECT_EQ(files(), (std::vector<std::string>{"a.csv", "a.trace", "errors", "link.trace", "other-a.csv",
                                               "other-a.trace"}));
}

TEST_F(TraceCommand, AWindowWithoutRecordsIsRefusedAndLeavesNothing) {
  done("generate traffic a.trace --dies 4 --transfers 500");
  const std::string whole = read("a.trace");
  expect_refused("cut a.trace b.trace --from 2us --to 1us", "--to: is not after --from");
  expect_refused("cut a.trace b.trace --from 1us --to 1us", "--to: is not after --from");
  expect_refused("cut a.trace b.trace --from 1us --to 0us", "--to: is not after --from");
  expect_refused("cut a.trace b.trace --from 900s", "none of its 500 records begins");
  expect_refused("cut a.trace a.trace --from 900s", "none of its 500 records begins");
  EXPECT_EQ(files(), (std::vector<std::string>{"a.trace", "errors"}));
  EXPECT_EQ(read("a.trace"), whole);
}

TEST_F(TraceCommand, InfoAndCheckKnowRoutingFromTraffic) {
  write("r.jsonl",
        "{\"type\":\"meta\",\"top_k\":2,\"num_experts\":8}\n"
        "{\"type\":\"route\",\"topk_ids\":[1,3]}\n{\"type\":\"route\",\"topk_ids\":[1,3]}\n"
        "{\"type\":\"route\",\"topk_ids\":[3,5]}\n{\"type\":\"route\",\"topk_ids\":[3,0]}\n");
  const Json info = json("info r.jsonl --format json");
  EXPECT_EQ(info["holds"], "routing");
  EXPECT_EQ(info["tokens"], 4);
  EXPECT_EQ(info["top_k"], 2);
  EXPECT_EQ(info["experts"], 8);
  EXPECT_EQ(info["experts_chosen"], 4);
  EXPECT_EQ(info["repeated_tokens"], 1);
  EXPECT_EQ(info["hottest_expert"], 3);
  EXPECT_EQ(info["hottest_share"], 0.5);    // 4 of 8 choices
  EXPECT_EQ(info["hottest_over_mean"], 4);  // against 1 of 8
  EXPECT_EQ(done("check r.jsonl").output, "r.jsonl: good, 4 tokens, top 2 of 8 experts\n");
  write("bad.jsonl", read("r.jsonl") + "{\"type\":\"route\",\"topk_ids\":[9,0]}\n");
  expect_refused("check r.jsonl bad.jsonl", "bad.jsonl:6: topk_ids[0]: expert 9 is out of range");
  expect_refused("info bad.jsonl", "bad.jsonl:6");

  done("generate traffic a.trace --dies 4 --transfers 10");
  EXPECT_EQ(json("info a.trace --format json")["holds"], "traffic");
  EXPECT_EQ(done("check a.trace").output, "a.trace: good, 10 records\n");
  write("text", "neither one nor the other");
  expect_refused("info text", "not a traffic trace");
}

constexpr const char* kTraffic =
    "taskId,sourceNode,destNode,dataSize(Byte),opType,priority,delay,phaseId,dependOnPhases\n";

// Eight hosts write to the ones of another leaf. Four leaves of eight hosts, as in ns-3-UB's example.
TEST_F(TraceCommand, AnImportKeepsTheSourcesLocality) {
  std::string tasks = kTraffic;
  for (int n = 0; n < 8; ++n)
    tasks += std::to_string(n) + "," + std::to_string(n) + "," + std::to_string(n + 16) +
             ",400000,URMA_WRITE,7,10ns,0,\n";
  write("x.traffic.csv", tasks);
  const Outcome by_number = done("convert x.traffic.csv x.trace");
  EXPECT_THAT(by_number.output, HasSubstr("placed by number: 0-7 on dies 0-7, 16-23 on dies 16-23\n"));
  EXPECT_EQ(by_number.errors, "");
  const double replayed = json("replay x.trace --format json")["rows"][0]["replayed_us"];
  EXPECT_NEAR(replayed, 5.17, 0.05);
  expect_refused("info x.traffic.csv", "a traffic.csv of ns-3-UB");

  // Leaves that the numbers do not tell: hosts n and n + 16 hang on one.
  std::string links = "nodeId1,portId1,nodeId2,portId2,bandwidth,delay\n";
  for (int n = 0; n < 32; ++n) {
    const std::string host = std::to_string(n) + ",0", leaf = std::to_string(32 + n % 16 / 4) + ",0";
    links += (n % 2 == 0 ? host + "," + leaf : leaf + "," + host) + ",400Gbps,20ns\n";
  }
  write("x.node.csv", "nodeId,nodeType,portNum\n0..31,DEVICE,1\n32..35,SWITCH,16\n");
  write("x.topology.csv", links);
  write("x.fault.csv", "");
  const Json by_leaf = json("convert x.traffic.csv y.trace --format json");
  EXPECT_THAT(by_leaf["placement"].get<std::string>(), HasSubstr("by leaf switch: 2 leaves"));
  EXPECT_THAT(by_leaf["notes"].dump(), HasSubstr("not imported: x.fault.csv"));
  std::map<int, int> die;
  for (const Json& one : by_leaf["mapping"]) die[one["node"]] = one["die"];
  EXPECT_EQ(die.size(), 16u);
  for (int n = 0; n < 8; ++n) {
    EXPECT_EQ(die[n] / 16, n / 4) << n;
    EXPECT_EQ(die[n + 16] / 16, n / 4) << n;
  }
  write("x.node.csv", "nodeId,nodeType,portNum\n0..31,DEVCE,1\n");
  expect_refused("convert x.traffic.csv y.trace", "x.node.csv:2: nodeType: 'DEVCE'");
}

// The shortest that a transfer can take over its slowest link, and what is not taken is said.
TEST_F(TraceCommand, ACaseReplaysOnTheMachineThatItDescribes) {
  const std::string folder = CM384_SOURCE_DIR "/examples/cases/triangle";
  const Outcome converted = done("convert " + folder + " case.trace");
  EXPECT_THAT(converted.output, HasSubstr("placed as the nodes of the machine: 0 on die 0, 2 on die 2"));
  EXPECT_THAT(converted.errors, HasSubstr("routing_table.csv: 2 out ports of a higher metric"));
  EXPECT_EQ(std::count(converted.errors.begin(), converted.errors.end(), '\n'), 1);
  const Json replayed = json("replay case.trace --format json --machine " + folder);
  const Json& row = replayed["rows"][0];
  EXPECT_EQ(row["bytes"], 1048576 + 4096);
  // 1 MiB at 100 Gbit/s less headers; in front of it delay and the links' latencies, behind it the answer and
  // the read that waits for its phase.
  const double serialised = 1048576 / 12.5e3 * 560 / 512;
  EXPECT_GT(row["replayed_us"], serialised);
  EXPECT_LT(row["replayed_us"], serialised + 8);
  bool named = false;
  for (const Json& input : replayed["inputs"]) named = named || input["path"] == folder + "/topology.csv";
  EXPECT_TRUE(named);
  EXPECT_EQ(replayed["machine_overrides"]["topology.kind"], "file");
}

// Those of others, where they are.
TEST_F(TraceCommand, RecordedCasesReplayOnTheirOwnMachines) {
  const char* given = std::getenv("CM384_SHARED");
  const fs::path cases =
      fs::path(given != nullptr ? given : CM384_SOURCE_DIR "/../shared") / "traces" / "ns3ub";
  if (!fs::is_directory(cases)) GTEST_SKIP() << "no ../shared/traces beside the project and no CM384_SHARED";
  struct Case {
    const char* name;
    std::int64_t bytes;
    double least_us;  // of the bytes at the rate of the narrowest that all of a task's have to pass
    const char* note;
  };
  const Case all[] = {
      // Two destinations' last hops are two links each.
      {"2dfm4x4-multipath_a2a", 16384009 + 16384000, 16384009 / 100e3, "transport_channel.csv: not taken"},
      {"clos_32hosts-4leafs-8spines_pod2pod", 8 * 400000, 400000 / 50e3, "transport_channel.csv: not taken"},
      {"clos_fault_injection", 409600, 409600 / 50e3, "fault.csv:2: port 0 of node 8 sends at 125MB/s"},
  };
  for (const Case& c : all) {
    const Outcome converted = done("convert " + (cases / c.name).string() + " case.trace");
    EXPECT_THAT(converted.errors, HasSubstr(c.note));
    const Json row =
        json("replay case.trace --format json --machine " + (cases / c.name).string())["rows"][0];
    EXPECT_EQ(row["bytes"], c.bytes) << c.name;
    EXPECT_GT(row["replayed_us"], c.least_us) << c.name;
  }
}

TEST_F(TraceCommand, AnImportThatNeverEntersTheFabricSaysSo) {
  write("x.csv", std::string(kTraffic) + "0,4,5,4000,URMA_WRITE,7,10ns,0,\n1,5,4,4000,URMA_READ,7,10ns,0,\n");
  EXPECT_THAT(done("convert x.csv x.trace").errors, HasSubstr("warning: no transfer leaves its package"));
  const Json apart = json("convert x.csv x.trace --onto 7,8 --format json");
  EXPECT_EQ(apart["notes"], Json::array());
  EXPECT_EQ(apart["mapping"].dump(), R"([{"die":7,"node":4},{"die":8,"node":5}])");
}

TEST_F(TraceCommand, AReplayWritesWhatARunDoes) {
  done("generate traffic a.trace --dies 20 --transfers 2000");
  done(
      "replay a.trace --out d --stats s.json --stats-detail --timeline t.json --timeline-dies 3 --write "
      "b.trace");
  EXPECT_EQ(Json::parse(read("d/result.json"))["study"], "trace replay");
  const Json run = Json::parse(read("d/profile.json"))["runs"][0];
  EXPECT_EQ(run["dies"].size(), 20u);
  double busiest = 0;
  for (const Json& link : run["links"]) {
    for (const Json& plane : link["planes"]) {
      for (const Json& column : plane) {
        for (const double share : column) busiest = std::max(busiest, share);
      }
    }
  }
  EXPECT_GT(busiest, 0.02);
  EXPECT_LE(busiest, 1);
  const Json row = Json::parse(read("s.json"))["rows"][0];
  EXPECT_GT(row["totals"]["die*.ub.port*.packets"], 2000);
  EXPECT_TRUE(row.contains("detail"));
  const Json events = Json::parse(read("t.json"))["traceEvents"];
  EXPECT_GT(std::ranges::count_if(events, [](const Json& e) { return e["ph"] == "X" && e["pid"] == 3; }), 50);
  done("check b.trace");
  expect_refused("replay a.trace --timeline t.json --timeline-from 2us --timeline-to 1us",
                 "--timeline-to: is not after");
}

TEST_F(TraceCommand, EveryColumnOfAReplayIsDocumented) {
  done("generate traffic a.trace --dies 4 --transfers 50");
  std::istringstream names(done("replay a.trace --format csv").output);
  std::string header;
  std::getline(names, header);
  std::ifstream stream(CM384_SOURCE_DIR "/docs/traces.md");
  const std::string page{std::istreambuf_iterator<char>(stream), {}};
  const std::string table = page.substr(page.find("| column | what |"));
  std::istringstream columns(header);
  int count = 0;
  for (std::string name; std::getline(columns, name, ','); ++count) {
    const std::string cell = table.substr(0, table.find("\n\n"));
    EXPECT_THAT(cell, HasSubstr('`' + name + '`'));
  }
  EXPECT_GE(count, 10);
}

// Fields of a line.
std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream stream(line);
  for (std::string field; std::getline(stream, field, ',');) fields.push_back(field);
  return fields;
}

TEST_F(TraceCommand, MessagesAreAsManyAsTransfersToOtherMemoryAndTheirPartsTheirWhole) {
  done("generate traffic a.trace --dies 18 --transfers 2000 --pattern uniform");
  const Json plain = json("replay a.trace --format json");
  const Json told = json("replay a.trace --format json --messages m.csv --out out");
  EXPECT_EQ(plain["rows"], told["rows"]);
  std::istringstream lines(read("m.csv"));
  std::string line;
  std::getline(lines, line);
  const std::vector<std::string> names = fields_of(line);
  const auto column = [&](const std::string& name) {
    return static_cast<std::size_t>(std::ranges::find(names, name) - names.begin());
  };
  int count = 0;
  double slowest = 0;
  for (; std::getline(lines, line); ++count) {
    const std::vector<std::string> fields = fields_of(line);
    ASSERT_EQ(fields.size(), names.size());
    EXPECT_NE(fields[column("source")], fields[column("target")]);
    long long sum = 0;
    for (std::size_t n = column("source_queue_ps"); n < names.size(); ++n) sum += std::stoll(fields[n]);
    EXPECT_EQ(sum, std::stoll(fields[column("end_ps")]) - std::stoll(fields[column("ready_ps")]));
    slowest = std::max(slowest, std::stod(fields[column("slowdown")]));
  }
  const Json& messages = told["messages"];
  EXPECT_EQ(messages["count"], count);
  EXPECT_NEAR(messages["slowdown"]["max"].get<double>(), slowest, 1e-3);
  EXPECT_EQ(Json::parse(read("out/result.json"))["messages"], messages);
  EXPECT_THAT(done("replay a.trace --messages m.csv").output, HasSubstr("p99.99"));

  expect_refused("replay a.trace --messages m.csv --set accelerator.kind=transfer-engine",
                 "--messages: accelerator.kind is transfer-engine; allowed: one with cores");
}

TEST_F(TraceCommand, ShapesAndSaysWhatItDid) {
  done("generate traffic a.trace --dies 8 --transfers 400 --chained");
  done("shape a.trace a.trace both.trace --offset 0us,2us");
  const Json both = json("info both.trace --format json");
  EXPECT_EQ(both["records"], 800);
  EXPECT_EQ(both["sources"], 16);
  EXPECT_EQ(both["shaped"], "of a.trace, dies linear from 0; of a.trace, dies linear from 8, 2 us later");
  // Shaped once more, and as CSV: the header tells both steps.
  done("shape both.trace b.csv --ranks 0,1,2,3 --map strided --stride 16 --scale-bytes 2");
  EXPECT_THAT(read("b.csv"), ::testing::StartsWith("# shaped: of a.trace, dies linear from 0\n"));
  EXPECT_THAT(read("b.csv"),
              HasSubstr("# shaped: of both.trace, 4 of 16 ranks, dies strided from 0 by 16, bytes x 2\nid,"));
  done("check b.csv");
  EXPECT_EQ(json("replay b.csv --format json")["rows"][0]["records"],
            json("info b.csv --format json")["records"]);
  done("shape a.trace cut.trace --map min-cut --first-die 32");
  done("shape a.trace drawn.trace --map random --seed 4");

  expect_refused("shape a.trace", "no output given; allowed: IN... OUT");
  expect_refused("shape a.trace a.trace", "a.trace is both input and output");
  expect_refused("shape a.trace x.trace --ranks 8", "--ranks: 8; a.trace has 0 to 7");
  expect_refused("shape a.trace x.trace --ranks 1,1", "--ranks: names one twice");
  expect_refused("shape a.trace x.trace --stride 2", "--stride: has no effect with this --map");
  expect_refused("shape a.trace x.trace --map strided --stride 200", "the machine has 0 to 767");
  expect_refused("shape a.trace both.trace x.trace --first-die 0,4",
                 "--map: die 4 goes to a.trace and to both.trace");
  expect_refused("shape a.trace x.trace --offset 1us,2us",
                 "--offset: 2 values; allowed: one for each of 1 jobs");
  expect_refused("shape a.trace x.trace --map nowhere.csv", "nowhere.csv");
  expect_refused("shape a.trace x.trace --scale-bytes 2000", "bytes: 1024000; allowed: 1 to");
  EXPECT_FALSE(fs::exists(at("x.trace")));
}

TEST_F(TraceCommand, MakesTrafficOfListsRoutingsAndTimelines) {
  write("list.csv", "source,target,bytes\n0,16,4096\n16,0,100\n");
  done("convert list.csv list.trace");
  EXPECT_EQ(json("info list.trace --format json")["message_us"]["count"], 2);
  done("generate routing r.jsonl --rows 64 --top-k 2 --experts 16");
  done("from-routing r.jsonl r.trace --ranks 4 --batch 16 --expert-time 3us");
  const Json info = json("info r.trace --format json");
  EXPECT_GT(info["after_polls"], 0.0);
  EXPECT_EQ(json("replay r.trace --format json")["rows"][0]["records"], info["records"]);
  write("0.json", R"([{"ph":"X","name":"MatMul","ts":0,"dur":5},{"ph":"X","name":"hcom_1","ts":6,"dur":2}])");
  write("1.json", R"([{"ph":"X","name":"MatMul","ts":1,"dur":5},{"ph":"X","name":"hcom_2","ts":6,"dur":2}])");
  write("names.csv", "name,collective,bytes\nhcom,all-gather,65536\n");
  done("from-timeline 0.json 1.json t.trace --messages names.csv --onto 0,16 --collective all-gather=ring");
  EXPECT_EQ(json("info t.trace --format json")["message_us"]["count"], 2);

  expect_refused("from-timeline 0.json t.trace", "--messages is missing");
  expect_refused("from-routing r.jsonl x.trace --ranks 17", "--ranks: 17; allowed: at most 16");
  expect_refused("from-routing list.csv x.trace", "list.csv");
  expect_refused("convert list.csv x.trace --collective all-reduce=ring",
                 "--collective: has an effect only on Chakra");
  expect_refused("convert list.csv x.trace --set topology.nodes=1", "numbers below 16");
}

}  // namespace
}  // namespace cm384
