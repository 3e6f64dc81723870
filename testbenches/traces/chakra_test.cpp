// Chakra execution traces: small files of our own, written by hand, and what they must come to by hand.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <zlib.h>

#include <fstream>
#include <map>

#include "testbenches/hw/refusal.h"
#include "traces/import.h"

namespace cm384::traces::chakra_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Kind = TrafficRecord::Kind;
using Wait = TrafficDependency::Kind;

struct Taken final : TrafficSink {
  std::vector<TrafficRecord> records;
  ImportResult result;
  void add(const TrafficRecord& record) override {
    EXPECT_EQ(fault_of(record, records.size()), "");
    records.push_back(record);
  }
  void finish() override {}
  std::uint64_t bytes() const {
    std::uint64_t sum = 0;
    for (const TrafficRecord& r : records) sum += r.moves() ? r.total_bytes() : 0;
    return sum;
  }
  // Bytes from each die to each other one.
  std::map<std::pair<int, int>, std::uint64_t> pairs() const {
    std::map<std::pair<int, int>, std::uint64_t> all;
    for (const TrafficRecord& r : records) {
      if (r.moves()) all[{r.source.number, r.target.number}] += r.total_bytes();
    }
    return all;
  }
};

// Protobuf by hand.
std::string varint(std::uint64_t value) {
  std::string text;
  for (; value >= 0x80; value >>= 7) text.push_back(static_cast<char>(value | 0x80));
  text.push_back(static_cast<char>(value));
  return text;
}
std::string number(int field, std::uint64_t value) {
  return varint(static_cast<std::uint64_t>(field) << 3) + varint(value);
}
std::string bytes(int field, const std::string& value) {
  return varint(static_cast<std::uint64_t>(field) << 3 | 2) + varint(value.size()) + value;
}
std::string message(const std::string& body) {
  return varint(body.size()) + body;
}
std::string attribute(const std::string& name, std::uint64_t value, int type = 9) {
  return bytes(10, bytes(1, name) + number(type, value));
}
std::string text_attribute(const std::string& name, const std::string& value) {
  return bytes(10, bytes(1, name) + bytes(29, value));
}
std::string head() {
  return message(bytes(1, "0.0.4"));
}
constexpr int kCompute = 4, kSend = 5, kReceive = 6, kCollective = 7, kBool = 27;
std::string node(std::uint64_t id, int type, const std::string& rest, std::uint64_t after = 0) {
  return message(number(1, id) + bytes(2, fmt::format("n{}", id)) +
                 number(3, static_cast<std::uint64_t>(type)) + (after == 0 ? "" : bytes(5, varint(after))) +
                 rest);
}
std::string message_node(std::uint64_t id, int type, int from, int to, std::uint64_t size) {
  return node(id, type,
              attribute("comm_src", static_cast<std::uint64_t>(from)) +
                  attribute("comm_dst", static_cast<std::uint64_t>(to)) + attribute("comm_tag", 1) +
                  attribute("comm_size", size));
}
enum CommType : std::uint64_t {
  kAllReduce = 0,
  kAllGather = 2,
  kBroadcast = 5,
  kAllToAll = 6,
  kReduceScatter = 7
};
std::string collective(std::uint64_t id, std::uint64_t type, std::uint64_t size,
                       const std::string& group = "", std::uint64_t after = 0) {
  return node(id, kCollective,
              attribute("comm_type", type) + attribute("comm_size", size) + attribute("is_cpu_op", 0, kBool) +
                  (group.empty() ? "" : text_attribute("pg_name", group)),
              after);
}
std::string kernel(std::uint64_t id, std::uint64_t us, std::uint64_t after = 0,
                   const std::string& rest = "") {
  return node(id, kCompute, number(7, us) + rest, after);
}

