// Schedules of other simulators: htsim, GOAL, SimAI, MSCCL, small ones of our own with values by hand; and
// what a file looks like.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <fstream>
#include <map>

#include "testbenches/hw/refusal.h"
#include "traces/import.h"
#include "traces/importers/recognise.h"

namespace cm384::traces::schedules_test {
namespace {

using ::testing::HasSubstr;
using Kind = TrafficRecord::Kind;
using Wait = TrafficDependency::Kind;
using Pairs = std::map<std::pair<int, int>, std::uint64_t>;

struct Read final : TrafficSink {
  std::vector<TrafficRecord> records;
  ImportResult result;
  void add(const TrafficRecord& record) override {
    EXPECT_EQ(fault_of(record, records.size()), "");
    records.push_back(record);
  }
  void finish() override {}
  Pairs pairs() const {
    Pairs all;
    for (const TrafficRecord& r : records) {
      if (r.moves()) all[{r.source.number, r.target.number}] += r.total_bytes();
    }
    return all;
  }
  std::uint64_t bytes() const {
    std::uint64_t sum = 0;
    for (const auto& [pair, bytes] : pairs()) sum += bytes;
    return sum;
  }
  Time computed(int die) const {
    Time sum;
    for (const TrafficRecord& r : records) {
      if (r.kind == Kind::compute && r.source.number == die) sum += r.end - r.start;
    }
    return sum;
  }
};

std::string saved(const std::string& text) {
  const std::string path = ::testing::TempDir() + "cm384-schedule";
  std::ofstream(path, std::ios::binary) << text;
  return path;
}
ImportOptions options(std::int64_t bytes = 0, Time unit = {}) {
  ImportOptions made;
  made.dies = 16;
  made.machine = "small";
  made.dies_per_node = 8;
  made.bytes = bytes;
  made.time_unit = unit;
  return made;
}
using Import = ImportResult (*)(const std::string&, const ImportOptions&, TrafficSink&);
Read import(Import by, const std::string& text, const ImportOptions& how = options()) {
  Read read;
  read.result = by(saved(text), how, read);
  return read;
}
std::string refused(Import by, const std::string& text, const ImportOptions& how = options()) {
  return refusal([&] { import(by, text, how); });
}

TEST(Htsim, ConnectionsStartAtTheirTimesAndByTriggers) {
  const std::string text =
      "Nodes 4\nConnections 4\nTriggers 2\n0->1 id 1 start 5 size 2000\n1->2 id 2 start 0 size 300 "
      "recv_done_trigger 7\n"
      "2->3 id 3 trigger 7 size 40 send_done_trigger 8\n3->0 id 4 trigger 8 size 9\n"
      "trigger id 7 oneshot\ntrigger id 8 barrier count 1\n";
  EXPECT_THAT(refused(import_htsim, text),
              HasSubstr(":4: start: 5: of which unit is not told; allowed: --time-unit"));
  const Read read = import(import_htsim, text, options(0, 1_us));
  EXPECT_EQ(read.pairs(), (Pairs{{{0, 1}, 2000}, {{1, 2}, 300}, {{2, 3}, 40}, {{3, 0}, 9}}));
  EXPECT_EQ(read.records[3].start, 5_us);
  EXPECT_EQ(read.records[1].dependencies, (std::vector<TrafficDependency>{{0, Wait::arrival, {}}}));
  EXPECT_EQ(read.records[2].dependencies, (std::vector<TrafficDependency>{{1, Wait::completion, {}}}));
}

TEST(Htsim, PrioritiesAreNotTaken) {
  const std::string text = "Nodes 4\r\nConnections 2\r\n0->1 size 5 prio 2\r\n1->2 size 7 prio 0\r\n";
  EXPECT_THAT(import(import_htsim, text).result.not_taken,
              ::testing::ElementsAre("prio of connections, which are all alike: 1"));
}

TEST(Htsim, BrokenOnesAreRefusedByLine) {
  const auto with = [](const std::string& rest) { return refused(import_htsim, "Nodes 4\n" + rest); };
  EXPECT_THAT(refused(import_htsim, "Knots 4\n"), HasSubstr(":1: header: allowed: Nodes N"));
  EXPECT_THAT(refused(import_htsim, "Nodes 17\n0->1 size 1\n"), HasSubstr("17 ranks, but small has 16 dies"));
  EXPECT_THAT(with(""), HasSubstr("no connection"));
  EXPECT_THAT(with("Connections 2\n0->1 size 5\n"), HasSubstr("Connections: 2 announced, 1 there"));
  EXPECT_THAT(with("0->4 size 5\n"), HasSubstr(":2: target: '4'; allowed: a whole number from 0 to 3"));
  EXPECT_THAT(with("0->0 size 5\n"), HasSubstr("another node"));
  EXPECT_THAT(with("0->1 start 0\n"), HasSubstr("size: allowed: 1 to"));
  EXPECT_THAT(with("0->1 size\n"), HasSubstr(":2: size: is missing"));
  EXPECT_THAT(with("0->1 colour 4 size 3\n"), HasSubstr(":2: 'colour'; allowed: id, start"));
  EXPECT_THAT(with("0->1 trigger 3 size 3\n"), HasSubstr(":2: trigger 3: is not declared"));
  EXPECT_THAT(with("0->1 trigger 3 size 3\ntrigger id 3 oneshot\n"), HasSubstr("0 connections fire it"));
  EXPECT_THAT(with("0->1 size 3\ntrigger id 3 twice\n"), HasSubstr("'twice'; allowed: oneshot"));
}

constexpr const char* kGoal = R"(num_ranks 2
rank 0 {
l1: calc 1000
l2: send 64b to 1 tag 5
l3: calc 2000 cpu 1
l2 requires l1
l3 irequires l2
}
rank 1 {
l1: recv 64b from 0 tag 5
l2: calc 500
l2 requires l1
}
)";

TEST(Goal, OperationsWaitForWhatTheyRequire) {
  const Read read = import(import_goal, kGoal);
  EXPECT_EQ(read.pairs(), (Pairs{{{0, 1}, 64}}));
  EXPECT_EQ(read.computed(0), 3_us);
  EXPECT_EQ(read.computed(1), 500_ns);
  std::vector<int> turns;
  for (const TrafficRecord& r : read.records) {
    if (r.kind == Kind::compute) turns.push_back(r.lane);
  }
  EXPECT_THAT(turns, ::testing::UnorderedElementsAre(1, 2, 1));
  EXPECT_THAT(read.result.not_taken, ::testing::IsEmpty());
}

// As schedgen and people write them: comments, braces anywhere, dependencies before what they name.
TEST(Goal, LinesOfARankMayStandInAnyOrder) {
  const std::string text =
      "/* made by\n schedgen */\nnum_ranks 2\nrank 0{\nl2 requires l1 // at once\nl2: send 64b to 1\n"
      "l1: calc 1000\n}\nrank 1\n{\nl2 requires l1\nl1: recv 64b from 0\nl2: calc 500 }\n";
  EXPECT_EQ(recognise(saved(text)), TraceKind::goal);
  EXPECT_THAT(refused(import_goal, text), HasSubstr("'}'; allowed: "));
  std::string good = text;
  good.replace(good.rfind(" }"), 2, "\n}");
  const Read read = import(import_goal, good);
  EXPECT_EQ(read.pairs(), (Pairs{{{0, 1}, 64}}));
  EXPECT_EQ(read.computed(0), 1_us);
  // The message waits for the point that waits for the calculation.
  const auto sent = std::ranges::find_if(read.records, [](const TrafficRecord& r) { return r.moves(); });
  ASSERT_NE(sent, read.records.end());
  ASSERT_EQ(sent->dependencies.size(), 1u);
  const TrafficRecord& point = read.records[sent->dependencies[0].on];
  ASSERT_EQ(point.dependencies.size(), 1u);
  EXPECT_EQ(read.records[point.dependencies[0].on].kind, Kind::compute);
}

TEST(Goal, WhatMovesNothingAndWhatSharesTurnsIsTold) {
  std::string text = "num_ranks 1\nrank 0 {\nsend 10b to 0\nrecv 10b from 0\n";
  for (int cpu = 0; cpu < 17; ++cpu) text += fmt::format("calc 100 cpu {}\n", cpu);
  const Read read = import(import_goal, text + "}\n");
  EXPECT_EQ(read.bytes(), 0u);
  EXPECT_THAT(read.result.notes,
              ::testing::Contains("sends of 0 B or to the sender itself, which move nothing: 1"));
  EXPECT_THAT(read.result.notes,
              ::testing::Contains("calculations of a cpu from 14 on, which share the turns of one: 2"));
}

TEST(Goal, BrokenOnesAreRefusedByLine) {
  const auto with = [](const std::string& rest) {
    return refused(import_goal, "num_ranks 2\nrank 0 {\n" + rest);
  };
  EXPECT_THAT(refused(import_goal, "ranks 2\n"), HasSubstr(":1: header: allowed: num_ranks N"));
  EXPECT_THAT(with("calc 5\n"), HasSubstr("the file ends within a rank"));
  EXPECT_THAT(with("l1: send 5b\n}\n"), HasSubstr(":3: to: is missing"));
  EXPECT_THAT(with("l1: send 5b to 2\n}\n"), HasSubstr(":3: to: '2'; allowed"));
  EXPECT_THAT(with("l1: calc x\n}\n"), HasSubstr(":3: calc: 'x'"));
  EXPECT_THAT(with("l1: jump 3\n}\n"), HasSubstr(":3: 'jump'; allowed: calc, send, recv"));
  EXPECT_THAT(with("l1: calc 3\nl1: calc 4\n}\n"), HasSubstr(":4: 'l1:': the rank has it twice"));
  EXPECT_THAT(with("l1: calc 3\nl1 requires l9\n}\n"), HasSubstr(":4: 'l9': no such label"));
  EXPECT_THAT(refused(import_goal, "num_ranks 1\nrank 0\ncalc 3\n"),
              HasSubstr(":3: rank: allowed: rank N {"));
  EXPECT_THAT(with("l1: recv 3b from 1\n}\n"), HasSubstr(":3: recv: rank 1 sends rank 0 no such message"));
  EXPECT_THAT(with("l1: recv 3b from 1\n}\nrank 1 {\nsend 4b to 0\n}\n"),
              HasSubstr("recv: 3 B, but 4 B are sent"));
  EXPECT_THAT(with("l1: calc 3\nl2: calc 3\nl1 requires l2\nl2 requires l1\n}\n"), HasSubstr("in a cycle"));
}

// Four ranks: tensor groups 0 1 and 2 3, data groups 0 2 and 1 3.
constexpr const char* kSimAi =
    "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 1 pp: 1 vpp: 1 ga: 1 all_gpus: 4 "
    "checkpoints: 0 "
    "checkpoint_initiates: 0\n2\n"
    "first -1 1000 ALLREDUCE 800 10 NONE 0 20 ALLREDUCE 600 5\n"
    "second -1 3000 NONE 0 30 ALLGATHER 100 40 NONE 0 0\n";

TEST(SimAi, LayersRunForwardsAndBackwardsInTheirGroups) {
  const Read read = import(import_simai, kSimAi);
  // Of a tensor pair: an all-reduce of 800 B, an all-gather of 100 B; of a data pair an all-reduce of 600 B.
  EXPECT_EQ(read.pairs(), (Pairs{{{0, 1}, 900},
                                 {{1, 0}, 900},
                                 {{2, 3}, 900},
                                 {{3, 2}, 900},
                                 {{0, 2}, 600},
                                 {{2, 0}, 600},
                                 {{1, 3}, 600},
                                 {{3, 1}, 600}}));
  EXPECT_EQ(read.computed(0), 1000_ns + 3000_ns + 40_ns + 30_ns + 20_ns + 10_ns + 5_ns);
}

TEST(SimAi, WhatItsHeaderSaysBeyondOneIterationIsNotTaken) {
  const std::string text =
      "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 1 ep: 1 pp: 2 vpp: 1 ga: 4 all_gpus: 2 "
      "checkpoints: 0 checkpoint_initiates: 0 pp_comm: "
      "4096\n1\na\t-1\t5\tNONE\t0\t1\tNONE\t0\t1\tNONE\t0\t1\n";
  EXPECT_THAT(import(import_simai, text).result.not_taken,
              ::testing::ElementsAre(HasSubstr("2 stages"), "ga, of whose micro-batches one is run: 4",
                                     "pp_comm: 4096"));
}

// A MICRO workload has no groups, and most often does not say how many ranks there are: those of --onto.
TEST(SimAi, OfAMicroWorkloadAllRanksMeet) {
  const std::string text =
      "MICRO\n2\na -1 1000 NONE 0 0 NONE 0 0 ALLREDUCE 600 0\nb -1 0 ALLGATHER 50 0 NONE 0 0 NONE 0 0\n";
  EXPECT_THAT(refused(import_simai, text), HasSubstr(":1: header: all_gpus is missing; allowed: --onto"));
  ImportOptions three = options();
  three.onto = {0, 2, 4};
  const Read read = import(import_simai, text, three);
  Pairs pairs;  // two rounds of a third of 600 B, and 50 B
  for (const int a : {0, 2, 4}) {
    for (const int b : {0, 2, 4}) {
      if (a != b) pairs[{a, b}] = 450;
    }
  }
  EXPECT_EQ(read.pairs(), pairs);
  EXPECT_EQ(read.computed(4), 1_us);
  const std::string groups =
      "MICRO model_parallel_NPU_group: 2 all_gpus: 4\n1\na -1 0 ALLTOALL 400 0 NONE 0 0 NONE 0 0\n";
  EXPECT_EQ(import(import_simai, groups).bytes(), 4u * 3u * 100u);
}

TEST(SimAi, BrokenOnesAreRefusedByLine) {
  const std::string header = "HYBRID_TRANSFORMER model_parallel_NPU_group: 2 all_gpus: 4\n";
  EXPECT_THAT(refused(import_simai, "DATA all_gpus: 4\n"),
              HasSubstr(":1: header: 'DATA'; allowed: HYBRID_TRANSFORMER"));
  EXPECT_THAT(refused(import_simai, "MICRO all_gpus: 4 colour: 3\n"), HasSubstr(":1: header: 'colour:'"));
  EXPECT_THAT(refused(import_simai, "MICRO model_parallel_NPU_group: 3 all_gpus: 4\n"),
              HasSubstr("a multiple of 3"));
  EXPECT_THAT(refused(import_simai, header), HasSubstr("layers: their number is missing"));
  EXPECT_THAT(refused(import_simai, header + "2\nl -1 1 NONE 0 1 NONE 0 1 NONE 0 1\n"),
              HasSubstr("2 announced, 1 there"));
  EXPECT_THAT(refused(import_simai, header + "1\nl -1 1 NONE 0\n"),
              HasSubstr(":3: layer: 5 words; allowed: 12"));
  EXPECT_THAT(refused(import_simai, header + "1\nl -1 1 SEND 0 1 NONE 0 1 NONE 0 1\n"),
              HasSubstr(":3: communication: 'SEND'"));
}

// A ring all-gather of two ranks, each with one chunk.
constexpr const char* kMsccl =
    R"(<algo name="ring" nchunksperloop="2" nchannels="1" proto="Simple" ngpus="2" coll="allgather">
  <gpu id="0"><tb id="0" send="1" recv="1" chan="0">
    <step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
    <step s="1" type="r" srcbuf="i" srcoff="0" dstbuf="o" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/>
  </tb></gpu>
  <gpu id="1"><tb id="0" send="0" recv="0" chan="0">
    <step s="0" type="r" cnt="1"/><step s="1" type="s" cnt="1"/>
  </tb><tb id="1" send="-1" recv="-1" chan="1"><step s="0" type="nop" depid="0" deps="1"/></tb></gpu>
</algo>
)";

