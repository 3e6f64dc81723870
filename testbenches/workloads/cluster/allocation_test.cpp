// Jobs on a pool: closed forms, every place of small pools, and courses worked by hand.
#include "workloads/cluster/allocation.h"

#include <gmock/gmock.h>

#include <cmath>
#include <map>
#include <optional>
#include <string>

#include "base/text/error.h"
#include "workloads/cluster/jobs.h"

namespace cm384::cluster::allocation_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

std::vector<Job> alike(int count, int block, std::int64_t duration_ms) {
  std::vector<Job> jobs;
  for (int k = 0; k < count; ++k) jobs.push_back({std::to_string(k), 0, duration_ms, block, 1});
  return jobs;
}

TEST(Allocation, OfOneSizeIsWhatDivides) {
  for (const int block : {1, 3, 10, 100, 193, 384}) {
    const AllocationResult got = allocate(alike(3000, block, 5000), {}, {Fit::best, Order::fcfs});
    EXPECT_DOUBLE_EQ(got.allocation_rate, 384 / block * block / 384.0) << block;
  }
  // Whole nodes: 10 NPUs take 16; and a block of 5 within a node wastes 3 of its 8.
  EXPECT_DOUBLE_EQ(
      allocate(alike(3000, 10, 5000), {1, 48, 8, 8, false}, {Fit::best, Order::fcfs}).allocation_rate, 1);
  EXPECT_DOUBLE_EQ(
      allocate(alike(3000, 5, 5000), {1, 48, 8, 1, true}, {Fit::best, Order::fcfs}).allocation_rate, 5 / 8.0);
  EXPECT_DOUBLE_EQ(allocate(alike(3000, 5, 5000), {}, {Fit::best, Order::fcfs}).allocation_rate, 380 / 384.0);
}

// M/M/c: four servers of 96 NPUs.
TEST(Allocation, WaitsAsErlangSays) {
  constexpr int kServers = 4;
  DrawnJobs drawn;
  drawn.count = 400'000;
  drawn.block = "fixed:96";
  drawn.duration = "exponential:100";
  for (const double load : {0.5, 0.8}) {
    const double offered = load * kServers;
    drawn.per_second = offered / 100;
    const JobTrace trace = draw_jobs(drawn, 7);
    const AllocationResult got = allocate(trace.jobs, {}, {Fit::best, Order::fcfs});
    double wait = 0;
    for (std::size_t k = 0; k < trace.jobs.size(); ++k)
      wait += static_cast<double>(got.jobs[k].start_ms - trace.jobs[k].submit_ms) * 1e-3;
    wait /= static_cast<double>(trace.jobs.size());
    double sum = 0, term = 1;
    for (int k = 0; k < kServers; ++k, term *= offered / k) sum += term;
    const double waits = term / (1 - load), erlang_c = waits / (sum + waits);
    EXPECT_NEAR(wait / (erlang_c * 100 / (kServers - offered)), 1, 0.03) << load;
    EXPECT_NEAR(got.utilisation / load, 1, 0.01);
    EXPECT_DOUBLE_EQ(got.allocation_rate, 1);  // somebody waits only where all four are taken
  }
}

// A supernode loses about E[b^2] / 2 E[b] where blocks come in order, whatever its size; the rates are those
// of an independent Monte Carlo run over the same distribution (10.08 NPUs on the average, at most 64).
TEST(Allocation, LosesHalfABlockOfTheSecondMoment) {
  DrawnJobs drawn;
  drawn.count = 60'000;
  drawn.duration = "exponential:1000";
  const BlockSizes sizes(drawn.block);
  EXPECT_NEAR(sizes.mean(), 10.08, 1e-6);
  const double loss = sizes.second_moment() / sizes.mean() / 2;
  for (const auto& [nodes, rate] : {std::pair{28, 0.926}, std::pair{48, 0.956}}) {
    const PoolShape shape{1, nodes, 8, 1, false};
    const AllocationResult got = allocate(draw_jobs(drawn, 1).jobs, shape, {Fit::best, Order::fcfs});
    EXPECT_NEAR(got.allocation_rate, rate, 0.01) << nodes;
    EXPECT_NEAR((1 - got.allocation_rate) * shape.supernode_npus() / loss, 1, 0.25) << nodes;
    // Whoever may pass fills the gap.
    EXPECT_GT(allocate(draw_jobs(drawn, 1).jobs, shape, {Fit::best, Order::any}).allocation_rate,
              got.allocation_rate + 0.02);
  }
}

