// Ranks on nodes by their traffic, and blocks that are moved: against all places of small machines, and
// closed forms.
#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "base/text/error.h"
#include "testbenches/workloads/service/file_of.h"
#include "traces/random.h"
#include "workloads/cluster/allocation.h"
#include "workloads/cluster/block_traffic.h"
#include "workloads/cluster/migration.h"

namespace cm384::cluster::placement_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using Matrix = std::vector<std::vector<double>>;

// The least share of traffic between nodes that any assignment of ranks has.
double least_cut(const Matrix& matrix, std::vector<int> free) {
  double all = 0, least = 1e300, cut = 0;
  for (const auto& row : matrix) all += std::accumulate(row.begin(), row.end(), 0.0);
  std::vector<std::size_t> nodes;
  const std::function<void()> next = [&] {
    if (cut >= least) return;
    if (nodes.size() == matrix.size()) {
      least = cut;
      return;
    }
    for (std::size_t node = 0; node < free.size(); ++node) {
      if (free[node] == 0) continue;
      double more = 0;
      for (std::size_t other = 0; other < nodes.size(); ++other)
        if (nodes[other] != node) more += 2 * matrix[nodes.size()][other];
      --free[node];
      nodes.push_back(node);
      cut += more;
      next();
      cut -= more;
      nodes.pop_back();
      ++free[node];
    }
  };
  next();
  return all > 0 ? least / all : 0;
}

TEST(BlockTraffic, IsBetweenWhomItsNameSays) {
  EXPECT_EQ(BlockTraffic("all").matrix(3)[0][2], 1);  // half of what each sends, both ways
  EXPECT_EQ(BlockTraffic("ring").matrix(4)[0][1], 1);
  EXPECT_EQ(BlockTraffic("ring").matrix(4)[0][3], 1);
  EXPECT_EQ(BlockTraffic("ring").matrix(4)[0][2], 0);
  const Matrix groups = BlockTraffic("groups:2:0.75").matrix(6);
  EXPECT_EQ(groups[0][1], 1.5);
  EXPECT_EQ(groups[0][2], 0.25);
  EXPECT_EQ(groups[0][4], 0.25);
  EXPECT_EQ(groups[0][3], 0);
  const FileOf file("source,destination,bytes\n0,2,10\n2,0,5\n1,2,1\n", "csv");
  const BlockTraffic recorded(file.path());
  EXPECT_EQ(recorded.most(), 3);
  EXPECT_EQ(recorded.matrix(3)[2][0], 15);
  EXPECT_EQ(recorded.matrix(2)[0][1], 0);
  EXPECT_NEAR(recorded.cut({0, 1, 0}), 1.0 / 16, 1e-12);
  for (const char* text : {"groups:1:0.5", "groups:4", "groups:4:1.1", "groups:4:nan", "groups:x:1"})
    EXPECT_THROW(BlockTraffic{text}, InputError) << text;
  const FileOf wrong("source,destination,bytes\n0,4096,10\n", "csv");
  try {
    BlockTraffic{wrong.path()};
    ADD_FAILURE();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr(":2: destination"));
  }
}

TEST(BlockTraffic, CutIsThatOfItsMatrix) {
  traces::Random random(3);
  const FileOf file("source,destination,bytes\n0,2,10\n2,0,5\n1,2,1\n12,3,7\n", "csv");
  for (const std::string& text : {std::string("all"), std::string("ring"), std::string("groups:4:0.9"),
                                  std::string("groups:5:0"), file.path()}) {
    const BlockTraffic traffic(text);
    for (int npus = 1; npus <= 13; ++npus) {
      std::vector<int> nodes(static_cast<std::size_t>(npus));
      for (int& node : nodes) node = static_cast<int>(random.below(3));
      EXPECT_NEAR(traffic.cut(nodes), cut_share(traffic.matrix(npus), nodes), 1e-12) << text << " " << npus;
    }
  }
}

// Every assignment of small blocks: of drawn traffic nearly always the least cut, and of groups and rings
// always; never more than where it begins.
TEST(Spread, IsAsGoodAsAllPlacesOfSmallMachines) {
  traces::Random random(7);
  int cases = 0, least = 0;
  double found_sum = 0, least_sum = 0;
  for (int k = 0; k < 400; ++k) {
    const int npus = 3 + static_cast<int>(random.below(6));
    std::vector<int> free(3);
    do {
      for (int& node : free) node = static_cast<int>(random.below(7));
    } while (std::accumulate(free.begin(), free.end(), 0) < npus);
    const bool drawn = k % 2 == 0;
    Matrix matrix = BlockTraffic(k % 4 == 1 ? "ring" : "groups:2:0.9").matrix(npus);
    if (drawn) {
      for (std::size_t a = 0; a < matrix.size(); ++a)
        for (std::size_t b = 0; b < a; ++b) matrix[a][b] = matrix[b][a] = random.real() * random.real();
    }
    std::vector<int> start, left = free;
    for (int node = 0; node < 3; ++node)
      for (; left[static_cast<std::size_t>(node)] > 0 && static_cast<int>(start.size()) < npus;
           --left[static_cast<std::size_t>(node)])
        start.push_back(node);
    const std::vector<int> found = spread_by_traffic(matrix, free, start);
    for (int node = 0; node < 3; ++node)
      EXPECT_LE(std::ranges::count(found, node), free[static_cast<std::size_t>(node)]);
    const double cut = cut_share(matrix, found), oracle = least_cut(matrix, free);
    EXPECT_GE(cut, oracle - 1e-9);
    EXPECT_LE(cut, cut_share(matrix, start) + 1e-12);
    found_sum += cut;
    least_sum += oracle;
    ++cases;
    least += cut <= oracle + 1e-9 ? 1 : 0;
  }
  EXPECT_GE(least, cases * 95 / 100);
  EXPECT_LE(found_sum, least_sum * 1.01);
}