std::string path_of(const std::string& name, const std::string& content) {
  const std::string path = ::testing::TempDir() + "cm384-chakra-" + name;
  std::ofstream(path, std::ios::binary) << content;
  return path;
}
std::vector<std::string> paths_of(const std::vector<std::string>& ranks) {
  std::vector<std::string> paths;
  for (const std::string& content : ranks)
    paths.push_back(path_of(fmt::format("rank.{}.et", paths.size()), content));
  return paths;
}
ImportOptions small() {
  ImportOptions options;
  options.dies = 16;
  options.machine = "small";
  options.dies_per_node = 8;
  options.roofline = {1e12, 1e9};
  return options;
}
Taken import(const std::vector<std::string>& ranks, const ImportOptions& options = small()) {
  Taken taken;
  taken.result = import_chakra(paths_of(ranks), options, taken);
  return taken;
}
std::string refused(const std::vector<std::string>& ranks, const ImportOptions& options = small()) {
  return refusal([&] { import(ranks, options); });
}

TEST(Chakra, AReceiveWaitsForItsSendAndComputeTakesItsTime) {
  const Taken trace = import({head() + message_node(3, kSend, 0, 1, 4096),
                              head() + message_node(7, kReceive, 0, 1, 4096) + kernel(8, 25, 7)});
  ASSERT_EQ(trace.records.size(), 3u);
  EXPECT_EQ(trace.records[0].total_bytes(), 4096u);
  EXPECT_EQ(trace.records[1].dependencies, (std::vector<TrafficDependency>{{0, Wait::arrival, {}}}));
  EXPECT_EQ(trace.records[2].kind, Kind::compute);
  EXPECT_EQ(trace.records[2].end - trace.records[2].start, 25_us);
  EXPECT_EQ(trace.records[2].dependencies.front().on, 1u);
}

// What each kind moves, by its definition from what a rank puts in.
TEST(Chakra, SizesAreThoseOfARanksInput) {
  const auto moved = [](std::uint64_t type, std::uint64_t size) {
    const std::string file = head() + collective(1, type, size);
    return import({file, file, file, file}).bytes();
  };
  EXPECT_EQ(moved(kAllReduce, 4000), 2 * 4 * 3 * 1000u);
  EXPECT_EQ(moved(kAllGather, 4000), 4 * 3 * 4000u);
  EXPECT_EQ(moved(kAllToAll, 4000), 4 * 3 * 1000u);
  EXPECT_EQ(moved(kReduceScatter, 4000), 4 * 3 * 1000u);
  EXPECT_EQ(moved(kBroadcast, 4000), 3 * 4000u);
  EXPECT_EQ(moved(1, 4000), 3 * 4000u);  // reduce
  EXPECT_EQ(moved(3, 4000), 3 * 4000u);  // gather
  EXPECT_EQ(moved(4, 4000), 3 * 1000u);  // scatter
  EXPECT_EQ(moved(9, 4000), 0u);         // barrier
  // Parts of 10 B among four: 3, 3, 2, 2. Each rank keeps its own.
  EXPECT_EQ(moved(kAllToAll, 10), 4 * 10 - (3 + 3 + 2 + 2));
}

TEST(Chakra, GroupsMeetAmongThemselves) {
  const auto file = [](const std::string& first, const std::string& second) {
    return head() + collective(1, kAllReduce, 1000, first) + kernel(2, 50, 1) +
           collective(3, kAllGather, 500, second, 2);
  };
  // Pairs 0 1 and 2 3, then 0 2 and 1 3.
  const Taken trace = import({file("a", "x"), file("a", "y"), file("b", "x"), file("b", "y")});
  EXPECT_EQ(trace.pairs(), (std::map<std::pair<int, int>, std::uint64_t>{{{0, 1}, 1000},
                                                                         {{1, 0}, 1000},
                                                                         {{2, 3}, 1000},
                                                                         {{3, 2}, 1000},
                                                                         {{0, 2}, 500},
                                                                         {{2, 0}, 500},
                                                                         {{1, 3}, 500},
                                                                         {{3, 1}, 500}}));
  EXPECT_THAT(trace.result.not_taken, IsEmpty());
  EXPECT_THAT(trace.result.notes, IsEmpty());
}

