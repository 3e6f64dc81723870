#include "workloads/operators/reference/expert_placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/text/error.h"

namespace cm384::reference::expert_placement_test {
namespace {

struct Counts {
  int ranks, experts, shared_copies;
};

class EveryPlacement : public ::testing::TestWithParam<Counts> {};

TEST_P(EveryPlacement, GivesEveryRankItsSlotsAndEveryExpertItsCopies) {
  const auto [ranks, experts, shared_copies] = GetParam();
  const ExpertPlacement p = place_experts(ranks, experts, shared_copies);
  ASSERT_EQ(p.copies.size(), static_cast<std::size_t>(experts + (shared_copies > 0 ? 1 : 0)));
  std::set<std::pair<unsigned, unsigned>> places;
  std::vector<int> own(static_cast<std::size_t>(ranks), 0);
  for (std::size_t e = 0; e < p.copies.size(); ++e) {
    ASSERT_GE(p.copies[e].copies, 1u);
    for (unsigned c = 0; c < p.copies[e].copies; ++c) {
      const cm384_expert_slot& slot = p.slots.at(p.copies[e].first + c);
      EXPECT_EQ(slot.expert, e);
      EXPECT_EQ(slot.copy, c);
      EXPECT_LT(slot.rank, static_cast<unsigned>(ranks));
      EXPECT_TRUE(places.emplace(slot.rank, slot.local).second) << "two experts in one place";
      ++own[slot.rank];
    }
  }
  EXPECT_EQ(places.size(), p.slots.size()) << "slots that belong to no expert";
  EXPECT_EQ(own, p.own_experts);
  for (const auto& [rank, local] : places) EXPECT_LT(local, static_cast<unsigned>(own[rank]));
  EXPECT_EQ(*std::max_element(own.begin(), own.end()), p.local_experts);
  EXPECT_GE(*std::min_element(own.begin(), own.end()), 1) << "an idle rank";
  const auto routed = own.begin() + shared_copies;
  EXPECT_LE(*std::max_element(routed, own.end()) - *std::min_element(routed, own.end()), 1) << "unbalanced";
  for (int r = 0; r < shared_copies; ++r) {
    EXPECT_EQ(own[static_cast<std::size_t>(r)], 1);
    EXPECT_EQ(p.slot_of(experts, r).rank, static_cast<unsigned>(r));
  }
}

INSTANTIATE_TEST_SUITE_P(Counts, EveryPlacement,
                         ::testing::Values(Counts{8, 256, 0}, Counts{60, 60, 0}, Counts{64, 256, 0},
                                           Counts{256, 256, 0}, Counts{320, 256, 32}, Counts{768, 256, 0},
                                           Counts{8, 60, 0}, Counts{64, 60, 0}, Counts{320, 60, 0},
                                           Counts{1, 1, 0}, Counts{7, 16, 2}));

TEST(Placement, OfEp320IsThePapers) {
  const ExpertPlacement p = place_experts(320, 256, 32);
  EXPECT_EQ(p.slots.size(), 320u);
  EXPECT_EQ(p.local_experts, 1);
  EXPECT_EQ(p.copies[256].copies, 32u);  // shared
  int redundant = 0;
  for (int e = 0; e < 256; ++e)
    redundant += static_cast<int>(p.copies[static_cast<std::size_t>(e)].copies) - 1;
  EXPECT_EQ(redundant, 32);
  EXPECT_EQ(p.slot_of(256, 33).rank, 1u);  // replica by source rank modulo copies
  EXPECT_EQ(p.slot_of(3, 0).rank, 35u);
  EXPECT_EQ(p.slot_of(3, 1).rank, 32u + 256u + 3u);
}

TEST(Placement, DividesUnevenlyByOne) {
  const ExpertPlacement p = place_experts(8, 60);
  EXPECT_THAT(p.own_experts, ::testing::ElementsAre(8, 8, 8, 8, 7, 7, 7, 7));
  EXPECT_EQ(p.slot_of(31, 5).rank, 3u);
  EXPECT_EQ(p.slot_of(31, 5).local, 7u);
  EXPECT_EQ(p.slot_of(32, 5).rank, 4u);
}

TEST(Placement, RefusesWhatCannotBe) {
  EXPECT_THROW(place_experts(0, 8), InputError);
  EXPECT_THROW(place_experts(8, 0), InputError);
  EXPECT_THROW(place_experts(8, 8, 8), InputError);
  EXPECT_THROW(place_experts(8, 4096), InputError);  // status window
  EXPECT_EQ(place_experts(8, 2048).local_experts, 256);
}

}  // namespace
}  // namespace cm384::reference::expert_placement_test