TEST(Msccl, StepsSendAndReceiveChunks) {
  const Read read = import(import_msccl, kMsccl, options(3000));
  EXPECT_EQ(read.pairs(), (Pairs{{{0, 1}, 1500}, {{1, 0}, 1500}}));
  EXPECT_THAT(read.result.notes, ::testing::Contains("a chunk is 1500 B, one loop"));
}

// Elements are known by their numbers, whatever their order; comments say nothing.
TEST(Msccl, ElementsMayStandInAnyOrder) {
  const std::string text =
      R"(<?xml version="1.0"?><!-- <a> --><algo nchunksperloop="2" ngpus="2"><gpu id="1"><tb id="0" send="0" recv="0" chan="0">
    <step s="1" type="s" cnt="1"/><!-- then --><step s="0" type="r" cnt="1"/></tb></gpu><gpu id="0">
    <tb id="0" send="1" recv="1" chan="0"><step s="1" type="r" cnt="1"/><step s="0" type="s" cnt="1"/></tb></gpu></algo>)";
  EXPECT_EQ(recognise(saved(text)), TraceKind::msccl);
  const Read read = import(import_msccl, text, options(3000));
  EXPECT_EQ(read.pairs(), (Pairs{{{0, 1}, 1500}, {{1, 0}, 1500}}));
  // Rank 1 sends what it got: its send is behind that of rank 0.
  std::vector<int> senders;
  for (const TrafficRecord& r : read.records) {
    if (r.moves()) senders.push_back(r.source.number);
  }
  EXPECT_THAT(senders, ::testing::ElementsAre(0, 1));
  EXPECT_THAT(refused(import_msccl, "<algo><!-- ", options(1)), HasSubstr("offset 6: no end of a comment"));
}

