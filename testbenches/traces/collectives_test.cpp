// Collectives written out: bytes and rounds against closed forms, and that what each rank needs gets to it.
#include "traces/collectives.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <set>

#include "testbenches/hw/refusal.h"

namespace cm384::traces::collectives_test {
namespace {

using Kind = CollectiveKind;
using Algorithm = CollectiveAlgorithm;

std::vector<int> groups(int ranks, int per_node) {
  std::vector<int> group;
  for (int rank = 0; rank < ranks; ++rank) group.push_back(rank / per_node);
  return group;
}

// Bytes that a rank sends, the same for each.
std::int64_t sent(const std::vector<CollectiveRound>& rounds, int ranks) {
  std::vector<std::int64_t> bytes(static_cast<std::size_t>(ranks)), got(static_cast<std::size_t>(ranks));
  for (const CollectiveRound& round : rounds) {
    for (const CollectiveSend& s : round) {
      bytes[static_cast<std::size_t>(s.from)] += s.bytes;
      got[static_cast<std::size_t>(s.to)] += s.bytes;
      EXPECT_NE(s.from, s.to);
    }
  }
  for (const std::int64_t one : bytes) EXPECT_EQ(one, bytes.front());
  for (const std::int64_t one : got) EXPECT_EQ(one, bytes.front());
  return bytes.front();
}

// Whether something of every rank may have got to every other one.
bool all_know_all(const std::vector<CollectiveRound>& rounds, int ranks) {
  std::vector<std::set<int>> known(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) known[static_cast<std::size_t>(rank)] = {rank};
  for (const CollectiveRound& round : rounds) {
    const auto before = known;
    for (const CollectiveSend& s : round) {
      const auto& told = before[static_cast<std::size_t>(s.from)];
      known[static_cast<std::size_t>(s.to)].insert(told.begin(), told.end());
    }
  }
  return std::ranges::all_of(known, [&](const auto& one) { return static_cast<int>(one.size()) == ranks; });
}

constexpr std::int64_t kPart = 1000;

TEST(Collectives, MoveAsManyBytesAsTheirClosedForms) {
  for (const int n : {2, 4, 8, 16, 3, 12, 24}) {
    const std::vector<int> group = groups(n, n % 2 == 0 ? n / 2 : n);
    for (const Algorithm algorithm :
         {Algorithm::direct, Algorithm::ring, Algorithm::halving, Algorithm::hierarchical}) {
      if (algorithm == Algorithm::halving && !std::has_single_bit(static_cast<unsigned>(n))) continue;
      for (const Kind kind : {Kind::all_reduce, Kind::all_gather, Kind::reduce_scatter}) {
        const auto rounds = collective_rounds(kind, algorithm, kPart * n, group);
        // Nothing that reduces or gathers needs more than (n - 1) / n of the vector, twice for an all-reduce.
        EXPECT_EQ(sent(rounds, n), kPart * (n - 1) * (kind == Kind::all_reduce ? 2 : 1)) << n;
        EXPECT_TRUE(all_know_all(rounds, n)) << n << name_of(kind) << name_of(algorithm);
      }
    }
    const auto direct = collective_rounds(Kind::all_to_all, Algorithm::direct, kPart * n, group);
    EXPECT_EQ(sent(direct, n), kPart * (n - 1));
    // Bruck: a block whose distance has b bits takes b steps.
    int bits = 0;
    for (int distance = 1; distance < n; ++distance) bits += std::popcount(static_cast<unsigned>(distance));
    const auto bruck = collective_rounds(Kind::all_to_all, Algorithm::bruck, kPart * n, group);
    EXPECT_EQ(sent(bruck, n), kPart * bits);
    EXPECT_TRUE(all_know_all(bruck, n));
    EXPECT_EQ(bruck.size(), static_cast<std::size_t>(std::bit_width(static_cast<unsigned>(n - 1))));
    const auto gather = collective_rounds(Kind::all_gather, Algorithm::bruck, kPart * n, group);
    EXPECT_EQ(sent(gather, n), kPart * (n - 1));
    EXPECT_TRUE(all_know_all(gather, n));
  }
  // Two nodes of four: three to local places with two blocks each, then four blocks to the other node.
  const auto two = collective_rounds(Kind::all_to_all, Algorithm::hierarchical, kPart * 8, groups(8, 4));
  EXPECT_EQ(two.size(), 2u);
  EXPECT_EQ(sent(two, 8), kPart * (3 * 2 + 4));
  EXPECT_TRUE(all_know_all(two, 8));
}

TEST(Collectives, TakeAsManyRoundsAsTheirClosedForms) {
  const auto rounds = [](Kind kind, Algorithm algorithm) {
    return collective_rounds(kind, algorithm, kPart * 16, groups(16, 4)).size();
  };
  EXPECT_EQ(rounds(Kind::all_reduce, Algorithm::ring), 30u);
  EXPECT_EQ(rounds(Kind::all_reduce, Algorithm::halving), 8u);
  EXPECT_EQ(rounds(Kind::all_reduce, Algorithm::direct), 2u);
  EXPECT_EQ(rounds(Kind::all_reduce, Algorithm::hierarchical), 4u);
  EXPECT_EQ(rounds(Kind::all_gather, Algorithm::ring), 15u);
  EXPECT_EQ(rounds(Kind::all_gather, Algorithm::bruck), 4u);
  EXPECT_EQ(rounds(Kind::reduce_scatter, Algorithm::halving), 4u);
}

TEST(Collectives, RefuseWhatTheyCannotDo) {
  CollectiveChoice choice;
  const auto parsed = [&](const char* text) { return refusal([&] { parse_collective(text, choice); }); };
  EXPECT_EQ(parsed("all-reduce=ring"), "(accepted)");
  EXPECT_EQ(choice[Kind::all_reduce], Algorithm::ring);
  EXPECT_EQ(choice[Kind::all_to_all], Algorithm::direct);
  EXPECT_EQ(parsed("all-to-all=ring"),
            "--collective: 'ring'; allowed of all-to-all: direct, bruck, hierarchical");
  EXPECT_THAT(parsed("broadcast=ring"),
              ::testing::HasSubstr("'broadcast=ring'; allowed: all-reduce, all-to-all"));
  EXPECT_THAT(parsed("all-reduce"), ::testing::HasSubstr("each with =ALGORITHM"));
  EXPECT_THAT(refusal([] { collective_rounds(Kind::all_reduce, Algorithm::halving, 600, groups(6, 6)); }),
              ::testing::HasSubstr("6 ranks; allowed: a power of two"));
  EXPECT_THAT(
      refusal([] { collective_rounds(Kind::all_reduce, Algorithm::hierarchical, 600, groups(6, 4)); }),
      ::testing::HasSubstr("4 ranks on one node and 2 on another"));
}

}  // namespace
}  // namespace cm384::traces::collectives_test
