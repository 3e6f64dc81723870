// How many tokens each rank has: what --batches says, and what follows for what arrives.
#include "workloads/moe/batches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <numeric>
#include <set>

#include "base/text/error.h"
#include "workloads/moe/moe_case.h"
#include "workloads/operators/reference/dispatch_reference.h"

namespace cm384::studies::batches_test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<int> tokens(const std::string& text, int ranks, std::uint64_t seed = 1) {
  return batches_of(parse_batches(text), ranks, seed);
}

TEST(Batches, AListBeginsAnew) {
  EXPECT_THAT(tokens("3,64,7", 5), ElementsAre(3, 64, 7, 3, 64));
  EXPECT_THAT(tokens("256", 2), ElementsAre(256, 256));
  EXPECT_THAT(tokens("3,64,7", 2), ElementsAre(3, 64));
}

// Of 10,000 draws from 1 .. 128 the mean is 64.5 with a standard deviation of 36.95 / 100.
TEST(Batches, AreDrawnEvenly) {
  const std::vector<int> drawn = tokens("uniform:1..128", 10'000);
  EXPECT_EQ(std::ranges::min(drawn), 1);
  EXPECT_EQ(std::ranges::max(drawn), 128);
  EXPECT_NEAR(std::accumulate(drawn.begin(), drawn.end(), 0.0) / 10'000, 64.5, 4 * 0.37);
  EXPECT_EQ(drawn, tokens("uniform:1..128", 10'000)) << "the same seed";
  EXPECT_NE(drawn, tokens("uniform:1..128", 10'000, 2));
  EXPECT_THAT(tokens("uniform:9..9", 4), Each(9));
}

TEST(Batches, AFileHasALineForEachRank) {
  const std::string path = ::testing::TempDir() + "batches.txt";
  std::ofstream(path) << "# of the run of Monday\n5\n\n1\n512\n";
  EXPECT_THAT(tokens("file:" + path, 4), ElementsAre(5, 1, 512, 5));
  std::ofstream(path, std::ios::binary)
      << "\xef\xbb\xbf 5 \r\n# a comment\r\n\t1\t# the second rank\r\n\r\n512";
  EXPECT_THAT(tokens("file:" + path, 4), ElementsAre(5, 1, 512, 5));
  // What is wrong is told of ranks that are not there, too.
  std::ofstream(path) << "5\n0\n";
  EXPECT_THROW(tokens("file:" + path, 1), InputError);
  for (const char* line : {"5,6", "5 6", "5.0", "-5", "five", "513", "99999999999999999999"}) {
    std::ofstream(path) << "5\n" << line << "\n";
    try {
      tokens("file:" + path, 2);
      ADD_FAILURE() << line;
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(),
                  HasSubstr(path + ":2: '" + line + "'; allowed: the tokens of a rank in each line"));
    }
  }
  const auto many = [&](int count) {
    std::ofstream file(path);
    for (int n = 0; n < count; ++n) file << "7\n";
  };
  many(65'535);
  EXPECT_THAT(tokens("file:" + path, 2), ElementsAre(7, 7));
  many(65'536);
  EXPECT_THROW(tokens("file:" + path, 2), InputError);
  std::ofstream(path) << "\n";
  EXPECT_THROW(tokens("file:" + path, 1), InputError);
  EXPECT_THROW(tokens("file:" + path + ".none", 1), InputError);
}

TEST(Batches, SayWhereNumbersAreNotAsManyAsRanks) {
  EXPECT_EQ(note_of(parse_batches("3,64,7"), 3), "");
  EXPECT_THAT(note_of(parse_batches("3,64,7"), 4),
              HasSubstr("3 numbers for 4 ranks with tokens: they start over"));
  EXPECT_THAT(note_of(parse_batches("3,64,7"), 2), HasSubstr("the first ones are taken"));
  EXPECT_EQ(note_of(parse_batches("uniform:1..9"), 2), "");
  const std::string path = ::testing::TempDir() + "numbers.txt";
  std::ofstream(path) << "5\n6\n";
  EXPECT_EQ(note_of(parse_batches("file:" + path), 2), "");
  EXPECT_THAT(note_of(parse_batches("file:" + path), 1), HasSubstr("2 numbers for 1 ranks"));
}

TEST(Batches, RefusesWhatIsNone) {
  for (const char* text : {"", "0", "513", "4,,9", "4,", "uniform:", "uniform:0..3", "uniform:5..2",
                           "uniform:1..513", "uniform:3", "file:", "x", "1.5", "-1"}) {
    try {
      parse_batches(text);
      ADD_FAILURE() << text;
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), HasSubstr("1 to 512 tokens of a rank")) << text;
    }
  }
}

// Every pair of a token and an expert arrives once, whatever others have: rows are counted by hand.
TEST(Batches, EachRankSendsItsOwnRows) {
  DispatchCase setting;
  setting.ranks = 6;
  setting.experts = 12;
  setting.top_k = 3;
  setting.hidden = 64;
  setting.shared_copies = 2;
  setting.batches = "1,5,2";
  const reference::DispatchCase layer = make_moe_case(1, setting);
  const reference::DispatchReference expected(layer);
  EXPECT_EQ(layer.tokens(), 16u);
  EXPECT_EQ(expected.rows(), 16u * (3 + 1));
  std::vector<int> sent(6);
  for (int rank = 0; rank < 6; ++rank) {
    for (const reference::ArrivedRow& row : expected.rank(rank).rows)
      ++sent[static_cast<std::size_t>(row.source)];
  }
  EXPECT_THAT(sent, ElementsAre(4, 20, 8, 4, 20, 8));
  const RoutedRows routed = routed_rows(layer);
  for (std::size_t source = 0; source < 6; ++source)
    EXPECT_EQ(std::accumulate(routed.between[source].begin(), routed.between[source].end(), std::uint64_t{0}),
              static_cast<std::uint64_t>(sent[source]));
  EXPECT_EQ(reference::dispatch_arguments(layer, 0).batch, 1u);
  EXPECT_EQ(reference::dispatch_arguments(layer, 0).max_tokens, 5u);
}

// The last two of six have the experts, six each in order, and what arrives was sent by the four others.
TEST(ExpertRanks, HoldAllExpertsBehindTheTokens) {
  DispatchCase setting;
  setting.ranks = 6;
  setting.experts = 12;
  setting.top_k = 3;
  setting.hidden = 64;
  setting.batch = 5;
  setting.expert_ranks = 2;
  const reference::DispatchCase layer = make_moe_case(1, setting);
  EXPECT_THAT(layer.batches, ElementsAre(5, 5, 5, 5, 0, 0));
  EXPECT_THAT(layer.placement.own_experts, ElementsAre(0, 0, 0, 0, 6, 6));
  for (int expert = 0; expert < 12; ++expert)
    EXPECT_EQ(layer.placement.slot_of(expert, 0).rank, expert < 6 ? 4u : 5u);
  const reference::DispatchReference expected(layer);
  EXPECT_EQ(expected.rank(4).rows.size() + expected.rank(5).rows.size(), 4u * 5 * 3);
  const RoutedSetting routed = routed_setting(layer);
  EXPECT_EQ(routed.batch, 5);
  EXPECT_EQ(routed.token_ranks, 4);
  EXPECT_EQ(routed.mean_batch, 5);
  EXPECT_EQ(routed.routing_rows, 20);

  setting.batches = "2,4,9";  // of the ranks with tokens: 2, 4, 9, 2
  const RoutedSetting unlike = routed_setting(make_moe_case(1, setting));
  EXPECT_EQ(unlike.batch, 0);
  EXPECT_EQ(unlike.mean_batch, 17.0 / 4);
  EXPECT_EQ(unlike.routing_rows, 4 * 9);
  setting.expert_ranks = 5;  // the one with tokens has two of them
  EXPECT_EQ(make_moe_case(1, setting).batch, 2);
  setting.expert_ranks = 6;
  EXPECT_THROW(make_moe_case(1, setting), InputError);
}

// Copies of a balanced placement are for the ranks that hold experts: two each.
TEST(ExpertRanks, HaveTheirCopiesByLoad) {
  DispatchCase setting;
  setting.ranks = 7;
  setting.experts = 5;
  setting.top_k = 2;
  setting.hidden = 64;
  setting.batch = 8;
  setting.expert_ranks = 3;
  setting.by_load = true;
  EXPECT_THAT(make_moe_case(1, setting).placement.own_experts, ElementsAre(0, 0, 0, 0, 2, 2, 2));
  setting.redundant = 4;
  EXPECT_THAT(make_moe_case(1, setting).placement.own_experts, ElementsAre(0, 0, 0, 0, 3, 3, 3));
}

}  // namespace
}  // namespace cm384::studies::batches_test