TEST(Chakra, AFileOfGroupsSaysWhoIsOfOne) {
  const std::string part = head() + collective(1, kAllReduce, 1000, "7"), none = head() + kernel(1, 5);
  ImportOptions options = small();
  options.groups = path_of("groups.json", R"({"7": [0, 1], "8": [2]})");
  EXPECT_EQ(import({part, part, none}, options).bytes(), 2 * 1000u);
  EXPECT_THAT(refused({part, none, none}, options), HasSubstr("rank 1 has 0 collectives, rank 0 1"));
  EXPECT_THAT(refused({part, part, part}, options), HasSubstr("rank 2 is not of group 7"));
  EXPECT_THAT(refused({head() + collective(1, kAllReduce, 8, "9"), none, none}, options),
              HasSubstr("node 1: group 9: is not in the file of groups"));
  options.groups = path_of("bad.json", R"({"7": [0, 0]})");
  EXPECT_THAT(refused({part, part}, options), HasSubstr("group 7: 0; allowed: numbers of ranks, each once"));
  options.groups = path_of("bad.json", "[1]");
  EXPECT_THAT(refused({part, part}, options), HasSubstr("not a JSON object"));
}

// A pipeline: a stage without collectives, and stages with unlike counts of them.
TEST(Chakra, StagesHaveTheirOwnCounts) {
  const std::string first = head() + collective(1, kAllReduce, 1000, "s0") +
                            collective(2, kAllReduce, 1000, "s0", 1),
                    second = head() + collective(1, kAllReduce, 600, "s1"), none = head() + kernel(1, 5);
  EXPECT_EQ(import({first, first, second, second, none}).bytes(), 2 * 2 * 1000u + 2 * 600u);
  // Without names those that have any are one group, and it is said.
  const std::string some = head() + collective(1, kAllReduce, 1000);
  const Taken half = import({some, some, none, none});
  EXPECT_EQ(half.bytes(), 2 * 1000u);
  EXPECT_THAT(half.result.notes, Contains(HasSubstr("2 of 4 ranks have collectives without a group")));
  const std::string more = some + collective(2, kAllReduce, 8, "", 1);
  EXPECT_THAT(refused({some, more}), HasSubstr("node 2: ranks without a group: rank 1 has 2 collectives, "
                                               "rank 0 1; allowed: the same of all ranks of a group"));
}

