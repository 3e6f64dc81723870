// `cm384 trace`: traces made of traces and of other things, and that nothing is left half written.
#include "testbenches/traces/trace_command.h"

namespace cm384::trace_files_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using Json = nlohmann::json;

TEST_F(TraceCommand, AReplaysFilesAreApart) {
  done("generate traffic a.trace --dies 4 --transfers 50");
  const std::string whole = read("a.trace");
  expect_refused("replay a.trace --messages a.trace", "--messages: a.trace is the trace");
  expect_refused("replay a.trace --messages m --write ./m", "--write: ./m is written by --messages");
  expect_refused("replay a.trace --out . --messages result.json", "result.json is written by --out");
  expect_refused("replay a.trace --messages m --stats m", "--stats: m is written by --messages");
  EXPECT_EQ(read("a.trace"), whole);
  EXPECT_EQ(files(), (std::vector<std::string>{"a.trace", "errors"}));
  done("replay a.trace --messages /dev/null --stats /dev/null --write a.trace");
  EXPECT_NE(read("a.trace"), whole);
}

// The whole file or none: nothing is left of what does not fit or breaks off.
TEST_F(TraceCommand, LeavesNothingHalfWritten) {
  done("generate traffic a.trace --dies 8 --transfers 3000");
  done("convert a.trace a.csv");
  write("cut.trace", read("a.trace").substr(0, 20000));
  const std::string lines = read("a.csv");
  write("cut.csv", lines.substr(0, lines.size() - 30));
  write("cut.json", R"([{"ph":"X","name":"MatMul","ts":0)");
  write("cut.jsonl", "{\"type\":\"meta\",\"top_k\":2,\"num_experts\":8}\n{\"type\":\"route\",\"topk_i");
  write("names.csv", "name,collective,bytes\nhcom,all-gather,65536\n");
  fs::create_directory(at("folder"));
  const auto before = files();
  const std::string all = " --messages x.csv.gz --write x.trace --out x --stats x.json";
  expect_refused("replay cut.trace" + all, "cut.trace: offset 20000: block: the file ends");
  expect_refused("replay cut.csv" + all, "cut.csv:3001: line: ");
  expect_refused("shape cut.trace x.trace --map strided", "cut.trace: offset 20000");
  expect_refused("convert cut.csv x.trace", "cut.csv:3001: line: ");
  expect_refused("from-timeline cut.json x.trace --messages names.csv", "cut.json: offset 33: no JSON");
  expect_refused("from-routing cut.jsonl x.trace --ranks 2", "cut.jsonl:2: line is not JSON");
  for (const std::string command :
       {"replay folder", "info folder", "shape folder x.trace", "convert folder x.trace",
        "from-routing folder x.trace", "from-timeline folder x.trace --messages names.csv",
        "from-timeline cut.json x.trace --messages folder", "shape a.trace x.trace --map folder"})
    expect_refused(command, "folder: is a folder; allowed: a file");
  EXPECT_EQ(files(), before);

  const auto fails = [this](const std::string& arguments, const std::string& what) {
    const Outcome outcome = start(arguments);
    EXPECT_EQ(outcome.code, 5) << arguments;
    EXPECT_THAT(outcome.errors, HasSubstr(what)) << arguments;
    EXPECT_EQ(std::count(outcome.errors.begin(), outcome.errors.end(), '\n'), 1) << outcome.errors;
    return outcome.output;
  };
  // The row is printed before that.
  EXPECT_THAT(fails("replay a.trace --messages /dev/full", "/dev/full: cannot be written: No space left"),
              HasSubstr("dependency      3000"));
  fails("replay a.trace --messages /proc/x.csv", "/proc/x.csv: cannot be written");
  fails("shape a.trace /dev/full --map linear", "/dev/full: cannot be written: No space left");
  fails("replay a.trace --messages a.csv/m.csv", "a.csv/m.csv: cannot be written");
  EXPECT_EQ(files(), before);
}

