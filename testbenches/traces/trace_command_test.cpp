// `cm384 trace` as a user starts it: files that are their own input, windows without records, both kinds of
// traces, imports that keep locality, and what a replay writes.
#include "testbenches/traces/trace_command.h"

#include <fmt/format.h>

#include <sstream>

namespace cm384::trace_command_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

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

// The page of a replay says by which command and when; an import has no times to compare with.
TEST_F(TraceCommand, AReplaySaysWhatWasTypedAndComparesOnlyWithTimesThatWereRecorded) {
  write("m.csv", "source,target,bytes,start_us\n0,2,4096,1\n0,6,4096,2\n");
  done("convert m.csv m.trace");
  const Json imported = json("replay m.trace --format json --out d --write timed.trace");
  EXPECT_EQ(imported["invocation"]["command"],
            "cm384 trace replay m.trace --format json --out d --write timed.trace");
  EXPECT_EQ(imported["invocation"]["date"].get<std::string>().size(),
            std::string("2026-05-04T12:00:00Z").size());
  EXPECT_GT(imported["rows"][0]["replayed_us"], 2);
  for (const char* name : {"recorded_us", "ratio", "worst_error", "worst_record"})
    EXPECT_TRUE(imported["rows"][0][name].is_null()) << name;
  const Json timed = json("replay timed.trace --format json")["rows"][0];
  EXPECT_EQ(timed["recorded_us"], imported["rows"][0]["replayed_us"]);
  EXPECT_DOUBLE_EQ(timed["ratio"].get<double>(), 1);
  EXPECT_EQ(timed["worst_error"], 0);
}

// A trace begins at 0, the machine a step later: its time is no part of the trace's. Kernels of a stream that
// tell their durations alone have no recorded times; a timeline's events have, beside messages too.
TEST_F(TraceCommand, AReplayOfAnImportBeginsAtZero) {
  write("k.0.json", R"({"version": "0.0.4"}
{"id": 1, "type": 4, "durationMicros": 100}
{"id": 2, "type": 4, "durationMicros": 100}
{"id": 3, "type": 4, "durationMicros": 100})");
  done("convert k.0.json k.trace");
  const Json kernels = json("replay k.trace --format json")["rows"][0];
  EXPECT_EQ(kernels["replayed_us"], 300);
  for (const char* name : {"recorded_us", "ratio", "worst_error", "worst_record"})
    EXPECT_TRUE(kernels[name].is_null()) << name;
  // Two streams: the last kernel of the second begins when the first one's ends.
  write("t.json", R"([{"ph":"X","cat":"kernel","name":"a","pid":0,"tid":1,"ts":1000,"dur":100},
    {"ph":"X","cat":"kernel","name":"b","pid":0,"tid":2,"ts":1020,"dur":50},
    {"ph":"X","cat":"kernel","name":"c","pid":0,"tid":2,"ts":1100,"dur":60}])");
  done("from-timeline t.json t.trace");
  const Json timeline = json("replay t.trace --format json --write again.trace")["rows"][0];
  EXPECT_EQ(timeline["recorded_us"], 160);
  EXPECT_EQ(timeline["replayed_us"], 160);
  EXPECT_EQ(timeline["worst_error"], 0);
  EXPECT_EQ(json("replay again.trace --format json")["rows"][0]["recorded_us"], 160);
  // With messages: the recorded end of the collective counts. Both ranks meet at 100 us.
  write("m.csv", "name,collective,bytes\nhccl,all-reduce,4096\n");
  write("r.0.json", R"([{"ph":"X","name":"a","ts":0,"dur":100},{"ph":"X","name":"hccl","ts":100,"dur":50}])");
  done("from-timeline r.0.json r.0.json r.trace --messages m.csv --onto 0,2");
  const Json met = json("replay r.trace --format json --messages m.out")["rows"][0];
  EXPECT_EQ(met["recorded_us"], 150);
  EXPECT_GT(met["replayed_us"], 101);
  EXPECT_LT(met["replayed_us"], 110);
  EXPECT_THAT(read("m.out"), HasSubstr(",100000000,"));  // ready when the kernels end
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
  EXPECT_NEAR(replayed, 4.97, 0.05);
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

