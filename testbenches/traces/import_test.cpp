// Traces of other simulators: small files of our own, and the recorded ones where they are.
#include "traces/import.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "base/text/error.h"
#include "traces/importers/node_placement.h"
#include "traces/record_graph.h"

namespace cm384::traces::import_test {
namespace {

using ::testing::HasSubstr;

struct InMemory final : TrafficSink {
  std::vector<TrafficRecord> records;
  void add(const TrafficRecord& record) override { records.push_back(record); }
  void finish() override {}
  std::uint64_t bytes() const {
    std::uint64_t sum = 0;
    for (const TrafficRecord& r : records) sum += r.moves() ? r.total_bytes() : 0;
    return sum;
  }
};

std::string file(const std::string& name, const std::string& text) {
  const std::string path = ::testing::TempDir() + "cm384-import-" + name;
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

template <class Import>
std::string refusal_of(Import&& import) {
  try {
    import();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

constexpr const char* kHead =
    "taskId,sourceNode,destNode,dataSize(Byte),opType,priority,delay,phaseId,dependOnPhases\n";

InMemory ns3ub(const std::string& text, int dies = 8) {
  InMemory sink;
  import_ns3ub(file("traffic.csv", kHead + text), {dies, {}, "small"}, sink);
  return sink;
}

TEST(Ns3Ub, ATaskWaitsForTheLastTaskOfItsPhases) {
  const InMemory trace = ns3ub(
      "0,20,30,4000,URMA_WRITE,7,10ns,1,\n2,30,20,100,URMA_READ,3,5us,2,1\n1,30,40,8,MEM_STORE,0,1ns,1,\n");
  // Nodes in the order of their numbers: 20, 30, 40. A join for each phase. The task of 1 ns begins first.
  ASSERT_EQ(trace.records.size(), 5u);
  EXPECT_EQ(trace.records[1].source.number, 0);
  EXPECT_EQ(trace.records[1].target.number, 1);
  EXPECT_EQ(trace.records[1].start, 10_ns);
  EXPECT_EQ(trace.records[1].lane, 7);
  EXPECT_EQ(trace.records[0].target.number, 2);
  EXPECT_EQ(trace.records[0].operation, sim::Operation::write);
  EXPECT_EQ(trace.records[2].dependencies.size(), 2u);
  const TrafficRecord& read = trace.records[3];
  EXPECT_EQ(read.operation, sim::Operation::read);
  EXPECT_EQ(read.dependencies,
            (std::vector<TrafficDependency>{{2, TrafficDependency::Kind::completion, 5_us}}));
}

using Places = std::vector<std::pair<std::int64_t, int>>;

TEST(Ns3Ub, NeighboursByNumberAreNeighboursHere) {
  EXPECT_EQ(place_nodes({17, 3, 2}, {}, 32, 16).dies, (Places{{2, 2}, {3, 3}, {17, 17}}));
  // From the last multiple of a node's dies on.
  EXPECT_EQ(place_nodes({40, 33, 55}, {}, 32, 16).dies, (Places{{33, 1}, {40, 8}, {55, 23}}));
  EXPECT_EQ(place_nodes({40, 33, 64}, {}, 32, 16).dies, (Places{{33, 0}, {40, 1}, {64, 2}}));
}

TEST(Ns3Ub, NodesOfALeafShareANodeAsLongAsThereAreNodesForAll) {
  const std::map<std::int64_t, std::int64_t> leaves{{1, 90}, {2, 91}, {3, 90}, {4, 91}};
  EXPECT_EQ(place_nodes({4, 1, 2, 3}, leaves, 32, 16).dies, (Places{{1, 0}, {2, 16}, {3, 1}, {4, 17}}));
  EXPECT_EQ(place_nodes({4, 1, 2, 3}, leaves, 16, 16).dies, (Places{{1, 0}, {2, 2}, {3, 1}, {4, 3}}));
  // A leaf that is larger than a node takes several.
  EXPECT_EQ(place_nodes({4, 1, 2, 3}, {{1, 90}, {2, 91}, {3, 90}, {4, 90}}, 6, 2).dies,
            (Places{{1, 0}, {2, 4}, {3, 1}, {4, 2}}));
  EXPECT_EQ(text_of(Places{{1, 0}, {2, 1}, {4, 2}, {9, 3}}), "1-2 on dies 0-1, 4 on die 2, 9 on die 3");
}

// Priorities that are classes of the machine are levels in their order.
TEST(Ns3Ub, PrioritiesOfClassesAreLevels) {
  ImportOptions options;
  options.dies = 8;
  options.priorities = {2, 7, 9};
  InMemory sink;
  const ImportResult result =
      import_ns3ub(file("traffic.csv", std::string(kHead) + "0,0,1,8,MEM_STORE,7,1ns,0,\n"
                                                            "1,1,2,16,MEM_STORE,9,1ns,0,\n"
                                                            "2,2,3,24,MEM_STORE,2,1ns,0,\n"),
                   options, sink);
  std::map<std::uint64_t, int> level;
  for (const TrafficRecord& r : sink.records) {
    if (r.moves()) level[r.bytes] = r.lane;
  }
  EXPECT_EQ(level, (std::map<std::uint64_t, int>{{8, 1}, {16, 2}, {24, 0}}));
  EXPECT_THAT(result.notes, ::testing::Contains("priorities 2, 7, 9 are service levels 0 to 2"));
}

// Errors name a record as it was told, whatever stands at its end.
TEST(RecordGraph, NamesRecordsAsTold) {
  for (const char* where : {"file.csv:12", "a.et: node 0", "b 007", "no number", "0", "00",
                            "x: node 18446744073709551615", "12345678901234567890123"}) {
    RecordGraph graph;
    TrafficRecord point;
    point.kind = TrafficRecord::Kind::barrier;
    graph.add(point, "file.csv:1");
    const std::uint64_t one = graph.add(point, where), other = graph.add(point, "file.csv:13");
    graph.wait(one, {other});
    graph.wait(other, {one});
    InMemory sink;
    EXPECT_EQ(refusal_of([&] { graph.write(sink); }),
              fmt::format("{}: waits in a cycle, in the end for itself", where));
  }
}

// Of many that wait for many: each dependency is there once, as it was told.
TEST(RecordGraph, KeepsWhatEachWaitsFor) {
  RecordGraph graph;
  TrafficRecord point;
  point.kind = TrafficRecord::Kind::barrier;
  for (int n = 0; n < 5; ++n) graph.add(point, "test");
  graph.wait(4, {1, TrafficDependency::Kind::issue, Time{1}});
  graph.wait(3, {0, TrafficDependency::Kind::arrival, Time{2}});
  graph.wait(4, {3, TrafficDependency::Kind::completion, Time{3}});
  graph.wait(3, {2, TrafficDependency::Kind::completion, Time{4}});
  graph.wait(4, {0, TrafficDependency::Kind::completion, Time{5}});
  InMemory sink;
  std::vector<std::uint64_t> numbers;
  graph.write(sink, &numbers);
  EXPECT_EQ(numbers, (std::vector<std::uint64_t>{0, 1, 2, 3, 4}));
  using Kind = TrafficDependency::Kind;
  EXPECT_EQ(sink.records[3].dependencies,
            (std::vector<TrafficDependency>{{0, Kind::arrival, Time{2}}, {2, Kind::completion, Time{4}}}));
  EXPECT_EQ(sink.records[4].dependencies,
            (std::vector<TrafficDependency>{
                {1, Kind::issue, Time{1}}, {3, Kind::completion, Time{3}}, {0, Kind::completion, Time{5}}}));
}

TEST(Ns3Ub, BadFilesAreRefusedByLineAndField) {
  const auto refusal = [](const std::string& text) { return refusal_of([&] { ns3ub(text); }); };
  EXPECT_THAT(refusal("0,0,1,x,URMA_WRITE,7,10ns,0,\n"), HasSubstr(":2: dataSize(Byte): 'x'"));
  EXPECT_THAT(refusal("0,0,1,5,URMA_WRIT,7,10ns,0,\n"), HasSubstr(":2: opType: 'URMA_WRIT'"));
  EXPECT_THAT(refusal("0,0,1,5,URMA_WRITE,16,10ns,0,\n"), HasSubstr(":2: priority: '16'"));
  EXPECT_THAT(refusal("0,0,1,5,URMA_WRITE,7,10,0,\n"), HasSubstr(":2: delay: '10'"));
  EXPECT_THAT(refusal("0,0,1,5,URMA_WRITE,7,10ns,0,4\n"),
              HasSubstr(":2: dependOnPhases: no task is of phase 4"));
  EXPECT_THAT(refusal("0,0,1,5,URMA_WRITE,7,10ns,0,0\n"), HasSubstr("in a cycle"));
  EXPECT_THAT(refusal("0,0\n"), HasSubstr(":2: line: 2 fields"));
  EXPECT_THAT(refusal_of([] { ns3ub("0,0,1,5,URMA_WRITE,7,10ns,0,\n1,1,2,5,URMA_WRITE,7,10ns,0,\n", 2); }),
              HasSubstr(":3: node 2: number 3 of the different ones, but small has 2 dies"));
}

// The recorded files stand beside the project, or where CM384_SHARED says.
std::filesystem::path recorded() {
  const char* named = std::getenv("CM384_SHARED");
  for (const std::filesystem::path& folder : {std::filesystem::path(named == nullptr ? "" : named),
                                              std::filesystem::path(CM384_SOURCE_DIR) / "../shared"}) {
    if (!folder.empty() && std::filesystem::exists(folder / "traces")) return folder / "traces";
  }
  return {};
}

TEST(Recorded, FilesOfOthersAreRead) {
  const std::filesystem::path folder = recorded();
  if (folder.empty()) GTEST_SKIP() << "no ../shared/traces beside the project and no CM384_SHARED";
  const ImportOptions all{768, {}, "cloudmatrix384"};
  for (const auto& [name, bytes] :
       {std::pair{std::string("8npus_1MB.all_to_all."), 8ull * 7 * (1 << 20) / 8},
        std::pair{std::string("custom_ring_allreduce_8npus_1MB.custom_allreduce."),
                  8ull * 14 * (1 << 20) / 8}}) {
    std::vector<std::string> files;
    for (int rank = 0; rank < 8; ++rank)
      files.push_back(folder / "chakra" / (name + std::to_string(rank) + ".et"));
    InMemory sink;
    import_chakra(files, all, sink);
    EXPECT_EQ(sink.bytes(), bytes) << name;
    if (name.starts_with("8npus")) continue;
    // The ring of others' making has the messages of ours.
    std::map<std::pair<int, int>, std::vector<std::uint64_t>> sent, rounds;
    for (const TrafficRecord& r : sink.records) {
      if (r.moves()) sent[{r.source.number, r.target.number}].push_back(r.bytes);
    }
    for (const CollectiveRound& round : collective_rounds(
             CollectiveKind::all_reduce, CollectiveAlgorithm::ring, 1 << 20, std::vector<int>(8)))
      for (const CollectiveSend& s : round)
        rounds[{s.from, s.to}].push_back(static_cast<std::uint64_t>(s.bytes));
    EXPECT_EQ(sent, rounds);
  }
  InMemory clos;
  import_ns3ub(folder / "ns3ub" / "clos32.traffic.csv", all, clos);
  EXPECT_GT(clos.bytes(), 0u);
  InMemory pod;
  EXPECT_THAT(refusal_of([&] { import_ns3ub(folder / "ns3ub" / "pod1d.traffic.csv", all, pod); }),
              HasSubstr("cloudmatrix384 has 768 dies"));
}

}  // namespace
}  // namespace cm384::traces::import_test
