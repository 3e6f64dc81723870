// Timelines of profilers: lanes, what waits for what, what collectives move, and clocks, by hand.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <zlib.h>

#include <fstream>
#include <map>

#include "testbenches/hw/refusal.h"
#include "traces/importers/clock_offsets.h"
#include "traces/importers/collective_parts.h"
#include "traces/importers/import_timeline.h"
#include "traces/importers/imported_collectives.h"
#include "traces/importers/timeline_reader.h"

namespace cm384::traces::timeline_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Kind = TrafficRecord::Kind;
using Wait = TrafficDependency::Kind;

struct Imported final : TrafficSink {
  std::vector<TrafficRecord> records;
  ImportResult result;
  void add(const TrafficRecord& record) override {
    EXPECT_EQ(fault_of(record, records.size()), "");
    records.push_back(record);
  }
  void finish() override {}
  std::uint64_t bytes() const {
    std::uint64_t sum = 0;
    for (const TrafficRecord& r : records) sum += r.moves() ? r.bytes : 0;
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

std::string written(const std::string& name, const std::string& text) {
  const std::string path = ::testing::TempDir() + "cm384-timeline-" + name;
  std::ofstream(path, std::ios::binary) << text;
  return path;
}
std::string events(const std::string& list) {
  return "{\"traceEvents\":[" + list + "]}";
}
ImportOptions machine() {
  ImportOptions options;
  options.dies = 16;
  options.machine = "small";
  options.dies_per_node = 8;
  return options;
}
Imported import(const std::vector<std::string>& ranks, const std::vector<TimelineMessage>& messages = {},
                const ImportOptions& options = machine()) {
  std::vector<std::string> paths;
  for (const std::string& text : ranks)
    paths.push_back(written(fmt::format("rank{}.json", paths.size()), text));
  Imported made;
  made.result = import_timelines(paths, messages, options, made);
  return made;
}
const std::vector<TimelineMessage> kAllReduce{{"hcom_allReduce", CollectiveKind::all_reduce, 4096}};

TEST(Timeline, TakesOperatorsAsTimeAndCollectivesAsMessages) {
  const std::string rank0 = events(R"({"ph":"M","name":"process_name"},
      {"ph":"X","name":"MatMul","ts":"100.0","dur":20.5},
      {"ph":"X","name":"hcom_allReduce__7","ts":130,"dur":9},
      {"ph":"X","name":"Add","ts":140,"dur":10})"),
                    rank1 = events(R"({"ph":"X","name":"MatMul","ts":105,"dur":5},
      {"ph":"X","name":"hcom_allReduce__9","ts":120,"dur":19})");
  const Imported made = import({rank0, rank1}, kAllReduce);
  EXPECT_EQ(made.result.records, made.records.size());
  EXPECT_EQ(made.computed(0), 30'500_ns);
  EXPECT_EQ(made.computed(1), 5_us);
  EXPECT_EQ(made.bytes(), 2 * 2 * 2048u);  // two rounds of half the vector each way
  // The time between two events of a lane passes again.
  EXPECT_EQ(made.records[0].start, Time{});
  const auto begin = std::ranges::find_if(made.records, [](const TrafficRecord& r) {
    return r.kind == Kind::barrier && r.source.number == 0 && r.start == 30_us;
  });
  ASSERT_NE(begin, made.records.end());
  EXPECT_EQ(begin->dependencies, (std::vector<TrafficDependency>{{0, Wait::completion, 9'500_ns}}));
  const auto add =
      std::ranges::find_if(made.records, [](const TrafficRecord& r) { return r.end - r.start == 10_us; });
  ASSERT_NE(add, made.records.end());
  EXPECT_EQ(add->dependencies.front().delay, 1_us);
  // The second rank's first event begins 5 us later.
  const auto later = std::ranges::find_if(
      made.records, [](const TrafficRecord& r) { return r.kind == Kind::compute && r.source.number == 1; });
  EXPECT_EQ(later->start, 5_us);
}

// Compute on stream 7, a copy on stream 9 that goes on beside it, and a kernel that waits for it.
constexpr const char* kStreams = R"(
  {"ph":"X","cat":"user_annotation","name":"ProfilerStep#1","pid":1,"tid":1,"ts":0,"dur":900},
  {"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":1,"dur":3},
  {"ph":"X","cat":"kernel","name":"a","pid":0,"tid":7,"ts":10,"dur":40},
  {"ph":"X","cat":"gpu_memcpy","name":"c","pid":0,"tid":9,"ts":20,"dur":60},
  {"ph":"X","cat":"kernel","name":"b","pid":0,"tid":7,"ts":52,"dur":20},
  {"ph":"X","cat":"kernel","name":"d","pid":0,"tid":7,"ts":83,"dur":5})";

TEST(Timeline, EachStreamIsALaneAndWaitsForAnotherAreKept) {
  const Imported made = import({events(kStreams)});
  ASSERT_EQ(made.records.size(), 4u);
  EXPECT_EQ(made.computed(0), 125_us);
  EXPECT_EQ(made.records[0].start, Time{});
  EXPECT_EQ(made.records[1].start, 10_us);  // nothing ended before it
  EXPECT_EQ(made.records[2].dependencies, (std::vector<TrafficDependency>{{0, Wait::completion, 2_us}}));
  // Behind its lane's last one, and 3 us behind the copy, which ended later.
  EXPECT_EQ(made.records[3].dependencies,
            (std::vector<TrafficDependency>{{2, Wait::completion, {}}, {1, Wait::completion, 3_us}}));
  EXPECT_THAT(made.result.notes.front(), HasSubstr("kernels and copies, by their category; 2 others"));
  EXPECT_THAT(made.result.not_taken, IsEmpty());
}

TEST(Timeline, WhatHoldsOthersOfItsLaneDoesNotCount) {
  const Imported made = import({events(R"({"ph":"X","name":"step","ts":0,"dur":100},
    {"ph":"X","name":"a","ts":0,"dur":30},{"ph":"X","name":"inner","ts":10,"dur":5},{"ph":"X","name":"b","ts":50,"dur":50})")});
  EXPECT_EQ(made.computed(0), 55_us);
  EXPECT_THAT(made.result.not_taken,
              ElementsAre("events that hold others of their stream, which count for them: 2"));
}

TEST(Timeline, BeginAndEndAreOneEvent) {
  const Imported made = import({R"([{"ph":"B","name":"MatMul","pid":0,"tid":1,"ts":0},
    {"ph":"X","name":"hcom_allReduce_","pid":0,"tid":2,"ts":80,"dur":60},
    {"ph":"E","pid":0,"tid":1,"ts":80},{"ph":"B","name":"lost","pid":0,"tid":1,"ts":90}])"});
  EXPECT_EQ(made.computed(0), 140_us);
  EXPECT_THAT(made.result.not_taken,
              ElementsAre("events that begin and do not end: 1", HasSubstr("its recorded time: 1")));
  EXPECT_THAT(made.result.notes,
              ::testing::Contains(HasSubstr("recorded: 60.0 us of communication, 0.0 us")));
}

std::string kineto_collective(const char* name, double ts, double dur, int elements, const char* group,
                              const char* ranks, int size) {
  return fmt::format(
      R"({{"ph":"X","cat":"kernel","name":"ncclDevKernel_Generic","pid":0,"tid":20,"ts":{},"dur":{},
    "args":{{"Collective name":"{}","In msg nelems":{},"Out msg nelems":1,"dtype":"BFloat16","Group size":{},
    "Process Group Name":"{}","Process Group Ranks":"{}"}}}})",
      ts, dur, name, elements, size, group, ranks);
}

TEST(Timeline, KinetosArgumentsSayWhatCollectivesMove) {
  const auto rank = [](const char* group, const char* ranks) {
    return events(kineto_collective("allreduce", 0, 10, 500, group, ranks, 2) + "," +
                  kineto_collective("_allgather_base", 20, 10, 100, group, ranks, 2) + "," +
                  kineto_collective("reduce_scatter_tensor_coalesced", 40, 10, 100, group, ranks, 2) + "," +
                  kineto_collective("all_to_all", 60, 10, 30, "all", "[0, 1, 2, 3]", 4));
  };
  const Imported made =
      import({rank("a", "[0, 2]"), rank("b", "[1, 3]"), rank("a", "[0, 2]"), rank("b", "[1, 3]")});
  // Of each pair 2 x 2 x 500 B, 2 x 200 B, 2 x 100 B; of all 4 x (60 - 15) B.
  EXPECT_EQ(made.bytes(), 2 * (2000u + 400 + 200) + 4 * 45u);
  EXPECT_EQ(made.result.collectives.size(), 4u * 4);
  EXPECT_THAT(made.result.not_taken, IsEmpty());
  // A group whose other ranks have no file takes its time, and it is said.
  const Imported alone = import({events(kineto_collective("allreduce", 0, 10, 500, "a", "[0, 1]", 2))});
  EXPECT_EQ(alone.bytes(), 0u);
  EXPECT_EQ(alone.computed(0), 10_us);
  EXPECT_THAT(alone.result.not_taken, ElementsAre(HasSubstr("recorded time: 1"),
                                                  HasSubstr("have no file, counted above as well: 1")));
}

// Of two ranks: what each sends the other stands in its splits, in rows of 10 elements of 2 B.
TEST(Timeline, UnevenPartsOfAnAllToAllAreThoseThatAreTold) {
  const auto rank = [](const char* splits) {
    std::string event = kineto_collective("all_to_allv", 0, 10, 100, "a", "[0, 1]", 2);
    event.insert(event.find("\"In msg"), fmt::format("\"In split size\":{},", splits));
    return events(event);
  };
  const auto pairs = [&](const char* first, const char* second, const ImportOptions& options = machine()) {
    const Imported made = import({rank(first), rank(second)}, {}, options);
    std::map<int, std::uint64_t> all;
    for (const TrafficRecord& r : made.records) {
      if (r.moves()) all[r.source.number] += r.bytes;
    }
    EXPECT_THAT(made.result.not_taken, IsEmpty());
    return all;
  };
  EXPECT_EQ(pairs("\"[7, 3]\"", "\"[2, 8]\""), (std::map<int, std::uint64_t>{{0, 60}, {1, 40}}));
  EXPECT_EQ(pairs("[10, 0]", "[]"), (std::map<int, std::uint64_t>{{1, 100}}));  // one splits evenly
  ImportOptions bruck = machine();
  bruck.collectives.of[static_cast<int>(CollectiveKind::all_to_all)] = CollectiveAlgorithm::bruck;
  EXPECT_THAT(refusal([&] { pairs("[7, 3]", "[2, 8]", bruck); }),
              HasSubstr("its parts are of unequal size; allowed by bruck: equal ones"));
  // Of another number of ranks they say nothing.
  const Imported alike = import({rank("[1, 2, 7]"), rank("[5, 5]")});
  EXPECT_THAT(alike.result.not_taken, ElementsAre(HasSubstr("which are taken as equal: 1")));
}

// 1,000 B and 300 B from rank 0 to 1, of which the second has no receive; one to a rank without a file.
TEST(Timeline, SendsMeetTheirReceives) {
  const auto half = [](const char* name, double ts, int elements, const char* side, int other) {
    return fmt::format(
        R"({{"ph":"X","cat":"kernel","name":"ncclDevKernel_SendRecv","pid":0,"tid":9,"ts":{},"dur":5,
      "args":{{"Collective name":"{}","In msg nelems":{},"Out msg nelems":{},"dtype":"Half","{}":{}}}}})",
        ts, name, elements, elements, side, other);
  };
  const Imported made =
      import({events(half("send", 0, 500, "Dst Rank", 1) + "," + half("send", 10, 150, "Dst Rank", 1) + "," +
                     half("send", 20, 9, "Dst Rank", 7)),
              events(half("recv", 2, 500, "Src Rank", 0))});
  EXPECT_EQ(made.bytes(), 1000u);
  EXPECT_EQ(made.computed(0), 10_us);
  EXPECT_EQ(made.computed(1), Time{});
  EXPECT_THAT(made.result.not_taken, ElementsAre(HasSubstr("which takes its recorded time: 2")));
  // The receive ends when the message has arrived.
  std::size_t sent = made.records.size();
  for (std::size_t n = 0; n < made.records.size(); ++n) {
    if (made.records[n].moves()) sent = n;
  }
  EXPECT_TRUE(std::ranges::any_of(made.records, [&](const TrafficRecord& r) {
    return r.source.number == 1 &&
           std::ranges::count(r.dependencies, TrafficDependency{sent, Wait::arrival, {}}) == 1;
  }));
  ASSERT_EQ(made.result.collectives.size(), 4u);  // both halves of the one, and two for themselves
  EXPECT_EQ(made.result.collectives[0].collective, made.result.collectives[1].collective);
  EXPECT_EQ(made.result.collectives[0].bytes, 1000);
}

// Two tensor-parallel groups that their ranks call the same.
TEST(Timeline, GroupsOfOneNameAreThoseOfTheirRanks) {
  const auto rank = [](int elements, const char* ranks, bool twice) {
    return events(kineto_collective("allreduce", 0, 10, elements, "tp", ranks, 2) +
                  (twice ? "," + kineto_collective("allreduce", 20, 10, 5, "tp", ranks, 2) : ""));
  };
  const Imported made = import({rank(100, "[0, 1]", true), rank(100, "[0, 1]", true),
                                rank(300, "[2, 3]", false), rank(300, "[2, 3]", false)});
  EXPECT_EQ(made.bytes(), 2 * (200u + 10 + 600));
}

TEST(Timeline, TypesAreThoseOfPyTorchAndHccl) {
  const std::map<std::string, std::int64_t> bytes{{"Float8_e5m2fnuz", 1},
                                                  {"FP8E4M3", 1},
                                                  {"HIF8", 1},
                                                  {"QInt8", 1},
                                                  {"c10::BFloat16", 2},
                                                  {"torch.float32", 4},
                                                  {"ComplexHalf", 4},
                                                  {"ComplexFloat", 8},
                                                  {"INT128", 16},
                                                  {"ComplexDouble", 16},
                                                  {"BFP16", 2},
                                                  {"HCCL_DATA_TYPE_FP16", 2},
                                                  {"words", 0}};
  for (const auto& [name, size] : bytes) EXPECT_EQ(bytes_of_element(name), size) << name;
}

// The second file counts from 1 ms later on; times before a file's base are negative.
TEST(Timeline, TimesCountFromTheBaseOfTheirFile) {
  const auto rank = [](double ts, const char* base) {
    return fmt::format(
        R"({{"traceEvents":[{{"ph":"X","name":"a","ts":{},"dur":4}}],"baseTimeNanoseconds":{}}})", ts, base);
  };
  const Imported made = import({rank(-2.5, "1700000000000000000"), rank(7.5, "1700000000001000000")});
  ASSERT_EQ(made.records.size(), 2u);
  EXPECT_EQ(made.records[0].start, Time{});
  EXPECT_EQ(made.records[1].start, 1'010_us);
}

// Of the format events may stand in any order.
TEST(Timeline, EventsMayStandInAnyOrder) {
  const Imported made =
      import({R"([{"ph":"E","pid":0,"tid":1,"ts":40},{"ph":"B","name":"in","pid":0,"tid":1,"ts":12},
    {"ph":"X","name":"b","pid":0,"tid":2,"ts":50,"dur":3},{"ph":"B","name":"out","pid":0,"tid":1,"ts":10},
    {"ph":"X","name":"a","pid":0,"tid":2,"ts":20,"dur":5},{"ph":"E","pid":0,"tid":1,"ts":22},
    {"ph":"b","cat":"x","id":3,"name":"s","pid":0,"tid":1,"ts":1},{"ph":"e","cat":"x","id":3,"pid":0,"tid":1,"ts":9}])"});
  EXPECT_EQ(made.computed(0), 10_us + 3_us + 5_us);
  EXPECT_THAT(made.result.not_taken,
              ElementsAre(HasSubstr("hold others of their stream, which count for them: 1"),
                          "asynchronous events, which are of no stream: 1"));
}

// The format lets the last bracket of a list be missing; an event must be whole.
TEST(Timeline, AListNeedNotEnd) {
  const std::string one = R"([{"ph":"X","name":"a","ts":0,"dur":7})";
  for (const char* end : {"", ",", ",\n ", "]"}) EXPECT_EQ(import({one + end}).computed(0), 7_us) << end;
  EXPECT_THAT(refusal([&] { import({one + R"(,{"ph":"X")"}); }), HasSubstr("offset 47: no JSON"));
  EXPECT_THAT(refusal([&] { import({R"({"traceEvents":)" + one}); }), HasSubstr("no JSON"));
}

TEST(Timeline, TwoFilesOfOneRankAreTold) {
  const std::string rank =
      R"({"distributedInfo":{"rank":3},"traceEvents":[{"ph":"X","name":"a","ts":0,"dur":1}]})";
  EXPECT_THAT(import({rank, rank}).result.notes.front(),
              HasSubstr("another file say that they are of rank 3"));
}

TEST(Timeline, OfAscendHardwareAndOperatorsOfCommunicationCount) {
  const std::string rank = R"([
    {"ph":"M","name":"process_name","pid":2,"args":{"name":"CANN"}},
    {"ph":"M","name":"process_name","pid":3,"args":{"name":"Ascend Hardware"}},
    {"ph":"M","name":"process_name","pid":4,"args":{"name":"Communication"}},
    {"ph":"M","name":"thread_name","pid":4,"tid":0,"args":{"name":"Group 0 Communication"}},
    {"ph":"X","name":"AscendCL@aclnnMatmul","pid":2,"tid":9,"ts":"0.5","dur":300},
    {"ph":"X","name":"MatMul","pid":3,"tid":2,"ts":"10.0","dur":50,"args":{"Task Type":"AI_CORE"}},
    {"ph":"X","name":"Notify_Wait","pid":3,"tid":5,"ts":"20.0","dur":30,"args":{"Task Type":"NOTIFY_WAIT_SQE"}},
    {"ph":"X","name":"hcom_reduceScatter__474_0_1","pid":4,"tid":0,"ts":"20.0","dur":40,
     "args":{"data_type":"BFP16","count":"100","alg_type":"MESH"}},
    {"ph":"X","name":"Reduce_Inline","pid":4,"tid":1,"ts":"25.0","dur":10}])";
  const Imported made = import({rank, rank});
  EXPECT_EQ(made.computed(0), 50_us);
  // 100 elements of 2 B for each of two ranks are what one puts in.
  EXPECT_EQ(made.bytes(), 2 * 200u);
  // Counts that stand in memory are not told.
  std::string unknown = rank;
  unknown.replace(unknown.find("hcom_reduceScatter_"), 19, "hcom_alltoallv_");
  unknown.replace(unknown.find("\"100\""), 5, "\"0\"");
  const Imported timed = import({unknown, unknown});
  EXPECT_EQ(timed.computed(0), 90_us);
  EXPECT_THAT(timed.result.not_taken, ElementsAre(HasSubstr("which takes its recorded time: 2")));
  EXPECT_THAT(made.result.notes.front(), HasSubstr("hardware and communication; 6 others"));
}

TEST(Timeline, ATableOfKernelsIsReadByItsColumns) {
  const std::string header =
      "Step Id,Device_id,Stream ID,Name,Type,Accelerator Core,Start Time(us),Duration(us),Input Shapes\n";
  const std::string path = written(
      "kernel_details.csv", header +
                                "0,0,2,MatMul,MatMul,AI_CORE,\"100.5\t\",20,\"\"\"8,4;4,8\"\"\"\n"
                                "0,0,7,hcom_allReduce__474_0_1,hcom_allReduce_,COMMUNICATION,110,30,\n");
  Imported made;
  const ImportResult result = import_timelines({path}, {}, machine(), made);
  EXPECT_EQ(made.computed(0), 50_us);
  EXPECT_EQ(made.records[1].start, 9'500_ns);
  EXPECT_THAT(result.not_taken, ElementsAre(HasSubstr("recorded time: 1")));
  const auto refused = [&](const std::string& text) {
    return refusal([&] { read_timeline(written("bad.csv", text)); });
  };
  EXPECT_THAT(refused("a,b\n"), HasSubstr(":1: header: allowed: that of a kernel_details.csv"));
  EXPECT_THAT(refused(header + "1,2\n"), HasSubstr(":2: line: 2 fields; allowed: 9"));
  EXPECT_THAT(refused(header + "0,0,2,a,b,c,x,1,\n"), HasSubstr(":2: Start Time(us): 'x'"));
  EXPECT_THAT(refused(header), HasSubstr("no kernel"));
  // The same of msprof's summary.
  Imported summed;
  import_timelines({written("op_summary.csv",
                            "Device_id,Stream ID,Op Name,OP Type,Task Type,Task Start Time(us),Task "
                            "Duration(us)\r\n0,2,a,MatMulV2,AI_CORE,\"1700000000000000.125\t\",20.5\r\n"
                            "0,3,b,Add,AI_VECTOR_CORE,1700000000000010.125,10\r\n")},
                   {}, machine(), summed);
  EXPECT_EQ(summed.computed(0), 30'500_ns);
  EXPECT_EQ(summed.records[1].start, 10_us);
}

// Of four ranks: sent MB are 2 * 3/4 of an all-reduce, 3 blocks of an all-gather, 3/4 of a reduce-scatter.
TEST(Timeline, ATableOfCommunicationTellsWhatRanksSent) {
  const auto operation = [](double start_us, double ms, const std::string& media) {
    return fmt::format(R"j({{"Communication Time Info": {{"Start Timestamp(us)": {}, "Elapse Time(ms)": {}}},
                             "Communication Bandwidth Info": {{{}}}}})j",
                       start_us, ms, media);
  };
  const std::string text = fmt::format(
      R"j({{"step1": {{"p2p": {{"hcom_send__9_0_1@g": {}}}, "collective": {{"hcom_allReduce__474_0_1@g": {},
            "hcom_allGather__474_1_1@g": {}, "hcom_reduceScatter__8_2_1@h": {}, "Total Op Info": {{}}}}}}}})j",
      operation(900, 0.01, ""),
      operation(1000, 0.5, R"j("RDMA": {"Transit Size(MB)": 0.5}, "SDMA": {"Transit Size(MB)": 1.0},
                               "HCCS": {"Transit Size(MB)": 1.0, "Size Distribution": {"1": [1, 2]}})j"),
      operation(1600, 0.1, R"j("HCCS": {"Transit Size(MB)": 0.2}, "SIO": {"Transit Size(MB)": 0.1})j"),
      operation(1650, 0.1, R"j("SDMA": {"Transit Size(MB)": 0.75})j"));
  const Imported made = import({text, text, text, text});
  // 1.5 MB and 0.3 MB and 0.75 MB of each.
  EXPECT_EQ(made.bytes(), 4 * (1'500'000u + 300'000u + 750'000u));
  EXPECT_EQ(made.computed(0), 10_us);  // the send, of which it is not told to whom
  EXPECT_THAT(made.result.notes,
              ::testing::Contains(HasSubstr("from what ranks sent, MB taken as 10^6 B: 12")));
  EXPECT_THAT(made.result.not_taken, ElementsAre(HasSubstr("which takes its recorded time: 4")));
  EXPECT_THAT(
      refusal([] { import({R"j({"s": {"collective": {"hcom_x@g": {"Communication Time Info": 3}}}})j"}); }),
      HasSubstr("s: hcom_x@g: Start Timestamp(us): allowed: a number from 0"));
}

