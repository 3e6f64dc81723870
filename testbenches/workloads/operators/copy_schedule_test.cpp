// Rounds of collectives by copies: every part gets everywhere, every term is added once, and as many bytes
// travel as the schedules of traces have, which share no code with them.
#include "workloads/operators/collectives/copy_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/text/error.h"
#include "hw/machine.h"
#include "traces/collectives.h"

namespace cm384::operators::copy_schedule_test {
namespace {

using reference::CollectiveKind;
using enum CopyAlgorithm;

const hw::Topology& topology() {
  static const hw::Machine machine = hw::load_machine("cloudmatrix384");
  return machine.topology;
}

struct Case {
  CopyAlgorithm algorithm;
  int ranks;
};
const std::vector<Case> kCases{{direct, 2},  {direct, 7},        {ring, 2},         {ring, 5},
                               {halving, 2}, {halving, 16},      {hierarchical, 2}, {hierarchical, 6},
                               {direct, 16}, {hierarchical, 16}, {ring, 16},        {hierarchical, 64}};

TEST(CopySchedule, AnAllGatherBringsEveryPartToEveryRankOnce) {
  for (const Case& c : kCases) {
    std::vector<std::set<int>> has(static_cast<std::size_t>(c.ranks));
    for (int n = 0; n < c.ranks; ++n) has[static_cast<std::size_t>(n)] = {n};
    for (const CopyRound& round :
         rounds_of(CollectiveKind::all_gather, c.algorithm, c.ranks, topology()).rounds) {
      const auto before = has;
      for (const PartMove& move : round) {
        EXPECT_TRUE(before[static_cast<std::size_t>(move.from)].contains(move.part));
        EXPECT_TRUE(has[static_cast<std::size_t>(move.to)].insert(move.part).second) << "twice";
      }
    }
    for (const std::set<int>& parts : has) EXPECT_EQ(parts.size(), static_cast<std::size_t>(c.ranks));
  }
}

// Who has been added to a part on a rank: a sum that leaves takes all of them along.
TEST(CopySchedule, AReduceScatterAddsEveryRankOnce) {
  for (const CollectiveKind kind : {CollectiveKind::reduce_scatter, CollectiveKind::all_reduce}) {
    for (const Case& c : kCases) {
      std::map<std::pair<int, int>, std::multiset<int>> added;  // [rank, part]
      for (int n = 0; n < c.ranks; ++n) {
        for (int part = 0; part < c.ranks; ++part) added[{n, part}] = {n};
      }
      const CopyRounds made = rounds_of(kind, c.algorithm, c.ranks, topology());
      for (std::size_t r = 0; r < made.gathers_from; ++r) {
        const auto before = added;
        for (const PartMove& move : made.rounds[r]) {
          const std::multiset<int>& sent = before.at({move.from, move.part});
          added[{move.to, move.part}].insert(sent.begin(), sent.end());
        }
      }
      for (int n = 0; n < c.ranks; ++n) {
        const std::multiset<int>& all = added[{n, n}];
        EXPECT_EQ(all.size(), static_cast<std::size_t>(c.ranks)) << name_of(c.algorithm) << c.ranks;
        EXPECT_EQ(std::set<int>(all.begin(), all.end()).size(), all.size());
      }
      EXPECT_EQ(made.rounds.size(), made.gathers_from * (kind == CollectiveKind::all_reduce ? 2 : 1));
    }
  }
}

using Bytes = std::map<std::pair<int, int>, std::int64_t>;

TEST(CopySchedule, HasTheBytesOfEachRoundThatSchedulesOfTracesHave) {
  using traces::CollectiveAlgorithm;
  const std::map<CopyAlgorithm, CollectiveAlgorithm> names{{direct, CollectiveAlgorithm::direct},
                                                           {ring, CollectiveAlgorithm::ring},
                                                           {halving, CollectiveAlgorithm::halving},
                                                           {hierarchical, CollectiveAlgorithm::hierarchical}};
  const std::map<CollectiveKind, traces::CollectiveKind> kinds{
      {CollectiveKind::all_gather, traces::CollectiveKind::all_gather},
      {CollectiveKind::reduce_scatter, traces::CollectiveKind::reduce_scatter},
      {CollectiveKind::all_reduce, traces::CollectiveKind::all_reduce}};
  const int ranks = 16;  // of one node: packages are the groups
  std::vector<int> package;
  for (int n = 0; n < ranks; ++n) package.push_back(n / 2);
  for (const auto& [algorithm, name] : names) {
    for (const auto& [kind, other] : kinds) {
      const CopyRounds made = rounds_of(kind, algorithm, ranks, topology());
      const auto wanted = traces::collective_rounds(other, name, ranks * 10, package);
      ASSERT_EQ(made.rounds.size(), wanted.size()) << name_of(algorithm);
      for (std::size_t r = 0; r < wanted.size(); ++r) {
        Bytes here, there;
        for (const PartMove& move : made.rounds[r]) here[{move.from, move.to}] += 10;
        // Sums go around the other way.
        const bool back = algorithm == ring && r < made.gathers_from;
        for (const traces::CollectiveSend& send : wanted[r])
          there[back ? std::pair(send.to, send.from) : std::pair(send.from, send.to)] += send.bytes;
        EXPECT_EQ(here, there) << name_of(algorithm) << " round " << r;
      }
    }
  }
}

TEST(CopySchedule, LevelsArePackagesNodesAndWhatIsLeft) {
  using ::testing::ElementsAre;
  EXPECT_THAT(levels_of(2, topology()), ElementsAre(2));
  EXPECT_THAT(levels_of(6, topology()), ElementsAre(2, 3));
  EXPECT_THAT(levels_of(16, topology()), ElementsAre(2, 8));
  EXPECT_THAT(levels_of(48, topology()), ElementsAre(2, 8, 3));
  EXPECT_TRUE(levels_of(7, topology()).empty()) << "half a package";
  EXPECT_TRUE(levels_of(24, topology()).empty()) << "half a node";
}

TEST(CopySchedule, RefusesWhatAnAlgorithmDoesNotTake) {
  const auto refused = [](CollectiveKind kind, CopyAlgorithm algorithm, int ranks) {
    EXPECT_THROW(rounds_of(kind, algorithm, ranks, topology()), InputError);
  };
  refused(CollectiveKind::all_gather, halving, 6);
  refused(CollectiveKind::all_gather, hierarchical, 7);
  for (const CopyAlgorithm algorithm : {ring, halving, hierarchical})
    refused(CollectiveKind::all_to_all, algorithm, 16);
}

}  // namespace
}  // namespace cm384::operators::copy_schedule_test
