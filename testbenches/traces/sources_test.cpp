// Traffic out of other things: a list of messages, a routing; and each broken one refused.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "testbenches/hw/refusal.h"
#include "traces/import.h"
#include "traces/routing/routing_traffic.h"

namespace cm384::traces::sources_test {
namespace {

using namespace cm384::literals;
using ::testing::HasSubstr;
using Kind = TrafficRecord::Kind;
using Wait = TrafficDependency::Kind;

struct Collected final : TrafficSink {
  std::vector<TrafficRecord> records;
  void add(const TrafficRecord& record) override {
    EXPECT_EQ(fault_of(record, records.size()), "");
    records.push_back(record);
  }
  void finish() override {}
};

std::string file(const std::string& name, const std::string& text) {
  const std::string path = ::testing::TempDir() + "cm384-sources-" + name;
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

const ImportOptions kOptions{16, {}, "small", 8, {}, {}};

TEST(MessageList, SaysWhoSendsWhatWhenAndAfterWhat) {
  Collected made;
  const std::string path = file("list.csv",
                                "source,target,bytes,start_us,after,delay_us,operation\n0,9,4096,1.5,,,\n9,0,"
                                "100,0,0,2.25,read\n1,2,7,0,0 1,,write\n");
  EXPECT_TRUE(is_message_list(path));
  const ImportResult result = import_messages(path, kOptions, made);
  ASSERT_EQ(made.records.size(), 3u);
  EXPECT_EQ(result.mapping.size(), 4u);
  EXPECT_EQ(made.records[0].start, 1500_ns);
  EXPECT_EQ(made.records[0].target.number, 9);
  EXPECT_EQ(made.records[1].operation, sim::Operation::read);
  EXPECT_EQ(made.records[1].dependencies[0], (TrafficDependency{0, Wait::arrival, 2250_ns}));
  EXPECT_EQ(made.records[2].dependencies.size(), 2u);
}

TEST(MessageList, AnEmptyStartIsTheBeginning) {
  Collected made;
  import_messages(
      file("bom.csv", "\xef\xbb\xbftarget,bytes,source,start_us\r\n1,4096,0,1.5e1\r\n2,64,1,\r\n"), kOptions,
      made);
  ASSERT_EQ(made.records.size(), 2u);
  EXPECT_EQ(made.records[0].start, Time{});
  EXPECT_EQ(made.records[0].bytes, 64u);
  EXPECT_EQ(made.records[1].start, 15_us);
}

// Whatever the order of the rows; what waits stands where it would begin.
TEST(MessageList, RecordsStandInTheOrderInWhichTheyBegin) {
  Collected made;
  const std::string path =
      file("order.csv",
           "source,target,bytes,start_us,after,delay_us\n0,1,10,9,,\n1,2,20,0,,\n2,3,30,0,1,20\n"
           "3,4,40,3,,\n");
  import_messages(path, kOptions, made);
  std::vector<std::uint64_t> bytes;
  for (const TrafficRecord& r : made.records) bytes.push_back(r.bytes);
  EXPECT_EQ(bytes, (std::vector<std::uint64_t>{20, 40, 10, 30}));
  EXPECT_EQ(made.records[3].dependencies[0], (TrafficDependency{0, Wait::arrival, 20_us}));
}

// Every pair of four, of two sizes: the same trace, whatever the order of the rows. Each source begins with
// the next one, so that no target gets all at once.
TEST(MessageList, TheOrderOfRowsDoesNotMatter) {
  std::vector<std::string> rows;
  for (int from = 0; from < 4; ++from) {
    for (int to = 0; to < 4; ++to) {
      for (const int bytes : {64, 4096}) {
        if (from != to) rows.push_back(fmt::format("{},{},{},{}\n", from, to, bytes, to == 2 ? 1 : 0));
      }
    }
  }
  const auto read = [&] {
    std::string text = "source,target,bytes,start_us\n";
    for (const std::string& row : rows) text += row;
    Collected made;
    import_messages(file("rows.csv", text), kOptions, made);
    return made.records;
  };
  const std::vector<TrafficRecord> sorted = read();
  std::ranges::reverse(rows);
  EXPECT_EQ(read(), sorted);
  std::swap(rows[3], rows[17]);
  EXPECT_EQ(read(), sorted);
  EXPECT_EQ(sorted[0].target.number, 1);
  EXPECT_EQ(sorted[2].source.number, 2);
  EXPECT_EQ(sorted[2].target.number, 3);
  EXPECT_EQ(sorted[4].source.number, 1);
  EXPECT_EQ(sorted[4].target.number, 3);
}

TEST(MessageList, RefusesBrokenOnesByLine) {
  const auto read = [](const std::string& text) {
    return refusal([&] {
      Collected made;
      import_messages(file("broken.csv", text), kOptions, made);
    });
  };
  EXPECT_THAT(read("source,target\n0,1\n"), HasSubstr("header: bytes is missing"));
  EXPECT_THAT(read("source,target,bytes,size\n"),
              HasSubstr("header: 'size'; allowed, once each: source, target"));
  EXPECT_THAT(read("source,target,bytes\n"), HasSubstr("line: no message"));
  EXPECT_THAT(read("source,target,bytes\n0,1\n"), HasSubstr(":2: line: 2 fields; allowed: 3"));
  EXPECT_THAT(read("source,target,bytes\n0,1,0\n"), HasSubstr(":2: bytes"));
  EXPECT_THAT(read("source,target,bytes\n0,16,1\n"), HasSubstr(":2: target"));
  EXPECT_THAT(read("source,target,bytes,after\n0,1,1,0\n"), HasSubstr(":2: after"));
  EXPECT_THAT(read("source,target,bytes,start_us\n0,1,1,soon\n"), HasSubstr(":2: start_us"));
  EXPECT_THAT(read("source,target,bytes,operation\n0,1,1,add\n"), HasSubstr(":2: operation"));
  EXPECT_THAT(read("source,target,bytes,delay_us\n0,1,1,3\n"),
              HasSubstr(":2: delay_us: '3'; allowed: a delay after messages, which this line does not name"));
  EXPECT_THAT(read("source,target,bytes\n0,1,-5\n"), HasSubstr(":2: bytes: '-5'"));
  EXPECT_EQ(read("\xef\xbb\xbfsource,target,bytes\r\n0,1,1\r\n"), "(accepted)");
}

// Four experts on two ranks; tokens 0, 1 of rank 0, 2, 3 of rank 1.
TEST(RoutingTraffic, SendsEachTokenOnceToARankAndBack) {
  Routing routing{2, 4, {0, 1, 0, 3, 0, 2, 2, 3}};
  RoutingTraffic how;
  how.ranks = 2;
  how.batch = 2;
  how.expert_time = 5_us;
  Collected made;
  const RoutingTrafficResult result = write_routing_traffic(routing, how, made);
  // Token 0 stays, token 1 goes to both, token 2 to both, token 3 stays.
  EXPECT_EQ(result.local, 4u);
  EXPECT_EQ(result.messages, 4u);
  std::map<std::uint64_t, int> sizes;
  for (const TrafficRecord& r : made.records) {
    if (r.moves()) ++sizes[r.bytes];
  }
  EXPECT_EQ(sizes, (std::map<std::uint64_t, int>{{7680, 2}, {14336, 2}}));
  // An answer waits for all that its rank got, and its experts.
  const auto answer = std::ranges::find(made.records, 14336u, &TrafficRecord::bytes);
  ASSERT_NE(answer, made.records.end());
  EXPECT_EQ(answer->dependencies[0].delay, 5_us);
  EXPECT_EQ(made.records[answer->dependencies[0].on].kind, Kind::barrier);
  EXPECT_EQ(made.records[answer->dependencies[0].on].dependencies[0].kind, Wait::arrival);
  // The second step waits for the first.
  how.steps = 2;
  Collected more;
  EXPECT_EQ(write_routing_traffic(routing, how, more).messages, 8u);
  EXPECT_FALSE(more.records[made.records.size()].dependencies.empty());
  // Experts elsewhere: all on rank 1.
  how.steps = 1;
  how.ranks_of_expert = {{1}, {1}, {1}, {1}};
  Collected skewed;
  EXPECT_EQ(write_routing_traffic(routing, how, skewed).messages, 4u);
  EXPECT_EQ(refusal([&] {
              how.ranks_of_expert.clear();
              how.ranks = 5;
              write_routing_traffic(routing, how, skewed);
            }),
            "--ranks: 5; allowed: at most 4, the experts of the routing");
  const auto placed = [&](const std::string& text) {
    return refusal([&] { expert_ranks_from_file(file("experts.csv", text), 2, 4); });
  };
  EXPECT_EQ(placed("expert,rank\n1,3\n0,0\n"), "(accepted)");
  EXPECT_THAT(placed("expert,rank\n1,3\n"), HasSubstr("expert 0 is missing"));
  EXPECT_THAT(placed("expert,rank\n1,4\n"), HasSubstr(":2: rank"));
  EXPECT_THAT(placed("expert\n"), HasSubstr("header: allowed: expert,rank"));
}

// Maps of others say the same placement: expert 0 on both ranks, 1 and 2 on rank 0, 3 on rank 1.
TEST(RoutingTraffic, TokensTakeTurnsBetweenCopiesOfAnExpertMap) {
  const std::vector<std::vector<int>> expected{{0, 1}, {0}, {0}, {1}};
  const auto read = [](const std::string& text, int layer = -1) {
    return expert_ranks_from_file(file("map.json", text), 4, 2, layer);
  };
  const std::string ascend = R"({"moe_layer_count": 2, "layer_list": [
    {"layer_id": 0, "device_count": 2, "device_list": [{"device_id": 1, "device_expert": [0]},
                                                        {"device_id": 0, "device_expert": [1]}]},
    {"layer_id": 1, "device_count": 2, "device_list": [{"device_id": 0, "device_expert": [0, 1, 2]},
                                                        {"device_id": 1, "device_expert": [3, 0, 3]}]}]})";
  EXPECT_EQ(read(ascend, 1), expected);
  EXPECT_EQ(read(R"({"physical_to_logical_map": [[0, 1, 2, 3, 0, 3]]})"), expected);
  EXPECT_EQ(read("[[0, 0, 0, 0, 0, 0], [0, 1, 2, 3, 0, 3]]", 1), expected);
  EXPECT_EQ(read("[0, 1, 2, 3, 0, 3]"), expected);
  const auto wrong = [&](const std::string& text, int layer = -1) {
    return refusal([&] { read(text, layer); });
  };
  EXPECT_THAT(wrong(ascend), HasSubstr("has 2 layers; allowed: --placement-layer 0 to 1"));
  EXPECT_THAT(wrong(ascend, 0), HasSubstr("expert 2 is missing"));
  EXPECT_THAT(wrong(ascend, 2), HasSubstr("has 2 layers"));
  EXPECT_THAT(wrong("[0, 1, 2]"), HasSubstr("slots: 3; allowed: a multiple of --ranks, 2"));
  EXPECT_THAT(wrong("[0, 1, 2, 4]"), HasSubstr("expert 4; allowed: 0 to 3"));
  EXPECT_THAT(wrong("{\"a\": 1}"), HasSubstr("physical_to_logical_map: allowed: a list"));
  // Tokens 0 and 1 of each rank to expert 0: of rank 0 the first stays, of rank 1 the second goes.
  Routing routing{1, 4, {0, 0, 0, 0}};
  RoutingTraffic how;
  how.ranks = how.batch = 2;
  how.ranks_of_expert = expected;
  Collected made;
  EXPECT_EQ(write_routing_traffic(routing, how, made).local, 2u);
}

}  // namespace
}  // namespace cm384::traces::sources_test