TEST(Timeline, RanksAreThoseThatTheFilesTell) {
  const auto rank = [](int number, int us) {
    return fmt::format(
        R"({{"distributedInfo":{{"backend":"nccl","rank":{}}},"traceEvents":[{{"ph":"X","name":"a","ts":0,"dur":{}}}]}})",
        number, us);
  };
  const Imported made = import({rank(1, 5), rank(0, 7)});
  EXPECT_EQ(made.computed(0), 7_us);
  EXPECT_EQ(made.computed(1), 5_us);
}

TEST(Timeline, ClocksAreSetByTheEndsOfCollectives) {
  // The second rank's clock is 1000 us ahead; it is 4 us late at the second collective.
  const auto rank = [](double ahead, double late) {
    return events(fmt::format(R"({{"ph":"X","name":"a","tid":1,"ts":{},"dur":10}},
      {{"ph":"X","name":"hcom_allReduce_","tid":2,"ts":{},"dur":{}}},{{"ph":"X","name":"hcom_allReduce_","tid":2,"ts":{},"dur":{}}},
      {{"ph":"X","name":"hcom_allReduce_","tid":2,"ts":{},"dur":30}})",
                              ahead, ahead + 10, 30, ahead + 50 + late, 30 - late, ahead + 90));
  };
  const Imported made = import({rank(0, 0), rank(1000, 4)}, kAllReduce);
  EXPECT_THAT(made.result.notes,
              ::testing::Contains("the clock of rank 1 is 1000.0 us ahead, by the ends of collectives"));
  for (const TrafficRecord& r : made.records) {
    if (r.dependencies.empty()) EXPECT_EQ(r.start, Time{});
  }
  EXPECT_DOUBLE_EQ(made.result.collectives[3].begin_us, 54);
  // Ends that do not agree leave clocks alone.
  const ClockOffsets none = clock_offsets(
      2, {{{0, 100, 10}, {1, 150, 10}}, {{0, 200, 10}, {1, 190, 10}}, {{0, 300, 10}, {1, 420, 10}}});
  EXPECT_EQ(none.disagreeing, 1u);
  EXPECT_THAT(none.ahead_us, ElementsAre(0, 0));
  // Through a rank that both share one with.
  const ClockOffsets chain = clock_offsets(3, {{{0, 100, 10}, {1, 150, 10}}, {{1, 200, 10}, {2, 190, 10}}});
  EXPECT_THAT(chain.ahead_us, ElementsAre(0, 50, 40));
}

