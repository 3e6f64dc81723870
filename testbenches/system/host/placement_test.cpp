// Which die each rank stands on.
#include "system/host/placement.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "testbenches/hw/refusal.h"

namespace cm384::host::placement_test {
namespace {

using ::cm384::refusal;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Placement, LinearIsTheNumberOfTheDie) {
  EXPECT_THAT(place_ranks("linear", 4, 32, 16, 1), ElementsAre(0, 1, 2, 3));
}

// Three nodes of four dies: one rank on each node, then the next die of each.
TEST(Placement, StridedGoesFromNodeToNode) {
  EXPECT_THAT(place_ranks("strided", 7, 12, 4, 1), ElementsAre(0, 4, 8, 1, 5, 9, 2));
  const std::vector<int> all = place_ranks("strided", 12, 12, 4, 1);
  EXPECT_EQ(std::set<int>(all.begin(), all.end()).size(), 12u);
  EXPECT_EQ(*std::ranges::max_element(all), 11);
}

TEST(Placement, RandomIsAPermutationOfAllDiesByItsSeed) {
  std::vector<int> all = place_ranks("random", 64, 64, 16, 3);
  EXPECT_EQ(place_ranks("random", 64, 64, 16, 3), all);
  EXPECT_NE(place_ranks("random", 64, 64, 16, 4), all);
  const std::vector<int> first(all.begin(), all.begin() + 5);
  EXPECT_EQ(place_ranks("random", 5, 64, 16, 3), first);
  std::ranges::sort(all);
  for (int die = 0; die < 64; ++die) EXPECT_EQ(all[static_cast<std::size_t>(die)], die);
}

TEST(Placement, AListIsTakenAsItStands) {
  EXPECT_THAT(place_ranks("7,0,31", 3, 32, 16, 1), ElementsAre(7, 0, 31));
  EXPECT_THAT(place_ranks("7,0,31", 2, 32, 16, 1), ElementsAre(7, 0));
}

TEST(Placement, WhatCannotBeIsRefused) {
  const auto refused = [](const char* policy, int ranks) {
    return refusal([=] { place_ranks(policy, ranks, 32, 16, 1); });
  };
  EXPECT_THAT(refused("linear", 33), HasSubstr("33 ranks, but the machine has 32 dies"));
  EXPECT_THAT(refused("linear", 0), HasSubstr("allowed: 1 to 32"));
  EXPECT_EQ(refused("linear", 32), "(accepted)");
  EXPECT_THAT(refused("0,32", 2), HasSubstr("die 32 is out of range; allowed: 0 to 31"));
  EXPECT_THAT(refused("0,-1", 2), HasSubstr("die -1 is out of range"));
  EXPECT_THAT(refused("3,4,3", 3), HasSubstr("die 3 is named twice"));
  EXPECT_THAT(refused("3,4", 3), HasSubstr("lists 2 dies for 3 ranks"));
  EXPECT_THAT(refused("lineal", 2), HasSubstr("`lineal` is neither a policy nor a die number"));
}

}  // namespace
}  // namespace cm384::host::placement_test