// Two devices write to a third with quanta of 3,000 and 9,000 B. While both have something left the second
// has three quarters of the last link; then the first has all of it: it takes 2 S / B where the other takes
// S / (3/4 B), 3/2 as long.
TEST_F(TraceCommand, QuantaOfACaseShareALink) {
  fs::create_directories(at("case"));
  write("case/node.csv", "nodeId,nodeType,portNum\n0..2,DEVICE,1\n3,SWITCH,3\n");
  write("case/topology.csv",
        "nodeId1,portId1,nodeId2,portId2,bandwidth,delay\n0,0,3,0,400Gbps,20ns\n1,0,3,1,400Gbps,20ns\n"
        "2,0,3,2,400Gbps,20ns\n");
  write("case/traffic.csv",
        "taskId,sourceNode,destNode,dataSize(Byte),opType,priority,delay,phaseId,dependOnPhases\n"
        "0,0,2,4096000,URMA_WRITE,7,10ns,0,\n1,1,2,4096000,URMA_WRITE,9,10ns,0,\n");
  const auto ends = [&](const std::string& settings) {
    write("case/network_attribute.txt", settings);
    done("convert case case.trace");
    done("replay case.trace --machine case --messages m.csv");
    std::map<std::string, double> ends;  // by who sent
    std::istringstream lines(read("m.csv"));
    std::string line;
    for (std::getline(lines, line); std::getline(lines, line);) {
      std::vector<std::string> fields;
      std::istringstream of(line);
      for (std::string field; std::getline(of, field, ',');) fields.push_back(field);
      ends[fields[1]] = std::stod(fields[7]) * 1e-6;
    }
    return ends;
  };
  const auto equal = ends("");
  EXPECT_NEAR(equal.at("die0") / equal.at("die1"), 1, 0.02);
  const auto shared = ends(
      "default ns3::UbSwitch::VlScheduler \"DWRR\"\ndefault ns3::UbDwrrAllocator::VlQuantums "
      "\"7:3000,9:9000\"\n");
  EXPECT_NEAR(shared.at("die0") / shared.at("die1"), 1.5, 0.03);
  EXPECT_NEAR(shared.at("die0") / equal.at("die0"), 1, 0.02);
  // Delays of a task and ports that are shut for a time are refused by name, or told.
  const std::string head =
      "taskId,faultType,dropRate(%),delay(ns),lowerDataRate(node port "
      "datrate(Mbps)),shutdownDropPackets(start "
      "end),OccasionalDropRate(%)\n";
  for (const auto& [line, what] : {std::pair{"0,1,0,500,0,0,0\n", "added delay of a task's packets"},
                                   {"0,3,0,0,0,5 9,0\n", "a port that is shut for a time"}}) {
    write("case/fault.csv", head + line);
    EXPECT_THAT(done("convert case told.trace").errors,
                HasSubstr(fmt::format("case/fault.csv:2: ignored: {}", what)));
    const Outcome refused = start("convert case strict.trace --strict");
    EXPECT_EQ(refused.code, 2);
    EXPECT_THAT(refused.errors, HasSubstr(fmt::format("--strict: case/fault.csv:2: ignored: {}", what)));
    EXPECT_FALSE(fs::exists(at("strict.trace")));
  }
}