TEST(Chakra, IndependentOnesAreMatchedByIdAndBySize) {
  const std::string small_one = collective(1, kAllReduce, 100), large = collective(2, kAllReduce, 10'000);
  // The order of lines says nothing.
  EXPECT_EQ(import({head() + small_one + large, head() + large + small_one}).bytes(), 2 * (100u + 10'000u));
  // Other ids: by size, and it is said.
  const Taken other = import({head() + small_one + large,
                              head() + collective(1, kAllReduce, 10'000) + collective(2, kAllReduce, 100)});
  EXPECT_EQ(other.pairs(),
            (std::map<std::pair<int, int>, std::uint64_t>{{{0, 1}, 10'100}, {{1, 0}, 10'100}}));
  EXPECT_THAT(other.result.notes, Contains(HasSubstr("matched by size")));
  // Unlike sizes of one: each rank sends what it has.
  const Taken uneven =
      import({head() + collective(1, kAllToAll, 100), head() + collective(1, kAllToAll, 60)});
  EXPECT_EQ(uneven.pairs(), (std::map<std::pair<int, int>, std::uint64_t>{{{0, 1}, 50}, {{1, 0}, 30}}));
  EXPECT_THAT(refused({head() + collective(1, kAllToAll, 100), head() + collective(1, kAllReduce, 100)}),
              HasSubstr("number 0 of rank 1 is all-reduce of 100 B, but of rank 0 all-to-all of 100 B"));
}

// Streams take turns for themselves; host operators have a thread of their own.
TEST(Chakra, KernelsTakeTurnsByStream) {
  const std::string file = head() + kernel(1, 100, 0, attribute("stream", 7)) +
                           kernel(2, 100, 0, attribute("stream", 9)) +
                           kernel(3, 100, 0, attribute("stream", 7)) +
                           kernel(4, 100, 0, attribute("is_cpu_op", 1, kBool) + attribute("tid", 7));
  const auto turns = [](const Taken& trace) {
    std::vector<int> all;
    for (const TrafficRecord& r : trace.records) all.push_back(r.lane);
    return all;
  };
  EXPECT_THAT(turns(import({file})), ElementsAre(1, 2, 1, 3));
  ImportOptions options = small();
  options.concurrent_kernels = true;
  EXPECT_THAT(turns(import({file}, options)), ElementsAre(0, 0, 0, 1));
}

TEST(Chakra, WithoutADurationTheRooflineSaysIt) {
  // 10^12 operations and 10^9 B per second.
  const std::string by_operations =
                        node(1, kCompute, attribute("num_ops", 3'000'000) + attribute("tensor_size", 2000)),
                    by_bytes =
                        node(2, kCompute, attribute("num_ops", 1'000'000) + attribute("tensor_size", 2000)),
                    recorded = node(3, kCompute, number(7, 9) + attribute("num_ops", 1'000'000)),
                    load = node(4, 2, attribute("tensor_size", 5000)), none = node(5, kCompute, "");
  const auto durations = [&](const ImportOptions& options) {
    std::vector<double> us;
    for (const TrafficRecord& r :
         import({head() + by_operations + by_bytes + recorded + load + none}, options).records)
      us.push_back((r.end - r.start).us());
    return us;
  };
  EXPECT_THAT(durations(small()), ElementsAre(3, 2, 9, 5, 0));
  ImportOptions always = small();
  always.roofline_always = true;
  EXPECT_THAT(durations(always), ElementsAre(3, 2, 1, 5, 0));
  const Taken trace = import({head() + by_bytes + none});
  EXPECT_THAT(trace.result.notes,
              ::testing::IsSupersetOf({HasSubstr("that of the roofline, 1 TFLOPS and 0.001 TB/s: 1 ("),
                                       HasSubstr("carry neither duration nor size and take no time: 1 (")}));
}

TEST(Chakra, HostOperatorsAreNoTraffic) {
  const std::string host = attribute("is_cpu_op", 1, kBool);
  const std::string file = head() + node(1, kCollective, number(7, 85) + host) +
                           node(2, kSend, number(7, 3) + host, 1) + collective(3, kAllReduce, 1000, "", 1);
  const Taken trace = import({file, file});
  EXPECT_EQ(trace.bytes(), 2 * 1000u);
  EXPECT_THAT(trace.result.not_taken, IsEmpty());
  // A collective of the device that does not say which takes its time.
  const Taken nameless = import({head() + node(1, kCollective, number(7, 28)), head() + kernel(1, 1)});
  EXPECT_EQ(nameless.bytes(), 0u);
  EXPECT_EQ(nameless.records[0].end - nameless.records[0].start, 28_us);
  EXPECT_THAT(nameless.result.not_taken, ElementsAre(HasSubstr("without comm_type")));
}

TEST(Chakra, WhatIsNotTakenIsSaidCountedAndRefusedWhenStrict) {
  const std::string lonely = head() + message_node(1, kSend, 0, 1, 4096) +
                             message_node(2, kSend, 0, 1, 4096) + kernel(3, 5, 99) +
                             kernel(4, 5, 0, attribute("colour", 3)),
                    other = head() + message_node(1, kReceive, 0, 1, 4096);
  const Taken trace = import({lonely, other});
  EXPECT_EQ(trace.bytes(), 2 * 4096u);
  EXPECT_THAT(trace.result.not_taken,
              ElementsAre(HasSubstr("attribute colour: 1 ("), HasSubstr("that no rank receives"),
                          HasSubstr("waits for nodes that the file does not have: 1 (")));
  EXPECT_THAT(trace.result.not_taken[1], HasSubstr("node 2 to rank 1"));
  EXPECT_THAT(trace.result.not_taken[2], HasSubstr("node 3 for 99"));
  ImportOptions strict = small();
  strict.strict = true;
  EXPECT_THAT(refused({lonely, other}, strict),
              HasSubstr("--strict: not imported exactly: attribute colour: 1 ("));
  EXPECT_EQ(refused({head() + kernel(1, 5)}, strict), "(accepted)");
}

TEST(Chakra, ReceivesOfAnotherSizeAndRanksWithoutAFileAreSaid) {
  const Taken sizes =
      import({head() + message_node(1, kSend, 0, 1, 4096) + message_node(2, kSend, 0, 1, 8),
              head() + message_node(1, kReceive, 0, 1, 512) + message_node(2, kReceive, 0, 1, 8)});
  EXPECT_EQ(sizes.bytes(), 4096u + 8);
  ASSERT_THAT(sizes.result.not_taken,
              ElementsAre(HasSubstr("sizes of receives other than what is sent: 1 (")));
  EXPECT_THAT(sizes.result.not_taken.front(), HasSubstr("512 B, but 4096 B are sent"));
  const std::string one = head() + collective(1, kAllReduce, 64);
  Taken gap;
  gap.result = import_chakra({path_of("gap.1.et", one), path_of("gap.2.et", one), path_of("gap.7.et", one)},
                             small(), gap);
  EXPECT_THAT(gap.result.notes,
              Contains("warning: ranks between those given are missing, 4 in all: 3, 4, 5, ..."));
  EXPECT_THAT(import({one, one}).result.notes, Not(Contains(HasSubstr("missing"))));
}

TEST(Chakra, OfNoBytesRanksMeet) {
  const std::string file = head() + collective(1, kAllReduce, 0) + collective(2, kAllReduce, 1000, "", 1);
  const Taken trace = import({file, head() + kernel(9, 40) + collective(10, kAllReduce, 0, "", 9) +
                                        collective(11, kAllReduce, 1000, "", 10)});
  EXPECT_EQ(trace.bytes(), 2 * 1000u);
  EXPECT_THAT(trace.result.notes, Contains(HasSubstr("collectives of 0 B, where ranks only meet: 2 (")));
}

TEST(Chakra, PriorityIsTheLaneOfMessages) {
  const std::string file = head() + node(1, kCollective,
                                         attribute("comm_type", kAllReduce) + attribute("comm_size", 1000) +
                                             attribute("comm_priority", 5));
  for (const TrafficRecord& r : import({file, file}).records) {
    if (r.moves()) EXPECT_EQ(r.lane, 5);
  }
}

TEST(Chakra, TypesOfNumbersDoNotMatter) {
  for (const int type : {7, 9, 11, 13}) {
    const std::string file =
        head() +
        node(1, kCollective, attribute("comm_type", kAllToAll, type) + attribute("comm_size", 1000, type));
    EXPECT_EQ(import({file, file}).bytes(), 2 * 500u) << type;
  }
}

// The same two nodes in three forms.
TEST(Chakra, JsonAndGzipAreReadAsTheBinaryForm) {
  const std::string binary = head() + kernel(1, 30) + collective(2, kAllReduce, 1000, "g", 1),
                    feeder = R"({"workload_graph": [
    {"Id": 2, "Name": "n2", "NodeType": 7, "ctrlDeps": [], "data_deps": [1], "runtime": 0, "is_cpu_op": false,
     "comm_type": 0, "comm_size": 1000, "pg_name": "g"},
    {"Id": 1, "Name": "n1", "NodeType": 4, "ctrlDeps": [], "data_deps": [], "runtime": 30, "is_cpu_op": false}]})",
                    messages = R"({"version": "0.0.4"}
{"id": "1", "name": "n1", "type": "COMP_NODE", "durationMicros": "30"}
{"id": "2", "name": "n2", "type": "COMM_COLL_NODE", "dataDeps": ["1"], "attr": [
  {"name": "comm_type", "int64Val": "0"}, {"name": "comm_size", "int64Val": "1000"},
  {"name": "pg_name", "stringVal": "g"}, {"name": "is_cpu_op", "boolVal": false}]})";
  const Taken expected = import({binary, binary});
  EXPECT_EQ(expected.bytes(), 2 * 1000u);
  EXPECT_EQ(import({feeder, feeder}).records, expected.records);
  EXPECT_EQ(import({messages, messages}).records, expected.records);
  // With a byte order mark, and the kind by its name.
  std::string named = "\xef\xbb\xbf" + messages;
  named.replace(named.find("\"int64Val\": \"0\""), 15, "\"stringVal\": \"ALL_REDUCE\"");
  EXPECT_EQ(import({named, named}).records, expected.records);
  std::vector<std::string> packed;
  for (const int rank : {0, 1}) {
    packed.push_back(::testing::TempDir() + fmt::format("cm384-chakra-packed.{}.et.gz", rank));
    gzFile file = gzopen(packed.back().c_str(), "wb");
    gzwrite(file, binary.data(), static_cast<unsigned>(binary.size()));
    gzclose(file);
  }
  Taken unpacked;
  import_chakra(packed, small(), unpacked);
  EXPECT_EQ(unpacked.records, expected.records);
  // Cut short.
  std::ifstream whole(packed[0], std::ios::binary);
  std::string begin((std::istreambuf_iterator<char>(whole)), {});
  EXPECT_THAT(refused({begin.substr(0, begin.size() - 12)}), HasSubstr("gzip: the file ends before"));
  for (const char* bad :
       {"{\"workload_graph\": 3}", "{\"workload_graph\": [", "{\"a\": 1} x", "{\"id\": \"x\"}",
        "{\"id\": 1, \"attr\": [3]}", "{\"id\": 1, \"data_deps\": 7}", "{\"id\": 1, \"NodeType\": \"X\"}"})
    EXPECT_NE(refused({bad}), "(accepted)") << bad;
}

TEST(Chakra, RanksAreInTheOrderOfTheNumbersInTheirNames) {
  std::vector<std::string> paths;
  for (const int rank : {0, 1, 10, 11, 2, 3, 4, 5, 6, 7, 8, 9})
    paths.push_back(
        path_of(fmt::format("wild.{}.et", rank), head() + (rank == 10  ? message_node(1, kSend, 10, 2, 64)
                                                           : rank == 2 ? message_node(1, kReceive, 10, 2, 64)
                                                                       : kernel(1, 1))));
  Taken trace;
  import_chakra(paths, small(), trace);
  EXPECT_EQ(trace.pairs(), (std::map<std::pair<int, int>, std::uint64_t>{{{10, 2}, 64}}));
  // Some ranks alone keep their numbers.
  Taken part;
  const ImportResult result = import_chakra({paths[2], paths[4]}, small(), part);
  EXPECT_EQ(part.pairs(), (std::map<std::pair<int, int>, std::uint64_t>{{{1, 0}, 64}}));
  EXPECT_EQ(result.mapping, (std::vector<std::pair<std::int64_t, int>>{{2, 0}, {10, 1}}));
}

TEST(Chakra, BadFilesAreRefusedByOffsetAndField) {
  const auto refusal = [](const std::string& text) { return refused({text}); };
  EXPECT_THAT(refusal(""), HasSubstr("offset 0: metadata"));
  EXPECT_THAT(refusal(head() + std::string("\x7f")),
              HasSubstr("offset 8: node: length: 127 B; the file has 0 B left"));
  EXPECT_THAT(refusal(head() + message("\xff\xff")), HasSubstr("offset 8: node: no such protobuf message"));
  EXPECT_THAT(refusal(head() + message(number(1, 5) + number(3, 9))), HasSubstr("node 5: type: 9"));
  EXPECT_THAT(refusal(head() + node(5, kCollective, attribute("comm_type", 11))),
              HasSubstr("node 5: comm_type: allowed: a whole number from 0 to 9"));
  EXPECT_THAT(refusal(head() + node(5, kCollective, attribute("comm_type", 0))),
              HasSubstr("node 5: comm_size: is missing"));
  EXPECT_THAT(refusal(head() + message_node(1, kSend, 0, 3, 8)), HasSubstr("comm_dst: 3"));
  EXPECT_THAT(refusal(head() + message_node(1, kSend, 2, 0, 8)),
              HasSubstr("comm_src: 2 in the file of rank 0"));
  EXPECT_THAT(refusal(head() + message_node(1, kReceive, 0, 0, 8)), HasSubstr("no such message with tag 1"));
  EXPECT_THAT(refusal(head() + kernel(1, 1) + kernel(1, 1)), HasSubstr("node 1: id: the file has it twice"));
  EXPECT_THAT(refusal(head() + kernel(1, 1, 2) + kernel(2, 1, 1)), HasSubstr("in a cycle"));
}

}  // namespace
}  // namespace cm384::traces::chakra_test
