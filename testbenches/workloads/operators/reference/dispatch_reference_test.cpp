#include "workloads/operators/reference/dispatch_reference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "traces/routing/routing.h"
#include "workloads/operators/reference/quantise.h"
#include "workloads/operators/reference/tokens.h"

namespace cm384::reference::dispatch_reference_test {
namespace {

DispatchCase make_case(int ranks, int experts, int shared_copies, int batch, int top_k, int hidden) {
  DispatchCase c{place_experts(ranks, experts, shared_copies), batch, top_k, hidden, 5, {}};
  const auto routing = traces::zipf_routing(ranks * batch, top_k, experts, 1.0, 3);
  for (int r = 0; r < ranks; ++r) c.expert_ids.push_back(traces::rows_of_block(routing, r, batch));
  return c;
}

TEST(DispatchArguments, HaveThePublishedSlotAndFit) {
  EXPECT_EQ(cm384_dispatch_transfer_bytes(7168), 7212u);
  EXPECT_EQ(cm384_dispatch_slot_bytes(7168), 7680u);
  for (const auto& [ranks, shared] : {std::pair{8, 0}, {64, 0}, {256, 0}, {320, 32}, {768, 0}}) {
    const DispatchCase c{place_experts(ranks, 256, shared), 128, 8, 7168, 1, {}};
    const cm384_dispatch a = dispatch_arguments(c, ranks - 1);
    EXPECT_TRUE(cm384_dispatch_fits(&a, 48)) << ranks << " ranks";
    const auto l = cm384_dispatch_ubuffer(&a, 48);
    for (const std::uint64_t offset :
         {l.work0, l.scalars, l.copies, l.slots, l.peers, l.phase, l.x_out, l.row, l.absolute, l.entries,
          l.sums, l.counts, l.token_counts, l.token_sums, l.token_nums, l.rows_out}) {
      EXPECT_EQ(offset % 32, 0u);
    }
  }
  const DispatchCase c{place_experts(8, 256), 128, 8, 7168, 1, {}};
  EXPECT_EQ(dispatch_arguments(c, 0).window_half_bytes, 128ull * 8 * 14336 + 8ull * 32 * 128 * 7680);
}

TEST(DispatchReference, DeliversEveryPairOnceInOrder) {
  for (const auto& c :
       {make_case(8, 60, 0, 16, 4, 64), make_case(7, 4, 2, 5, 3, 64), make_case(5, 16, 1, 9, 2, 32)}) {
    const DispatchReference reference(c);
    const int k_and_shared = c.top_k + c.placement.shared;
    EXPECT_EQ(reference.rows(), static_cast<std::uint64_t>(c.placement.ranks * c.batch * k_and_shared));
    for (int r = 0; r < c.placement.ranks; ++r) {
      const ExpectedRank& expected = reference.rank(r);
      std::size_t row = 0;
      for (std::size_t entry = 0; entry < expected.send_counts.size(); ++entry) {
        const int source = static_cast<int>(entry) % c.placement.ranks;
        const auto local = static_cast<unsigned>(entry) / static_cast<unsigned>(c.placement.ranks);
        int last_pair = -1;
        for (; row < static_cast<std::size_t>(expected.send_counts[entry]); ++row) {
          const ArrivedRow& a = expected.rows[row];
          EXPECT_EQ(a.source, source);
          const int pair = a.token * k_and_shared + a.k;
          EXPECT_GT(pair, last_pair) << "positions follow the order of pairs";
          last_pair = pair;
          const int expert = a.k == c.top_k ? c.placement.experts
                                            : c.expert_ids[static_cast<std::size_t>(source)]
                                                          [static_cast<std::size_t>(a.token * c.top_k + a.k)];
          EXPECT_EQ(c.placement.slot_of(expert, source).rank, static_cast<unsigned>(r));
          EXPECT_EQ(c.placement.slot_of(expert, source).local, local);
        }
      }
      EXPECT_EQ(row, expected.rows.size());
    }
  }
}

TEST(DispatchReference, ComparisonFindsEveryKindOfDifference) {
  const DispatchCase c = make_case(4, 8, 0, 6, 2, 32);
  const DispatchReference reference(c);
  const int rank = 0;
  const ExpectedRank& expected = reference.rank(rank);
  const std::size_t rows = expected.rows.size();
  ASSERT_GT(rows, 2u);
  std::vector<std::int8_t> x(rows * 32);
  std::vector<float> scales(rows);
  std::vector<std::int32_t> triples;
  for (std::size_t i = 0; i < rows; ++i) {
    scales[i] = reference.expected_row(rank, i, std::span(x).subspan(i * 32, 32));
    triples.insert(triples.end(), {expected.rows[i].source, expected.rows[i].token, expected.rows[i].k});
  }
  auto counts = expected.send_counts;
  auto nums = expected.expert_token_nums;
  const auto compare = [&] { return reference.compare(rank, x, scales, triples, counts, nums); };
  EXPECT_EQ(compare(), "");
  x[33] = static_cast<std::int8_t>(x[33] ^ 1);
  EXPECT_THAT(compare(), ::testing::HasSubstr("row 1"));
  x[33] = static_cast<std::int8_t>(x[33] ^ 1);
  scales[2] += 1;
  EXPECT_THAT(compare(), ::testing::HasSubstr("scale"));
  scales[2] -= 1;
  scales[2] = reference.expected_row(rank, 2, std::span(x).subspan(64, 32));
  ++triples[4];
  EXPECT_THAT(compare(), ::testing::HasSubstr("triples[4]"));
  --triples[4];
  ++counts[1];
  EXPECT_THAT(compare(), ::testing::HasSubstr("send_counts[1]"));
  --counts[1];
  ++nums[0];
  EXPECT_THAT(compare(), ::testing::HasSubstr("expert_token_nums[0]"));
  --nums[0];
  EXPECT_EQ(compare(), "");
}

}  // namespace
}  // namespace cm384::reference::dispatch_reference_test