TEST(Timeline, CollectivesStandInAFileOfTheirOwn) {
  const std::vector<ImportedCollective> all{{0, "hcom, a", 64, 3, 5, 9, 1.25, 2.5}};
  const std::vector<ImportedCollective> read = read_collectives(written("c.csv", text_of(all)));
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read[0].name, "hcom  a");
  EXPECT_EQ(read[0].end_record, 9u);
  EXPECT_EQ(read[0].end_us, 2.5);
  EXPECT_THAT(refusal([] { read_collectives(written("bad.csv", "a,b\n")); }), HasSubstr("bad.csv:1:"));
}

TEST(Timeline, APackedFileIsReadAsItIs) {
  const std::string path = ::testing::TempDir() + "cm384-timeline-packed.json.gz", text = events(kStreams);
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
  EXPECT_EQ(read_timeline(path).events.size(), 4u);
}

// Microseconds since 1970: what a double would lose is a quarter of one.
TEST(Timeline, LosesNoDigitsOfLongTimes) {
  for (const char* form : {"\"{}\"", "{}"}) {
    const std::string first = fmt::format(fmt::runtime(form), "1700000000000000.125"),
                      second = fmt::format(fmt::runtime(form), "1700000000000003.375");
    const Imported made = import({events(
        fmt::format(R"({{"ph":"X","name":"a","ts":{},"dur":1}},{{"ph":"X","name":"b","ts":{},"dur":"0.5"}})",
                    first, second))});
    EXPECT_EQ(made.computed(0), 1500_ns);
    EXPECT_NEAR(made.records[1].dependencies[0].delay.us(), 2.25, 2e-4);
  }
}

