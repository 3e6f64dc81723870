// A batch of prompts of several lengths: what a die has of it, by hand. That it takes as long as one of equal
// prompts where they are all alike: library_command_test.
#include "workloads/prefill/prefill_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cm384::testing::prefill_batch_test {
namespace {

using studies::BatchPrompt;
using studies::PrefillOptions;
using studies::PrefillShare;

PrefillOptions options_of(int ranks, bool by_heads) {
  PrefillOptions options;
  options.ranks = ranks;
  options.by_heads = by_heads;
  return options;
}

std::vector<std::pair<int, int>> lengths_of(const PrefillShare& share) {
  std::vector<std::pair<int, int>> made;
  for (const auto& prompt : share.lengths)
    made.emplace_back(static_cast<int>(prompt.length), static_cast<int>(prompt.cached));
  return made;
}

// 1,000, 200 and 90 new tokens behind 0, 300 and 128: a die of four has a quarter of the 1,290 and of the
// 428, and some heads of all prompts.
TEST(PrefillBatch, SpreadsTokensOverDiesThatShareHeads) {
  const auto shares = studies::shares_of(options_of(4, true), {{90, 128}, {1000, 0}, {200, 300}}, 1);
  ASSERT_EQ(shares.size(), 1u);
  EXPECT_EQ(shares[0].tokens, 323);
  EXPECT_EQ(shares[0].cached, 107);
  EXPECT_EQ(shares[0].prompts, 3);
  EXPECT_EQ(shares[0].last, 1);
  EXPECT_THAT(lengths_of(shares[0]),
              ::testing::ElementsAre(std::pair{1008, 0}, std::pair{512, 256}, std::pair{224, 128}));
}

// The longest first to the die with the fewest tokens: 1,000; 200; 90 and 80; 100 and 60 of four dies.
TEST(PrefillBatch, TakesTheFullestDieWherePromptsAreWhole) {
  const std::vector<BatchPrompt> prompts{{90, 0}, {1000, 0}, {200, 0}, {100, 0}, {80, 0}, {60, 0}};
  const auto shares = studies::shares_of(options_of(4, false), prompts, 1);
  EXPECT_EQ(shares[0].tokens, 1000);
  EXPECT_EQ(shares[0].prompts, 1);
  const auto two = studies::shares_of(options_of(2, false), prompts, 1);
  EXPECT_EQ(two[0].tokens, 1000);
  const auto pairs = studies::shares_of(options_of(2, false), {{90, 0}, {100, 128}, {80, 0}}, 1);
  EXPECT_EQ(pairs[0].tokens, 170);
  EXPECT_EQ(pairs[0].cached, 0);
}

// 1,000 and 90; 600 and 500: each microbatch has its own. One prompt has no second one.
TEST(PrefillBatch, DealsPromptsOutOverMicrobatches) {
  const auto shares = studies::shares_of(options_of(2, true), {{600, 0}, {90, 0}, {1000, 0}, {500, 0}}, 2);
  ASSERT_EQ(shares.size(), 2u);
  EXPECT_EQ(shares[0].tokens, 545);
  EXPECT_EQ(shares[1].tokens, 550);
  EXPECT_EQ(studies::shares_of(options_of(2, true), {{600, 0}}, 2).size(), 1u);
}

}  // namespace
}  // namespace cm384::testing::prefill_batch_test