TEST(Spread, KeepsGroupsWholeThatAFullerNodeWouldCut) {
  // Two nodes of eight with six free each.
  const BlockTraffic traffic("groups:4:0.9");
  for (const Fit fit : {Fit::best, Fit::min_cut}) {
    NpuPool pool({1, 2, 8, 1, false}, &traffic);
    ASSERT_TRUE(pool.place_on(0, 0, 2));
    ASSERT_TRUE(pool.place_on(0, 1, 2));
    const Place place = *pool.place_block(8, fit);
    if (fit == Fit::best) {
      EXPECT_THAT(place.nodes, ElementsAre(Pair(0, 6), Pair(1, 2)));
      // The second group is cut in halves: 4 of its 6 pairs, and two of the other two groups' four.
      EXPECT_NEAR(traffic.cut(node_of_ranks(place)), (4 * 0.9 * 4 / 6 + 8 * 0.1 * 2 / 4) / 8, 1e-12);
    } else {
      EXPECT_THAT(place.nodes, ElementsAre(Pair(0, 4), Pair(1, 4)));
      EXPECT_NEAR(traffic.cut(node_of_ranks(place)), 0.1, 1e-12);
    }
    EXPECT_EQ(pool.allocated(), 12);
    pool.release_block(place);
    EXPECT_EQ(pool.free_of(0), 12);
  }
}

TEST(Spread, ChoosesTheSupernodeWithTheLeastCut) {
  const BlockTraffic traffic;
  NpuPool pool({2, 2, 8, 1, false}, &traffic);
  ASSERT_TRUE(pool.place_on(0, 0, 4));
  ASSERT_TRUE(pool.place_on(0, 1, 4));  // four free on each of two nodes
  EXPECT_EQ(pool.place_block(8, Fit::best)->supernode, 0);
  NpuPool other({2, 2, 8, 1, false}, &traffic);
  ASSERT_TRUE(other.place_on(0, 0, 4));
  ASSERT_TRUE(other.place_on(0, 1, 4));
  EXPECT_EQ(other.place_block(8, Fit::min_cut)->supernode, 1);
  EXPECT_EQ(other.place_block(4, Fit::min_cut)->supernode, 0);  // cut nowhere: the one with fewer free
}

// The fewest NPUs that make room, over all sets of blocks of a bin and all ways to where room is.
int fewest_moved(const std::vector<int>& free, const std::vector<std::pair<int, int>>& blocks, int npus) {
  int fewest = 1'000'000;
  for (int bin = 0; bin < static_cast<int>(free.size()); ++bin) {
    for (unsigned set = 0; set < (1U << blocks.size()); ++set) {
      int moved = 0;
      bool own = true;
      std::vector<int> sizes;
      for (std::size_t k = 0; k < blocks.size(); ++k) {
        if ((set >> k & 1U) == 0) continue;
        own = own && blocks[k].first == bin;
        moved += blocks[k].second;
        sizes.push_back(blocks[k].second);
      }
      if (!own || free[static_cast<std::size_t>(bin)] + moved < npus || moved >= fewest) continue;
      std::vector<int> room = free;
      room[static_cast<std::size_t>(bin)] = 0;
      const std::function<bool(std::size_t)> packs = [&](std::size_t k) {
        if (k == sizes.size()) return true;
        for (int& one : room) {
          if (one < sizes[k]) continue;
          one -= sizes[k];
          const bool fits = packs(k + 1);
          one += sizes[k];
          if (fits) return true;
        }
        return false;
      };
      if (packs(0)) fewest = moved;
    }
  }
  return fewest;
}