TEST(Msccl, BrokenOnesAreRefusedByStep) {
  const auto broken = [](const std::string& from, const std::string& to) {
    std::string text = kMsccl;
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return refused(import_msccl, text.replace(at, from.size(), to), options(3000));
  };
  EXPECT_THAT(refused(import_msccl, kMsccl), HasSubstr("allowed: --bytes N"));
  EXPECT_THAT(broken("ngpus=\"2\"", "ngpus=\"x\""), HasSubstr("ngpus: 'x'; allowed"));
  EXPECT_THAT(broken("type=\"s\"", "type=\"q\""), HasSubstr("gpu 0: tb 0: step 0: type: 'q'; allowed"));
  EXPECT_THAT(broken("depid=\"0\"", "depid=\"4\""),
              HasSubstr("gpu 1: tb 1: step 0: depid, deps: there is no such step"));
  EXPECT_THAT(broken("<step s=\"1\" type=\"s\" cnt", "<step s=\"1\" type=\"nop\" cnt"),
              HasSubstr("gpu 0: tb 0: step 1: receives what nobody sends"));
  EXPECT_THAT(broken("<gpu id=\"1\">", "<cpu id=\"1\">"), HasSubstr("<cpu>; allowed: <gpu>"));
  EXPECT_THAT(refused(import_msccl, std::string(kMsccl).substr(0, 400), options(3000)), HasSubstr("no XML"));
  std::string deep;
  for (int n = 0; n < 100'000; ++n) deep += "<a>";
  EXPECT_THAT(refused(import_msccl, deep, options(1)), HasSubstr("nested deeper than 16"));
  EXPECT_THAT(refused(import_msccl, "<a b='</a></a></a>'>", options(1)), HasSubstr("'<' in a value"));
}

// Four ranks of two processes each of two hosts: pairs reduce, then all gather, in fp16 and int32.
std::string nccl_log() {
  std::string text = "n0:10:10 [0] NCCL INFO NCCL version 2.21\n";
  const auto line = [&](int rank, const std::string& what) {
    text += fmt::format("n{}:{}:{} [{}] NCCL INFO {}\n", rank / 2, 10 + rank, 90 + rank, rank % 2, what);
  };
  // World ranks run against the order of the lines.
  for (const int rank : {3, 2, 1, 0}) {
    line(rank,
         fmt::format("ncclCommInitRank comm 0xa{0} rank {0} nranks 4 cudaDev 0 busId 1 commId 0x77 - Init "
                     "COMPLETE",
                     rank));
    line(rank, fmt::format("ncclCommSplit comm 0xb{} rank {} nranks 2 cudaDev 0 busId 1 commId 0x{} - Init "
                           "COMPLETE",
                           rank, rank % 2, rank / 2));
  }
  for (const int rank : {3, 2, 1, 0}) {
    line(rank,
         fmt::format("AllReduce: opCount 0 sendbuff 0x1 recvbuff 0x1 count 1000 datatype 6 op 0 root 0 comm "
                     "0xb{} [nranks=2] stream 0x5",
                     rank));
    line(rank,
         fmt::format("AllGather: opCount 1 sendbuff 0x1 recvbuff 0x2 count 100 datatype 2 op 0 root 0 comm "
                     "0xa{} [nranks=4] stream 0x5",
                     rank));
    // A ring in one group of calls, the receive first.
    line(rank, fmt::format(
                   "Recv: opCount 2 sendbuff (nil) recvbuff 0x2 count 50 datatype 1 op 0 root {} comm 0xa{} "
                   "[nranks=4] stream 0x5",
                   (rank + 3) % 4, rank));
    line(rank, fmt::format(
                   "Send: opCount 2 sendbuff 0x1 recvbuff (nil) count 50 datatype 1 op 0 root {} comm 0xa{} "
                   "[nranks=4] stream 0x5",
                   (rank + 1) % 4, rank));
  }
  return text;
}
ImportResult log_of(const std::string& path, const ImportOptions& how, TrafficSink& sink) {
  return import_log({path}, how, sink);
}

TEST(Logs, NcclsCallsMoveWhatTheirCommunicatorsSay) {
  const Read read = import(log_of, nccl_log());
  Pairs pairs;
  for (const auto& [a, b] : {std::pair(0, 1), std::pair(2, 3)})
    pairs[{a, b}] = pairs[{b, a}] = 2000;  // two rounds of half of 2,000 B
  for (int a = 0; a < 4; ++a) {
    for (int b = 0; b < 4; ++b) {
      if (a != b) pairs[{a, b}] += 400;
    }
    pairs[{a, (a + 1) % 4}] += 50;
  }
  EXPECT_EQ(read.pairs(), pairs);
  EXPECT_THAT(read.result.notes.front(), HasSubstr("16 calls; those of a stream"));
  EXPECT_THAT(read.result.not_taken, ::testing::IsEmpty());
}

// Two ranks under a launcher that marks lines, and of an NCCL whose communicators have no name.
TEST(Logs, OlderNcclsAndLinesWithMarksAreRead) {
  const auto log = [](const std::string& mark, int second_place) {
    std::string text;
    for (const int rank : {0, 1})
      text += fmt::format(
          "{}n0:{}:7 [{}] NCCL INFO comm 0xa{} rank {} nranks 2 cudaDev {} busId 1 - Init COMPLETE\n", mark,
          10 + rank, rank, rank, rank == 0 ? 0 : second_place, rank);
    for (const int rank : {0, 1})
      text += fmt::format(
          "{}n0:{}:8 [{}] NCCL INFO AllReduce: opCount 0 sendbuff 0x1 recvbuff 0x2 count 1000 datatype 9 op "
          "0 "
          "root 0 comm 0xa{} [nranks=2] stream 0x5\n",
          mark, 10 + rank, rank, rank);
    return text;
  };
  for (const char* mark : {"", "[2026-01-02 03:04:05] ", "[1,0]<stdout>:"}) {
    EXPECT_EQ(recognise(saved(log(mark, 1))), TraceKind::log) << mark;
    const Read read = import(log_of, log(mark, 1));
    EXPECT_EQ(read.pairs(), (Pairs{{{0, 1}, 2000}, {{1, 0}, 2000}})) << mark;
    EXPECT_THAT(read.result.notes,
                ::testing::Contains(HasSubstr("without a commId are matched by the order")));
  }
}

// 2,000 B from rank 0 to 1, in calls one behind the other.
TEST(Logs, HcclsSendsAndReceivesAreMessages) {
  const auto entry = [](int rank, const std::string& call) {
    return fmt::format(
        "[INFO] HCCL({},python3):2026 [op_base.cc:1] Entry-Hccl{}, localRank[{}], streamId[3]\n", 100 + rank,
        call, rank);
  };
  const std::string all = entry(0, "AllReduce:tag[AllReduce_g], count[2], dataType[int8]") +
                          entry(1, "AllReduce:tag[AllReduce_g], count[2], dataType[int8]"),
                    send =
                        entry(0,
                              "Send:tag[worldSendRecv_0_1_g], sendBuf[0x1], count[1000], dataType[float16], "
                              "destRank[1]"),
                    receive = entry(1,
                                    "Recv:tag[worldSendRecv_0_1_g], recvBuf[0x1], count[1000], "
                                    "dataType[float16], srcRank[0]");
  EXPECT_EQ(import(log_of, all + send + receive).pairs(), (Pairs{{{0, 1}, 2000 + 2}, {{1, 0}, 2}}));
  EXPECT_THAT(refused(log_of, all + receive), HasSubstr("receives what nobody sends"));
}

TEST(Logs, HcclsCallsMoveWhatTheirTagsSay) {
  const auto entry = [](int rank, const std::string& call) {
    return fmt::format(
        "[INFO] HCCL({},python3):2026-01-02 [op_base.cc:1] [9] Entry-Hccl{}, localRank[{}], "
        "streamId[3], comm[0x1], deviceLogicId[0]\n",
        100 + rank, call, rank);
  };
  std::string text;
  for (const int rank : {1, 0}) {
    text += entry(
        rank,
        "AllReduce:tag[AllReduce_g_0], sendBuf[0x1], recvBuf[0x2], count[1000], dataType[float16], op[sum]");
    text += entry(rank,
                  "ReduceScatter:tag[ReduceScatter_g_0], sendBuf[0x1], recvBuf[0x2], recvCount[10], "
                  "dataType[int32], op[sum]");
    text += entry(rank, "Broadcast:tag[Broadcast_g_0], buf[0x1], count[7], dataType[int8], root[1]");
    text += entry(rank, "AlltoAllV:tag[ALLTOALLV_g_0], sendCounts[0x7], sendType[int8]");
  }
  const Read read = import(log_of, text);
  // 2,000 B in two rounds of halves; of 80 B the other's half; 7 B from rank 1.
  EXPECT_EQ(read.pairs(), (Pairs{{{0, 1}, 2000 + 40}, {{1, 0}, 2000 + 40 + 7}}));
  EXPECT_THAT(read.result.not_taken,
              ::testing::ElementsAre(HasSubstr("do not say how much they move, or of no known kind: 2")));
  ImportOptions strict = options();
  strict.strict = true;
  EXPECT_THAT(refused(log_of, text, strict), HasSubstr("--strict: not imported exactly: calls"));
}

TEST(Logs, BrokenOnesAreRefusedByLine) {
  const auto broken = [](const std::string& text, const std::string& instead) {
    std::string log = nccl_log();
    log.replace(log.find(text), text.size(), instead);
    return refused(log_of, log);
  };
  EXPECT_THAT(broken("datatype 6", "datatype 60"),
              HasSubstr(":10: datatype: '60'; allowed: a whole number from 0 to 11"));
  EXPECT_THAT(broken("count 1000", "count x"), HasSubstr(":10: count: 'x'"));
  EXPECT_THAT(broken("nranks 4", "nranks 5"), HasSubstr("group 0x77 has 5 ranks, of which 4 are logged"));
  EXPECT_THAT(broken("commId 0x77 - Init COMPLETE", "commid 0x77"),
              HasSubstr("no line before tells rank and commId of '0xa3'"));
  EXPECT_THAT(broken("Send: opCount 2", "Xend: opCount 2"), HasSubstr("receives what nobody sends"));
  EXPECT_THAT(refused(log_of, "n0:1:1 [0] NCCL INFO nothing\n"), HasSubstr("no call; allowed: NCCL's log"));
}

TEST(Recognise, FilesByHowTheyBegin) {
  const std::pair<std::string, TraceKind> files[] = {
      {"Nodes 4\n", TraceKind::htsim},
      {kGoal, TraceKind::goal},
      {kSimAi, TraceKind::simai},
      {kMsccl, TraceKind::msccl},
      {"source,target,bytes\n", TraceKind::messages},
      {"taskId,sourceNode,destNode,dataSize(Byte),opType,priority,delay,phaseId,dependOnPhases\n",
       TraceKind::ns3ub},
      {"{\"workload_graph\": []}", TraceKind::chakra},
      {"[{\"ph\":\"X\"}]", TraceKind::timeline},
      {"{\"schemaVersion\": 1, \"deviceProperties\": []", TraceKind::timeline},
      {"{\"timestamp\": 1, \"input_length\": 2}", TraceKind::requests},
      {"arrived_at,num_prefill_tokens,num_decode_tokens\n", TraceKind::requests},
      {"{\"type\":\"meta\",\"top_k\":2}", TraceKind::routing},
      {"id,kind,start_ps\n", TraceKind::traffic},
      {"up\nn0:7:9 [0] NCCL INFO Bootstrap", TraceKind::log},
      {"[INFO] HCCL(7,python3):2026", TraceKind::log},
      {"Device_id,Op Name,Task Start Time(us),Task Duration(us)\n", TraceKind::timeline},
      {"{\"step\":{\"collective\":{\"a\":{\"Communication Bandwidth Info\":{", TraceKind::timeline},
      {"neither one nor the other", TraceKind::other},
      {"", TraceKind::other}};
  for (const auto& [text, kind] : files) EXPECT_EQ(recognise(saved(text)), kind) << text.substr(0, 40);
  EXPECT_EQ(beginning_of(saved("neither one\nnor")), "begins with 'neither one'");
  EXPECT_EQ(beginning_of(saved("\x01\x02\x03")), "holds no text and is of no known form");
  EXPECT_EQ(beginning_of(saved("")), "is empty");
}

}  // namespace
}  // namespace cm384::traces::schedules_test