// Bursts of all dies at once, so that what messages meet differs from window to window.
TEST_F(TraceCommand, ASampleHoldsWhatTheWholeReplaySays) {
  std::string list = "source,target,bytes,start_us\n";
  for (int n = 0; n < 24'000; ++n) {
    const int burst = n / 60, source = n % 6, target = 16 * (n / 6 % 2) + 6 + n / 12 % 3;
    list += std::to_string(source) + ',' + std::to_string(target) + ',' + std::to_string(256 << burst % 5) +
            ',' + std::to_string(4 * burst + n % 60 * 0.02) + '\n';
  }
  write("list.csv", list);
  done("convert list.csv a.trace");
  const Json whole = json("replay a.trace --messages m.csv --format json")["messages"]["latency_us"];
  int held = 0, tails = 0;
  for (int seed = 1; seed <= 6; ++seed) {
    const Json all = json("replay a.trace --sample 20 --window 150 --warm-up 150 --format json --seed " +
                          std::to_string(seed));
    const Json& sample = all["sample"];
    EXPECT_EQ(sample["latency_us"]["count"], 20 * 150);  // every record is a message
    EXPECT_EQ(sample["measured_records"], 20 * 150);
    // And a pause between two runs.
    EXPECT_NEAR(sample["replayed_records"].get<int>(), all["rows"][0]["records"].get<int>(), 20);
    EXPECT_TRUE(all["rows"][0]["replayed_us"].is_null());
    const auto holds = [&sample](const char* what, double value) {
      const Json& of = sample["latency_us"][what];
      return of["low"] <= value && value <= of["high"] ? 1 : 0;
    };
    held += holds("mean", whole["mean"]);
    tails += holds("p90", whole["p90"]["value"]);
    const double width = sample["latency_us"]["mean"]["high"].get<double>() -
                         sample["latency_us"]["mean"]["low"].get<double>();
    EXPECT_LT(width, 0.4 * whole["mean"].get<double>());
  }
  EXPECT_GE(held, 5);
  EXPECT_GE(tails, 5);
  const std::string text =
      done("replay a.trace --sample 20 --window 150 --warm-up 150 --messages s.csv").output;
  EXPECT_THAT(text, HasSubstr("20 windows of 150 records, 12 % of the trace"));
  // Lines of what is measured, with numbers of the trace.
  const std::string lines = read("s.csv");
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 1 + 20 * 150);
  EXPECT_GT(std::stoi(lines.substr(lines.rfind('\n', lines.size() - 2) + 1)), 22'000);

  expect_refused("replay a.trace --sample 20 --window 150 --warm-up 1000", "are more than the trace's 24000");
  expect_refused("replay a.trace --sample 20 --window 150 --warm-up 5",
                 "--warm-up: 5 records, which pass within");
  expect_refused("replay a.trace --sample 20 --write x.trace", "--write: not together with --sample");
  expect_refused("replay a.trace --seed 3", "--seed: has an effect only with --sample");
  expect_refused("replay a.trace --window 3", "--window");
  done("generate traffic chain.trace --dies 4 --transfers 5000 --chained");
  expect_refused("replay chain.trace --sample 20 --window 20 --warm-up 1",
                 "waited only for what was before these");
  write(
      "local.csv", "source,target,bytes\n" + [] {
        std::string own;
        for (int n = 0; n < 200; ++n) own += "3,3,512\n";
        return own;
      }());
  done("convert local.csv local.trace");
  expect_refused("replay local.trace --sample 4 --window 10 --warm-up 5",
                 "--sample: 0 of 4 windows have messages to other memory");
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
  expect_refused("shape a.trace x.trace --scale-bytes 2000",
                 "a.trace: record 0: bytes: 1024000; allowed: 1 to");
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

  // Sizes that nobody gives are not guessed.
  EXPECT_THAT(done("from-timeline 0.json t.trace").errors, HasSubstr("no collective moves anything"));
  expect_refused("from-routing r.jsonl x.trace --ranks 17", "--ranks: 17; allowed: at most 16");
  expect_refused("from-routing list.csv x.trace", "list.csv");
  expect_refused("convert list.csv x.trace --collective all-reduce=ring",
                 "--collective: has no effect on a list of messages");
  expect_refused("convert list.csv x.trace --set topology.nodes=1", "numbers below 16");
}

}  // namespace
}  // namespace cm384::trace_files_test