TEST(Migration, MovesTheFewestNpusThatMakeRoom) {
  traces::Random random(11);
  int possible = 0, impossible = 0;
  for (int k = 0; k < 3000; ++k) {
    const bool by_node = k % 2 == 0;
    NpuPool pool(by_node ? PoolShape{1, 4, 8, 1, true} : PoolShape{4, 1, 8, 1, false});
    std::vector<MovableBlock> blocks;
    std::vector<std::pair<int, int>> known;
    for (int tries = 0; tries < 12; ++tries) {
      const int npus = 1 + static_cast<int>(random.below(5)), bin = static_cast<int>(random.below(4));
      const auto place = by_node ? pool.place_on(0, bin, npus) : pool.place_on(bin, 0, npus);
      if (!place) continue;
      blocks.push_back({blocks.size(), *place});
      known.emplace_back(bin, npus);
    }
    std::vector<int> free(4);
    for (int bin = 0; bin < 4; ++bin)
      free[static_cast<std::size_t>(bin)] = by_node ? pool.free_of(0, bin) : pool.free_of(bin);
    const int npus = std::ranges::max(free) + 1;
    if (npus > 8) continue;
    const int fewest = fewest_moved(free, known, npus);
    const std::int64_t before = pool.allocated();
    const std::optional<Room> room = make_room(pool, npus, blocks);
    ASSERT_EQ(room.has_value(), fewest < 1'000'000) << k;
    if (!room) {
      EXPECT_EQ(pool.allocated(), before);
      for (int bin = 0; bin < 4; ++bin)
        EXPECT_EQ(by_node ? pool.free_of(0, bin) : pool.free_of(bin), free[static_cast<std::size_t>(bin)]);
      ++impossible;
      continue;
    }
    ++possible;
    int moved = 0;
    for (const Room::Move& move : room->moves) moved += known[move.block].second;
    EXPECT_EQ(moved, fewest) << k;
    EXPECT_EQ(pool.allocated(), before + npus);
    // All is given back from where it is now.
    std::vector<Place> places;
    for (const MovableBlock& block : blocks) places.push_back(block.place);
    for (const Room::Move& move : room->moves) places[move.block] = move.to;
    for (const Place& place : places) pool.release_block(place);
    pool.release_block(room->place);
    EXPECT_EQ(pool.allocated(), 0);
    EXPECT_EQ(pool.largest_place(), by_node ? 32 : 8);
  }
  EXPECT_GT(possible, 500);
  EXPECT_GT(impossible, 100);
}

// Powers of two in nodes: where moving is free, little but the number of free NPUs counts; a block that would
// need others to move twice is left.
TEST(Migration, ForNothingLeavesFewFragmentsOfPowersOfTwo) {
  DrawnJobs drawn;
  drawn.count = 4000;
  drawn.block = "powers:8:2.5";
  drawn.duration = "exponential:1000";
  const std::vector<Job> jobs = draw_jobs(drawn, 2).jobs;
  const double counted = allocate(jobs, {1, 6, 8, 1, false}, {Fit::best, Order::fcfs}).allocation_rate,
               fixed = allocate(jobs, {1, 6, 8, 1, true}, {Fit::best, Order::fcfs}).allocation_rate;
  const AllocationResult moved = allocate(jobs, {1, 6, 8, 1, true}, {Fit::best, Order::fcfs, nullptr, 0});
  EXPECT_LT(fixed, counted - 0.01);
  EXPECT_GT(moved.allocation_rate, counted - (counted - fixed) / 10);
  EXPECT_LT(moved.allocation_rate, counted + 0.002);
  EXPECT_GT(moved.moves, 100);
  EXPECT_EQ(moved.moving_share, 0);
}

// One size leaves as much in each supernode as no block has room in, wherever blocks are: none is moved.
TEST(Migration, OfOneSizeMovesNothing) {
  std::vector<Job> jobs;
  for (int k = 0; k < 500; ++k) jobs.push_back({std::to_string(k), 0, 1000 + k, 5, 1});
  const AllocationResult got = allocate(jobs, {4, 1, 8, 1, false}, {Fit::best, Order::fcfs, nullptr, 100});
  EXPECT_EQ(got.moves, 0);
  EXPECT_NEAR(got.allocation_rate, 20 / 32.0, 1e-12);
}

// Two supernodes of eight: a and b of four NPUs each lie apart, so that c of eight has no place until a has
// moved to b.
TEST(Migration, StopsTheMovedAndTheNewForItsTime) {
  const std::vector<Job> jobs{{"a", 0, 100, 4, 1}, {"b", 0, 200, 4, 1}, {"c", 10, 50, 8, 1}};
  const PoolShape shape{2, 1, 8, 1, false};
  const AllocationResult without = allocate(jobs, shape, {Fit::idlest, Order::fcfs});
  EXPECT_EQ(without.jobs[2].start_ms, 100);
  const AllocationResult with = allocate(jobs, shape, {Fit::idlest, Order::fcfs, nullptr, 30});
  EXPECT_EQ(with.moves, 1);
  EXPECT_EQ(with.jobs[2].start_ms, 40);
  EXPECT_EQ(with.jobs[2].end_ms, 90);
  const bool first = with.jobs[0].end_ms == 130;  // which of the two
  EXPECT_EQ(with.jobs[0].end_ms, first ? 130 : 100);
  EXPECT_EQ(with.jobs[1].end_ms, first ? 200 : 230);
  EXPECT_EQ(with.jobs[0].blocks[0].supernode, with.jobs[1].blocks[0].supernode);
  EXPECT_EQ(with.moving_ms, 30 * (4 + 8));
  EXPECT_EQ(with.end_ms, first ? 200 : 230);
}

}  // namespace
}  // namespace cm384::cluster::placement_test