TEST(Allocation, OfTheFirstThatWaitsHoldsOthersUp) {
  // 16 NPUs: the first takes 10, the second 8, the third 6.
  const std::vector<Job> jobs{{"a", 0, 100, 10, 1}, {"b", 1, 50, 8, 1}, {"c", 2, 10, 6, 1}};
  const PoolShape shape{1, 2, 8, 1, false};
  const AllocationResult fcfs = allocate(jobs, shape, {Fit::best, Order::fcfs});
  EXPECT_EQ(fcfs.jobs[1].start_ms, 100);
  EXPECT_EQ(fcfs.jobs[2].start_ms, 100);
  EXPECT_EQ(fcfs.end_ms, 150);
  EXPECT_NEAR(fcfs.utilisation, (100 * 10 + 50 * 8 + 10 * 6) / 16.0 / 150, 1e-12);
  EXPECT_NEAR(fcfs.waiting_share, 99 / 150.0, 1e-12);
  EXPECT_NEAR(fcfs.allocation_rate, 10 / 16.0, 1e-12);
  const AllocationResult any = allocate(jobs, shape, {Fit::best, Order::any});
  EXPECT_EQ(any.jobs[2].start_ms, 2);
  EXPECT_EQ(any.jobs[1].start_ms, 100);
  EXPECT_NEAR(any.allocation_rate, (1 * 10 + 10 * 16 + 88 * 10) / 16.0 / 99, 1e-12);
}

TEST(Allocation, StartsAllBlocksOrNone) {
  // Two supernodes of 8; a job of two blocks of 5 needs both.
  const std::vector<Job> jobs{{"a", 0, 100, 4, 1}, {"b", 0, 50, 5, 2}};
  const AllocationResult got = allocate(jobs, {2, 1, 8, 1, false}, {Fit::first, Order::fcfs});
  EXPECT_EQ(got.jobs[1].start_ms, 100);
  ASSERT_EQ(got.jobs[1].blocks.size(), 2u);
  EXPECT_EQ(got.jobs[1].blocks[0].supernode, 0);
  EXPECT_EQ(got.jobs[1].blocks[1].supernode, 1);
  // 4 of 16 are taken, the largest place is the other supernode: 8 of 12.
  EXPECT_NEAR(got.fragmentation, 4 / 12.0, 1e-12);
}