// A replay that was written has times, also of an import whose computing begins at 0 and takes turns.
TEST_F(TraceCommand, AWrittenReplayIsComparedWithItsTimes) {
  write("g.goal",
        "num_ranks 2\nrank 0 {\nl1: calc 2000\nl2: send 64b to 1\nl2 requires l1\nl3: calc 500 cpu 1\n}\n"
        "rank 1 {\nl1: recv 64b from 0\nl2: calc 1000\nl2 requires l1\n}\n");
  done("convert g.goal g.trace");
  const Json imported = json("replay g.trace --write again.trace --format json")["rows"][0];
  EXPECT_TRUE(imported["recorded_us"].is_null());
  EXPECT_TRUE(imported["ratio"].is_null());
  const Json again = json("replay again.trace --format json")["rows"][0];
  EXPECT_EQ(again["recorded_us"], imported["replayed_us"]);
  EXPECT_EQ(again["ratio"], 1.0);
  EXPECT_EQ(again["worst_error"], 0.0);
}

// What a file is, and what reads it, whichever command it is given to.
TEST_F(TraceCommand, FilesForOtherCommandsAreNamed) {
  write("map.json", R"({"moe_layer_count":1,"layer_list":[{"device_list":[{"device_expert":[0,1]}]}]})");
  write("x.cm", "Nodes 4\nConnections 1\n0->2 id 1 start 0 size 4096\n");
  write("l.csv", "source,target,bytes\n0,2,4096\n");
  write("n.log",
        "h:1:1 [0] NCCL INFO comm 0xa rank 0 nranks 1 cudaDev 0 busId 1 - Init COMPLETE\n"
        "h:1:1 [0] NCCL INFO AllReduce: opCount 0 sendbuff 0x1 recvbuff 0x2 count 1 datatype 0 op 0 root 0 "
        "comm "
        "0xa [nranks=1] stream 0x5\n");
  const std::string htsim =
      "x.cm: looks like a connection matrix of htsim, which `cm384 trace convert` reads";
  expect_refused("convert map.json o.trace",
                 "map.json: looks like a map of experts, which `cm384 trace from-routing --placement` reads");
  for (const char* command : {"replay x.cm", "info x.cm", "check x.cm", "cut x.cm o.trace --to 1us",
                              "shape x.cm o.trace", "from-timeline x.cm o.trace"})
    expect_refused(command, htsim);
  expect_refused("replay l.csv", "l.csv: looks like a list of messages, which `cm384 trace convert` reads");
  done("convert n.log o.trace");
  expect_refused("convert n.log x.cm o.trace", "x.cm: no line of it is NCCL's or HCCL's");
  write("t.json", R"({"version":1,"traceEvents":[{"ph":"X","name":"a","ts":"soon","dur":1}]})");
  expect_refused("from-timeline t.json o.trace", "t.json: event 0: ts: ");
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
      {"2dfm4x4-multipath_a2a", 16384009 + 16384000, 16384009 / 100e3, "transport_channel.csv: ignored"},
      {"clos_32hosts-4leafs-8spines_pod2pod", 8 * 400000, 400000 / 50e3, "transport_channel.csv: ignored"},
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

// What each case of others comes to, by hand: bytes, and time where the closed form needs no fabric.
TEST_F(TraceCommand, CasesOfOthersComeToTheirValuesByHand) {
  const char* given = std::getenv("CM384_SHARED");
  const fs::path cases = fs::path(given != nullptr ? given : CM384_SOURCE_DIR "/../shared") / "cases";
  if (!fs::is_directory(cases)) GTEST_SKIP() << "no ../shared/cases beside the project and no CM384_SHARED";
  constexpr long long kMiB = 1 << 20;
  struct Case {
    const char* files;
    long long bytes;
    double least_us, most_us;
    const char* said = "";
  };
  const Case all[] = {
      // All-reduces of 1 MiB in two fours, 6 MiB each; of 4 MiB in four pairs, 8 MiB each; 50 us between.
      {"chakra/groups-of-4.*.et", 44 * kMiB, 50, 150},
      {"chakra/tp.*.et", 12 * kMiB, 5, 20},
      {"chakra/pipeline-half.*.et", 12 * kMiB, 50, 51},
      {"chakra/order-by-rank.*.et", 6 * (65536 + 64 * kMiB), 300, 600},
      // Three kernels of 100 us in turn; 6 MiB beside them.
      {"chakra/parallel-roots.*.et", 6 * kMiB, 300, 300},
      {"chakra/unmatched-send.*.et", 8192, 0, 2, "sends that no rank receives, which nobody waits for: 1"},
      {"chakra/ag.*.et", 56 * kMiB, 20, 60},
      {"chakra/astra_all_gather_16/*.et", 240 * kMiB, 60, 150},
      {"chakra/missing-dependency.*.et", 6 * kMiB, 5, 20, "waits for nodes that the file does not have: 4"},
      {"chakra/zero-durations.*.et", 0, 0, 0, "carry neither duration nor size and take no time: 8"},
      {"chakra/zero-size-collective.*.et", 6 * kMiB, 5, 20, "collectives of 0 B, where ranks only meet: 4"},
      {"chakra/uint64-size.*.et", 3 * kMiB, 3, 10},
      {"htsim/incast.cm", 15 * 2'000'000, 15 * 2e6 / 196e3, 300},
      {"htsim/perm_32n_32c_2MB.cm", 32 * 2'000'000, 2e6 / 196e3, 30},
      // From the beginning of the first kernel to the end of the last one of both ranks.
      {"timeline/hta-rank*-cut.json", 0, 1'231'143, 1'231'143, "127 others are left out"},
      {"timeline/begin-end-events.json", 0, 140, 140},
      {"timeline/overlap-two-streams.json", 0, 580, 580, "360.0 us of communication, 360.0 us of it beside"},
  };
  for (const Case& c : all) {
    const bool timeline = std::string(c.files).starts_with("timeline");
    const Outcome made =
        done((timeline ? "from-timeline " : "convert ") + (cases / c.files).string() + " c.trace");
    EXPECT_THAT(made.errors, HasSubstr(c.said)) << c.files;
    const Json row = json("replay c.trace --format json")["rows"][0];
    EXPECT_EQ(row["bytes"], c.bytes) << c.files;
    EXPECT_GE(row["replayed_us"].get<double>(), c.least_us - 1e-6) << c.files;
    EXPECT_LE(row["replayed_us"].get<double>(), c.most_us + 1e-6) << c.files;
    if (timeline) EXPECT_NEAR(row["recorded_us"].get<double>(), c.most_us, 1e-6) << c.files;
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

// Every sample of a foreign form loads whole and moves what its text says.
TEST_F(TraceCommand, SamplesOfEveryFormLoadAndMoveWhatTheySay) {
  const std::string folder = CM384_SOURCE_DIR "/examples/traces/";
  const std::pair<std::string, long long> samples[] = {
      {"convert " + folder + "incast.cm", 3 * 65536 + 4096},
      {"convert " + folder + "pair.goal", 65536},
      // Two groups of four: four all-reduces of 256 KiB; four pairs: of 1 and of 2 MiB.
      {"convert " + folder + "layers.simai.txt", 2 * 4 * (2 * 3 * 262144) + 4 * (2 * 1048576 + 2 * 2097152)},
      {"convert --bytes 96KiB " + folder + "ring.msccl.xml", 6 * 32768},
      {"convert " + folder + "chakra.1.json " + folder + "chakra.0.json", 2 * 1048576},
      {"from-timeline " + folder + "timeline.0.json " + folder + "timeline.1.json", 2 * 1048576},
      // An all-reduce of 1 MiB, an all-gather of 256 KiB; an all-reduce and a reduce-scatter by what is sent.
      {"convert " + folder + "pair.nccl.log", 2 * 1048576 + 2 * 262144},
      {"from-timeline " + folder + "communication.0.json " + folder + "communication.1.json", 2 * 1500000}};
  for (const auto& [command, bytes] : samples) {
    done(command + " sample.trace --strict");
    EXPECT_EQ(json("replay sample.trace --format json")["rows"][0]["bytes"], bytes) << command;
  }
  const std::string routing = CM384_SOURCE_DIR "/traces/samples/qwen1.5-moe-a2.7b-layer0-part.jsonl ";
  done("from-routing " + routing + "x.trace --batch 4 --placement " + folder + "experts.json");
  expect_refused("convert " + folder + "benchmark.json x.trace",
                 "looks like requests of a service, which `cm384 run serve --requests` reads");
  expect_refused("convert " + folder + "timeline.0.json x.trace",
                 "looks like a profiler's timeline, which `cm384 trace from-timeline` reads");
  expect_refused("convert " + folder + "pair.goal x.trace --groups g.json",
                 "--groups: has no effect on a GOAL schedule");
  write("what", "a letter\n");
  expect_refused("convert what x.trace", "what: begins with 'a letter'; allowed: traces of cm384, Chakra's");
}

// Overlap of two streams as drawn, counted us by us; nothing is moved, so durations are those recorded.
TEST_F(TraceCommand, AReplayKeepsTheOverlapOfATimeline) {
  std::string events;
  std::vector<int> busy[2];
  std::uint64_t state = 7;
  const auto draw = [&](int most) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return 1 + static_cast<int>((state >> 33) % static_cast<std::uint64_t>(most));
  };
  for (const int stream : {0, 1}) {
    busy[stream].resize(20'000);
    for (int at = 0, n = 0; n < 150; ++n) {
      at += draw(n % 3 == 0 ? 40 : 3);
      const int lasts = draw(stream == 0 ? 30 : 60);
      events += fmt::format(
          "{}{{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"{}\",\"pid\":0,\"tid\":{},\"ts\":{},\"dur\":{}}}",
          events.empty() ? "" : ",", stream == 0 ? "gemm" : "ncclDevKernel_x", stream, at, lasts);
      for (int t = at; t < at + lasts; ++t) busy[stream][static_cast<std::size_t>(t)] = 1;
      at += lasts;
    }
  }
  double communication = 0, beside = 0;
  for (std::size_t t = 0; t < busy[1].size(); ++t) {
    communication += busy[1][t];
    beside += busy[1][t] * busy[0][t];
  }
  write("t.json", "{\"traceEvents\":[" + events + "]}");
  const Outcome made = done("from-timeline t.json a.trace --collectives c.csv");
  EXPECT_THAT(made.errors,
              HasSubstr(fmt::format("recorded: {:.1f} us of communication, {:.1f} us of it beside",
                                    communication, beside)));
  const Json result = json("replay a.trace --collectives c.csv --format json")["collectives"];
  EXPECT_NEAR(result["communication_us"].get<double>(), communication, 0.001 * communication);
  EXPECT_NEAR(result["beside_other_work_us"].get<double>(), beside, 0.05 * beside);
}

// Messages to chips one to four hops away on a ring: each hop costs as much as the one before, once.
TEST_F(TraceCommand, EachHopOfATorusCostsTheSame) {
  write("list.csv", "source,target,bytes,start_us\n0,16,512,0\n0,32,512,100\n0,48,512,200\n0,64,512,300\n");
  done("convert list.csv a.trace");
  done("replay a.trace --set topology.kind=torus --set topology.shape=48x1 --messages m.csv");
  std::istringstream lines(read("m.csv"));
  std::string line;
  std::getline(lines, line);
  std::vector<std::string> names;
  std::istringstream header(line);
  for (std::string name; std::getline(header, name, ',');) names.push_back(name);
  const auto column = [&](const char* name) {
    return static_cast<std::size_t>(std::ranges::find(names, name) - names.begin());
  };
  const std::size_t ready = column("ready_ps"), end = column("end_ps"), hops = column("hops");
  std::vector<long long> took;
  while (std::getline(lines, line)) {
    std::vector<std::string> fields;
    std::istringstream row(line);
    for (std::string field; std::getline(row, field, ',');) fields.push_back(field);
    EXPECT_EQ(std::stoll(fields.at(hops)), 3 + std::ssize(took));
    took.push_back(std::stoll(fields.at(end)) - std::stoll(fields.at(ready)));
  }
  ASSERT_EQ(took.size(), 4u);
  EXPECT_GT(took[1], took[0]);
  EXPECT_EQ(took[2] - took[1], took[1] - took[0]);
  EXPECT_EQ(took[3] - took[2], took[1] - took[0]);
}

// Of formats whose rows say nothing by their order: the same end, whatever it is.
TEST_F(TraceCommand, TheOrderOfRowsMovesNoEnd) {
  std::vector<std::string> tasks, messages, connections, kernels, events, nodes;
  for (int n = 0; n < 48; ++n) {
    const int from = n % 6, to = (from + 1 + n / 6 % 5) % 6, bytes = 65536 * (1 + n % 3);
    tasks.push_back(fmt::format("{},{},{},{},URMA_WRITE,7,{}ns,{},{}\n", n, from, to, bytes, 10 * (n % 4),
                                n / 24, n < 24 ? "" : "0"));
    messages.push_back(fmt::format("{},{},{},{}\n", from, to, bytes, 0.25 * (n % 4)));
    connections.push_back(n < 24 ? fmt::format("{}->{} size {} recv_done_trigger {}\n", from, to, bytes, n)
                                 : fmt::format("{}->{} size {} trigger {}\n", from, to, bytes, n - 24));
    if (n < 24) connections.push_back(fmt::format("trigger id {} oneshot\n", n));
    kernels.push_back(fmt::format("{},k{},{},{}\n", n % 3, n, 100 + 7 * n, 5 + n % 11));
    events.push_back(
        fmt::format("{{\"ph\":\"B\",\"name\":\"k\",\"pid\":0,\"tid\":{},\"ts\":{}}},\n", n % 3, 10 + 7 * n));
    events.push_back(
        fmt::format("{{\"ph\":\"E\",\"pid\":0,\"tid\":{},\"ts\":{}}},\n", n % 3, 15 + 7 * n + n % 11));
    nodes.push_back(fmt::format(
        "{{\"id\": {}, \"name\": \"k\", \"type\": \"COMP_NODE\", \"durationMicros\": \"{}\"{}}}\n", n + 1,
        1 + n % 5, n < 8 ? "" : fmt::format(", \"dataDeps\": [\"{}\"]", n - 7)));
  }
  std::vector<std::string> ranks, gpus;
  for (int rank = 0; rank < 6; ++rank) {
    std::vector<std::string> lines;
    for (int n = 0; n < 5; ++n) {
      lines.push_back(fmt::format(
          "s{0}: send 65536b to {1} tag {0}\nr{0}: recv 65536b from {2} tag {0}\nc{0}: calc 900\n", n,
          (rank + n + 1) % 6, (rank + 5 - n) % 6));
      lines.push_back(fmt::format("c{0} requires r{0}\n", n));
      if (n > 0) lines.push_back(fmt::format("s{} requires c{}\n", n, n - 1));
    }
    std::string steps[2];
    for (int n = 0; n < 5; ++n) {
      const auto step = [&](int s, const char* type) {
        return fmt::format("<step s=\"{}\" type=\"{}\" cnt=\"1\"/>", s, type);
      };
      const std::string both[2] = {step(2 * n, "s"), step(2 * n + 1, "r")};
      steps[0] += both[0] + both[1];
      steps[1] = both[1] + both[0] + steps[1];
    }
    gpus.push_back(fmt::format("<gpu id=\"{}\"><tb id=\"0\" send=\"{}\" recv=\"{}\" chan=\"0\">{}</tb></gpu>",
                               rank, (rank + 1) % 6, (rank + 5) % 6, steps[rank % 2]));
    std::string as_it_is, turned;
    for (const std::string& line : lines) {
      as_it_is += line;
      turned = line + turned;
    }
    ranks.push_back(fmt::format("rank {} {{\n{}}}\n", rank, rank % 2 == 0 ? as_it_is : turned));
  }
  struct Format {
    const char *name, *command;
    std::string head;
    std::vector<std::string> rows;
    std::string tail;
  };
  const Format formats[] = {
      {"traffic.csv", "convert traffic.csv --onto 0,2,4,16,18,20",
       "taskId,sourceNode,destNode,dataSize(Byte),opType,priority,delay,phaseId,dependOnPhases\n", tasks, ""},
      {"list.csv", "convert list.csv --onto 0,2,4,16,18,20", "source,target,bytes,start_us\n", messages, ""},
      {"a.cm", "convert a.cm --onto 0,2,4,16,18,20", "Nodes 6\n", connections, ""},
      {"a.goal", "convert a.goal --onto 0,2,4,16,18,20", "num_ranks 6\n", ranks, ""},
      {"a.xml", "convert a.xml --bytes 384KiB --onto 0,2,4,16,18,20",
       "<algo nchunksperloop=\"6\" ngpus=\"6\">", gpus, "</algo>"},
      {"kernel_details.csv", "from-timeline kernel_details.csv",
       "Stream ID,Name,Start Time(us),Duration(us)\n", kernels, ""},
      {"t.json", "from-timeline t.json", "[", events, "{\"ph\":\"M\",\"name\":\"process_name\"}]"},
      {"c.0.json", "convert c.0.json", "{\"version\": \"0.0.4\"}\n", nodes, ""}};
  for (const Format& format : formats) {
    double ends[3]{};
    for (const int turn : {0, 1, 2}) {
      std::vector<std::string> rows = format.rows;
      if (turn == 1) std::ranges::reverse(rows);
      // 5 and no size here have a factor in common.
      for (std::size_t n = 0; turn == 2 && n < rows.size(); ++n) rows[n] = format.rows[5 * n % rows.size()];
      std::string text = format.head;
      for (const std::string& row : rows) text += row;
      write(format.name, text + format.tail);
      done(std::string(format.command) + " a.trace");
      ends[turn] = json("replay a.trace --format json")["rows"][0]["replayed_us"].get<double>();
    }
    EXPECT_GT(ends[0], 1) << format.name;
    EXPECT_NEAR(ends[1], ends[0], 0.01 * ends[0]) << format.name;
    EXPECT_NEAR(ends[2], ends[0], 0.01 * ends[0]) << format.name;
  }
}

TEST_F(TraceCommand, CollectivesOfATimelineAreComparedWithTheirReplay) {
  const std::string folder = CM384_SOURCE_DIR "/examples/traces/";
  done("from-timeline " + folder + "timeline.0.json " + folder +
       "timeline.1.json a.trace --collectives c.csv --onto 0,2");
  const Json result = json("replay a.trace --collectives c.csv --format json")["collectives"];
  ASSERT_EQ(result["rows"].size(), 1u);
  EXPECT_EQ(result["rows"][0]["recorded_us"], 25);
  EXPECT_EQ(result["rows"][0]["ranks"], 2);
  EXPECT_EQ(result["rows"][0]["bytes"], 1048576);
  // Two rounds of 512 KiB at the 136 GB/s that a die writes are 7.7 us, each behind a latency of 1 to 2 us;
  // all of it beside the 40 us of the other stream.
  EXPECT_NEAR(result["rows"][0]["replayed_us"].get<double>(), 10.5, 1.5);
  EXPECT_NEAR(result["beside_other_work_us"].get<double>(), result["communication_us"].get<double>(), 0.01);
  EXPECT_THAT(done("replay a.trace --collectives c.csv").output, HasSubstr("communication of all ranks"));
  expect_refused("replay a.trace --collectives a.trace", "a.trace:1: ");
}

}  // namespace
}  // namespace cm384::trace_command_test