TEST(Timeline, RefusesBrokenOnesByEvent) {
  const auto read = [](const std::string& text, const std::string& other = "") {
    return refusal([&] {
      std::vector<std::string> ranks{text};
      if (!other.empty()) ranks.push_back(other);
      import(ranks, {{ "hcom", CollectiveKind::all_reduce, 64 }});
    });
  };
  const std::string good = events(R"({"ph":"X","name":"hcom","ts":0,"dur":1})");
  EXPECT_THAT(read("{\"a\":"), HasSubstr("rank0.json: offset 5: no JSON"));
  EXPECT_THAT(read("{}"), HasSubstr("not a list of events"));
  EXPECT_THAT(read("[]"), HasSubstr("no events with"));
  EXPECT_THAT(read(events("7")), HasSubstr("event 0: allowed: an object"));
  EXPECT_THAT(read("[[]]"), HasSubstr("event 0: allowed: an object"));
  EXPECT_THAT(read(events(R"({"ph":"X","name":"a","ts":0})")),
              HasSubstr("event 0: dur: null; allowed: microseconds from 0 to 1e+16"));
  EXPECT_THAT(read(events(R"({"ph":"X","name":"a","ts":-3e16,"dur":1})")),
              HasSubstr("event 0: ts: -3e16; allowed: microseconds from -1e+16 to 1e+16"));
  EXPECT_THAT(read(events(R"({"ph":"X","ts":0,"dur":1})")), HasSubstr("event 0: name"));
  for (const char* ts : {"12abc", "", " 1", "nan", "-1e17"})
    EXPECT_THAT(read(events(fmt::format(R"({{"ph":"X","name":"a","ts":"{}","dur":1}})", ts))),
                HasSubstr("event 0: ts"));
  EXPECT_THAT(read(events(R"({"ph":"X","name":"a","ts":0,"dur":1e13})")),
              HasSubstr("event 0: takes 1e+13 us; allowed: 1e+12"));
  EXPECT_THAT(read(good, events(R"({"ph":"X","name":"a","tid":3,"ts":1e14,"dur":1})")),
              HasSubstr("event 0: begins 1e+14 us after the first event of all; allowed: 1e+12"));
  EXPECT_THAT(
      read(good,
           events(R"({"ph":"X","name":"hcom","ts":0,"dur":1},{"ph":"X","name":"hcom","ts":2,"dur":1})")),
      HasSubstr("rank 1 has 2 collectives, rank 0 1"));
  const auto named = [](const std::string& text) {
    return refusal([&] { timeline_messages(written("bad.csv", text)); });
  };
  EXPECT_THAT(named("name,bytes\n"), HasSubstr("header: allowed: name,collective,bytes"));
  EXPECT_THAT(named("name,collective,bytes\nhcom,send,4\n"), HasSubstr(":2: collective"));
  EXPECT_THAT(named("name,collective,bytes\nhcom,all-reduce,0\n"), HasSubstr(":2: bytes"));
}

}  // namespace
}  // namespace cm384::traces::timeline_test