TEST(Allocation, RefusesWhatNeverFits) {
  const auto refusal = [](const Job& job, const PoolShape& shape) {
    try {
      allocate({job}, shape, {Fit::best, Order::fcfs});
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(refusal({"a", 0, 1, 385, 1}, {}),
              HasSubstr("job a: 1 x 385 NPUs; allowed: blocks of at most 384"));
  EXPECT_THAT(refusal({"a", 0, 1, 200, 2}, {}),
              HasSubstr("2 x 200 NPUs; allowed: blocks of at most 384, all within 384"));
  EXPECT_THAT(refusal({"a", 0, 1, 150, 5}, {2, 48, 8, 1, false}),
              HasSubstr("at most 2 in each of 2 supernodes"));
  EXPECT_EQ(refusal({"a", 0, 1, 200, 2}, {2, 48, 8, 1, false}), "");
  EXPECT_THAT(refusal({"a", 0, 1, 5, 49}, {1, 48, 8, 1, true}), HasSubstr("at most 48 in each"));
  EXPECT_EQ(refusal({"a", 0, 1, 5, 48}, {1, 48, 8, 1, true}), "");
}

TEST(NpuPool, ChoosesASupernodeByItsFit) {
  NpuPool pool({3, 2, 8, 1, false});
  EXPECT_EQ(pool.place_block(4, Fit::first)->supernode, 0);
  EXPECT_EQ(pool.place_block(4, Fit::idlest)->supernode, 1);
  EXPECT_EQ(pool.place_block(9, Fit::idlest)->supernode, 2);
  EXPECT_EQ(pool.place_block(6, Fit::best)->supernode, 2);  // 12, 12, 7 are free
  EXPECT_EQ(pool.place_block(2, Fit::best)->supernode, 0);  // 12, 12, 1
  EXPECT_EQ(pool.largest_place(), 12);
  EXPECT_FALSE(pool.place_block(13, Fit::best));
}

TEST(NpuPool, FillsNodesBeforeItOpensOthers) {
  NpuPool pool({1, 3, 8, 1, false});
  EXPECT_THAT(pool.place_block(5, Fit::best)->nodes, ElementsAre(Pair(0, 5)));
  EXPECT_THAT(pool.place_block(6, Fit::best)->nodes, ElementsAre(Pair(1, 6)));
  EXPECT_THAT(pool.place_block(2, Fit::best)->nodes, ElementsAre(Pair(1, 2)));  // the fullest that holds it
  EXPECT_THAT(pool.place_block(10, Fit::best)->nodes, ElementsAre(Pair(2, 8), Pair(0, 2)));
  EXPECT_EQ(pool.allocated(), 23);
}

// Random takes and returns on small pools: NPUs are held once, and what is refused has no place.
TEST(NpuPool, RefusesOnlyWhatHasNoPlace) {
  for (const bool one_node : {false, true}) {
    const PoolShape shape{2, 3, 4, 2, one_node};
    NpuPool pool(shape);
    std::vector<Place> held;
    traces::Random random(5);
    int refused = 0;
    for (int step = 0; step < 20'000; ++step) {
      if (!held.empty() && random.below(2) == 0) {
        std::swap(held[random.below(held.size())], held.back());
        pool.release_block(held.back());
        held.pop_back();
        continue;
      }
      std::map<std::pair<int, int>, int> used;  // NPUs of a node
      for (const Place& place : held)
        for (const auto& [node, npus] : place.nodes) used[{place.supernode, node}] += npus;
      const int npus = 1 + static_cast<int>(random.below(12)), whole = (npus + 1) / 2 * 2;
      bool fits = false;
      for (int s = 0; s < 2; ++s) {
        int free = 0, most = 0;
        for (int n = 0; n < 3; ++n) {
          EXPECT_LE((used[{s, n}]), 4);
          free += 4 - used[{s, n}];
          most = std::max(most, 4 - used[{s, n}]);
        }
        fits = fits || (one_node && whole <= 4 ? most >= whole : free >= whole);
      }
      const auto place = pool.place_block(npus, static_cast<Fit>(random.below(3)));
      ASSERT_EQ(place.has_value(), fits) << npus;
      refused += fits ? 0 : 1;
      if (!place) continue;
      int sum = 0;
      for (const auto& [node, part] : place->nodes) sum += part;
      EXPECT_EQ(sum, whole);
      if (one_node && whole <= 4) {
        EXPECT_EQ(place->nodes.size(), 1u);
      }
      held.push_back(*place);
    }
    EXPECT_GT(refused, 1000);
  }
}

// Who watches sees all NPU time that jobs hold, no node with more than it has, and every wait.
TEST(Allocation, TellsWhoHasWhat) {
  DrawnJobs drawn;
  drawn.count = 500;
  drawn.block = "powers:32:6";
  drawn.blocks = 2;
  drawn.per_second = 0.1;
  drawn.duration = "exponential:300";
  const JobTrace trace = draw_jobs(drawn, 5);
  const PoolShape shape{2, 8, 8, 1, true};
  for (const std::optional<std::int64_t> migrate :
       {std::optional<std::int64_t>(), std::optional<std::int64_t>(7000)}) {
    double held = 0, waited = 0;
    std::map<int, std::map<double, int>> changes;  // of each node of the pool
    std::map<std::string, double> by_doing;
    PoolWatch watch;
    watch.held = [&](std::size_t, const Place& place, std::string_view doing, double from, double to) {
      EXPECT_LT(from, to);
      for (const auto& [node, npus] : place.nodes) {
        held += npus * (to - from);
        by_doing[std::string(doing)] += npus * (to - from);
        changes[place.supernode * shape.nodes + node][from] += npus;
        changes[place.supernode * shape.nodes + node][to] -= npus;
      }
    };
    watch.waited = [&](std::size_t, double from, double to) { waited += to - from; };
    watch.away = [&](std::size_t, const std::string&, double, double) { ADD_FAILURE(); };
    const AllocationResult got =
        allocate(trace.jobs, shape, {Fit::best, Order::fcfs, nullptr, migrate}, {}, &watch);
    double waits = 0, wanted = 0;
    for (std::size_t k = 0; k < trace.jobs.size(); ++k) {
      waits += static_cast<double>(got.jobs[k].start_ms - trace.jobs[k].submit_ms) * 1e-3;
      wanted += static_cast<double>(trace.jobs[k].npus() * trace.jobs[k].duration_ms) * 1e-3;
    }
    const double span = static_cast<double>(got.end_ms - trace.jobs.front().submit_ms) * 1e-3;
    EXPECT_NEAR(held / (got.utilisation * span * static_cast<double>(shape.npus())), 1, 1e-9);
    EXPECT_NEAR(by_doing["runs"], wanted, 1e-6 * wanted);
    EXPECT_NEAR(held - by_doing["runs"], got.moving_ms * 1e-3, 1e-6 * wanted);
    EXPECT_EQ(got.moves > 0, migrate.has_value());
    // Jobs that wait for a move hold their NPUs already.
    EXPECT_LE(waited, waits + 1e-6);
    if (!migrate) {
      EXPECT_NEAR(waited, waits, 1e-6 * waits);
    }
    for (const auto& [node, of_node] : changes) {
      int npus = 0;
      for (const auto& [at, change] : of_node)
        EXPECT_LE(npus += change, shape.node_npus) << node << " " << at;
      EXPECT_EQ(npus, 0);
    }
  }
}

}  // namespace
}  // namespace cm384::cluster::allocation_test
