// Traces made of traces: what each factor does, and that waits keep pointing at what they meant.
#include "traces/shape.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <bit>
#include <fstream>
#include <numeric>
#include <set>

#include "testbenches/hw/refusal.h"
#include "testbenches/system/machine/in_memory_trace.h"
#include "traces/importers/rank_map.h"
#include "traces/random.h"

namespace cm384::traces::shape_test {
namespace {

using namespace cm384::literals;
using Kind = TrafficRecord::Kind;
using Wait = TrafficDependency::Kind;

TrafficRecord transfer(int from, int to, Time start, std::vector<TrafficDependency> on = {}) {
  TrafficRecord r;
  r.operation = sim::Operation::write;
  r.source.number = static_cast<std::uint16_t>(from);
  r.target.number = static_cast<std::uint16_t>(to);
  r.bytes = 1000;
  r.start = start;
  r.end = start + 1_us;
  r.dependencies = std::move(on);
  return r;
}

TrafficRecord point(Kind kind, int die, Time start, std::vector<TrafficDependency> on = {},
                    std::vector<std::uint64_t> words = {}) {
  TrafficRecord r = transfer(die, die, start, std::move(on));
  r.kind = kind;
  r.operation = {};
  r.bytes = 0;
  r.end = r.start;
  r.words = std::move(words);
  return r;
}

// Ranks on dies 2, 5 and 9: a chain, and time without traffic.
std::vector<TrafficRecord> chain() {
  TrafficRecord compute = point(Kind::compute, 5, 3_us, {{0, Wait::arrival, 500_ns}});
  compute.end = 7_us;
  return {transfer(2, 5, 2_us), compute, transfer(5, 9, 8_us, {{1, Wait::completion, 1_us}}),
          transfer(9, 2, 20_us)};
}

std::unique_ptr<ShapedTrace> shaped(const std::vector<TrafficRecord>& records, const ShapeOptions& options) {
  const auto open = [records] {
    auto trace = std::make_unique<InMemoryTrace>();
    trace->records = records;
    return trace;
  };
  std::map<int, int> rank_of;
  for (const TrafficRecord& r : records) {
    if (r.kind < Kind::idle) rank_of[r.source.number] = rank_of[r.target.number] = 0;
  }
  int rank = 0;
  for (auto& [die, its] : rank_of) its = rank++;
  return std::make_unique<ShapedTrace>(open, rank_of, options);
}

std::vector<TrafficRecord> all_of(TrafficSource& source) {
  std::vector<TrafficRecord> all;
  for (TrafficRecord r; source.next(r);) {
    EXPECT_EQ(fault_of(r, all.size()), "");
    all.push_back(r);
  }
  return all;
}
std::vector<TrafficRecord> shape(const std::vector<TrafficRecord>& records, const ShapeOptions& options) {
  return all_of(*shaped(records, options));
}

TEST(Shape, WithoutWishesIsTheSame) {
  EXPECT_EQ(shape(chain(), {}), chain());
}

TEST(Shape, PutsRanksOnDies) {
  ShapeOptions options;
  options.dies = {40, 3, 7};
  const auto made = shape(chain(), options);
  EXPECT_EQ(made[0].source.number, 40);
  EXPECT_EQ(made[0].target.number, 3);
  EXPECT_EQ(made[2].target.number, 7);
  EXPECT_EQ(made[3].source.number, 7);
}

TEST(Shape, ScalesComputeBytesAndRate) {
  ShapeOptions options;
  options.compute = 2;
  auto made = shape(chain(), options);
  EXPECT_EQ(made[1].end - made[1].start, 8_us);
  EXPECT_EQ(made[1].dependencies[0].delay, 1_us);
  EXPECT_EQ(made[2].dependencies[0].delay, 2_us);
  EXPECT_EQ(made[3].start, 20_us);
  options = {};
  options.bytes = 2.5;
  made = shape(chain(), options);
  EXPECT_EQ(made[0].bytes, 2500u);
  EXPECT_EQ(made[2].start, 8_us);
  options = {};
  options.rate = 4;
  made = shape(chain(), options);
  EXPECT_EQ(made[3].start, 5_us);
  EXPECT_EQ(made[2].dependencies[0].delay, 1_us);
  options = {};
  options.offset = 3_us;
  EXPECT_EQ(shape(chain(), options)[3].start, 23_us);
}

TEST(Shape, GivesTransfersAServiceLevel) {
  auto records = chain();
  records[0].lane = 3;
  records[1].lane = 2;  // of compute: a queue of its die
  ShapeOptions options;
  EXPECT_EQ(shape(records, options)[0].lane, 3);
  options.level = 9;
  const auto made = shape(records, options);
  EXPECT_EQ(made[0].lane, 9);
  EXPECT_EQ(made[1].lane, 2);
  EXPECT_EQ(made[2].lane, 9);
  options.level = 0;
  EXPECT_EQ(shape(records, options)[0].lane, 0);
}

TEST(Shape, KeepsOnlyTheRanksNamed) {
  ShapeOptions options;
  options.ranks = {0, 1};  // dies 2 and 5
  const auto source = shaped(chain(), options);
  const auto made = all_of(*source);
  ASSERT_EQ(made.size(), 2u);
  EXPECT_EQ(made[1].dependencies[0].on, 0u);
  EXPECT_EQ(source->forgotten(), 0u);
  options.ranks = {1, 2};  // what its transfer waits for is there, what that waited for is not
  const auto other = shaped(chain(), options);
  EXPECT_EQ(all_of(*other).size(), 2u);
  EXPECT_EQ(other->forgotten(), 1u);
}

TEST(Shape, RepetitionsBeginWhenTheOneBeforeHasEnded) {
  ShapeOptions options;
  options.repeat = 3;
  const auto made = shape(chain(), options);
  ASSERT_EQ(made.size(), 3 * 4 + 2u);
  const TrafficRecord& pause = made[4];
  EXPECT_EQ(pause.kind, Kind::barrier);
  // All that nothing had waited for: the first was awaited for its arrival only.
  std::vector<std::uint64_t> on;
  for (const TrafficDependency& d : pause.dependencies) on.push_back(d.on);
  EXPECT_EQ(on, (std::vector<std::uint64_t>{0, 2, 3}));
  EXPECT_EQ(pause.start, 21_us);
  ASSERT_EQ(made[5].dependencies.size(), 1u);
  EXPECT_EQ(made[5].dependencies[0], (TrafficDependency{4, Wait::completion, 2_us}));
  EXPECT_EQ(made[7].dependencies[0].on, 6u);
}

// Of an import it is not known when transfers end: a repetition begins when they have, not later.
TEST(Shape, RepetitionsOfWhatHasNoTimesBeginAtItsEnd) {
  TrafficRecord compute = point(Kind::compute, 0, 0_us);
  compute.end = 10_us;
  TrafficRecord sent = transfer(0, 1, 0_us, {{0, Wait::completion, {}}});
  sent.end = sent.start;
  ShapeOptions options;
  options.repeat = 2;
  const auto made = shape({compute, sent}, options);
  ASSERT_EQ(made.size(), 5u);
  EXPECT_EQ(made[2].dependencies, (std::vector<TrafficDependency>{{1, Wait::completion, {}}}));
  EXPECT_EQ(made[3].dependencies, (std::vector<TrafficDependency>{{2, Wait::completion, {}}}));
}

// Two runs of a kernel with a pause between, as a host gave them.
TEST(Shape, WhatTheHostBeganWaitsForThePauseBefore) {
  std::vector<TrafficRecord> records{point(Kind::idle, 0, 0_us),
                                     point(Kind::launch, 0, 1_us, {}, {0, 0}),
                                     transfer(0, 1, 2_us, {{1, Wait::completion, 1_us}}),
                                     point(Kind::end, 0, 4_us, {{2, Wait::completion, 1_us}}, {0, 0}),
                                     point(Kind::launch, 0, 6_us, {}, {1, 0}),
                                     point(Kind::end, 0, 7_us, {{4, Wait::completion, 1_us}}, {1, 0}),
                                     point(Kind::idle, 0, 10_us),
                                     point(Kind::launch, 0, 11_us, {}, {2, 0})};
  const auto made = shape(records, {});
  ASSERT_EQ(made.size(), 8u);
  EXPECT_TRUE(made[0].dependencies.empty());  // nothing was before it: at its recorded time
  EXPECT_TRUE(made[0].words.empty());
  // The second kernel of the die follows the first, 2 us later.
  EXPECT_EQ(made[3].kind, Kind::barrier);
  EXPECT_EQ(made[3].dependencies[0].on, 2u);
  EXPECT_EQ(made[4].kind, Kind::launch);
  EXPECT_EQ(made[4].dependencies[0], (TrafficDependency{3, Wait::completion, 2_us}));
  // The pause comes 3 us after all has ended.
  EXPECT_EQ(made[6].kind, Kind::barrier);
  EXPECT_EQ(made[6].dependencies.back(), (TrafficDependency{5, Wait::completion, 3_us}));
  EXPECT_EQ(made[7].dependencies[0], (TrafficDependency{6, Wait::completion, 1_us}));
}

TEST(Shape, MergedJobsKeepTheirOwnWaits) {
  ShapeOptions one, other;
  other.offset = 4_us;
  other.dies = {10, 11, 12};
  std::vector<std::unique_ptr<TrafficSource>> jobs;
  jobs.push_back(shaped(chain(), one));
  jobs.push_back(shaped(chain(), other));
  MergedTraces merged(std::move(jobs));
  const auto made = all_of(merged);
  ASSERT_EQ(made.size(), 8u);
  EXPECT_TRUE(std::ranges::is_sorted(made, {}, &TrafficRecord::start));
  for (const TrafficRecord& r : made) {
    for (const TrafficDependency& d : r.dependencies)
      EXPECT_EQ(made[d.on].source.number >= 10, r.source.number >= 10);
  }
}

TEST(RankMap, MinCutFindsWhatBelongsTogether) {
  constexpr int kRanks = 8;
  RankTraffic traffic(kRanks);
  for (int a = 0; a < kRanks; ++a) {
    for (int b = a + 1; b < kRanks; ++b) traffic.add(a, b, a % 2 == b % 2 ? 100 : 1);
  }
  const DieRoom room{64, 4, 1, 0, 1};
  const std::vector<int> dies = min_cut_dies(traffic, room);
  EXPECT_EQ(cut_between_nodes(traffic, dies, room), 16);
  EXPECT_EQ(std::set<int>(dies.begin(), dies.end()).size(), 8u);
  EXPECT_GT(cut_between_nodes(traffic, linear_dies(kRanks, room), room), 800);
}

TEST(RankMap, MinCutIsNearTheBestOfAll) {
  Random random(9);
  double found = 0, best_of_all = 0;
  for (int draw = 0; draw < 20; ++draw) {
    RankTraffic traffic(8);
    for (int a = 0; a < 8; ++a) {
      for (int b = a + 1; b < 8; ++b) traffic.add(a, b, static_cast<double>(random.below(100)));
    }
    const DieRoom room{64, 4, 2, 0, 1};
    std::vector<int> dies(8);
    double best = 1e18;
    for (unsigned half = 0; half < 256; ++half) {
      if (std::popcount(half) != 4) continue;
      for (unsigned r = 0; r < 8; ++r) dies[r] = (half >> r & 1u) != 0 ? 0 : 4;
      best = std::min(best, cut_between_nodes(traffic, dies, room));
    }
    const double cut = cut_between_nodes(traffic, min_cut_dies(traffic, room), room);
    EXPECT_LE(cut, 1.1 * best);
    found += cut;
    best_of_all += best;
  }
  EXPECT_LE(found, 1.03 * best_of_all);
}

TEST(RankMap, RefusesWhatDoesNotFit) {
  const DieRoom room{16, 8, 2, 4, 4};
  EXPECT_EQ(linear_dies(3, room), (std::vector<int>{4, 8, 12}));
  EXPECT_THAT(refusal([&] { linear_dies(4, room); }), ::testing::HasSubstr("the last one would be die 16"));
  EXPECT_THAT(refusal([&] { random_dies(13, room, 1); }),
              ::testing::HasSubstr("13 ranks; the machine has 12 dies"));
  const auto drawn = random_dies(12, room, 1);
  EXPECT_EQ(std::set<int>(drawn.begin(), drawn.end()).size(), 12u);
  const std::string path = ::testing::TempDir() + "cm384-map.csv";
  const auto from_file = [&](const std::string& text) {
    std::ofstream(path) << text;
    return refusal([&] { dies_from_file(path, 2, room); });
  };
  EXPECT_EQ(from_file("rank,die\n1,3\n0,9\n"), "(accepted)");
  EXPECT_THAT(from_file("rank,node\n"), ::testing::HasSubstr("header: allowed: rank,die"));
  EXPECT_THAT(from_file("rank,die\n0,3\n0,4\n"), ::testing::HasSubstr(":3: rank"));
  EXPECT_THAT(from_file("rank,die\n0,3\n1,3\n"), ::testing::HasSubstr(":3: die"));
  EXPECT_THAT(from_file("rank,die\n0,16\n"), ::testing::HasSubstr(":2: die"));
  EXPECT_THAT(from_file("rank,die\n0,1\n"), ::testing::HasSubstr("rank 1 is missing"));
}

}  // namespace
}  // namespace cm384::traces::shape_test
