// Lines of HBM spread over pseudo-channels, banks and rows: each has a place of its own.
#include "npu_core/memory/address_mapping.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <vector>

#include "testbenches/npu_core/memory/preset.h"

namespace cm384::npu::address_mapping_test {
namespace {

TEST(AddressMapping, EveryLineHasItsOwnPlace) {
  for (const bool hash : {false, true}) {
    hw::Hbm p = testing::preset_memory().hbm;
    p.banks_per_group = 4;
    p.hash = hash;
    const AddressMapping mapping(p);
    // Four lines share a row address of a channel and bank; over one span each place is met exactly four
    // times.
    std::vector<int> met(64 * 16 * 4, 0);
    for (std::uint64_t line = 0; line < 64 * 4 * 8 * 4; ++line) {
      const HbmLocation where = mapping.locate(line * 512);
      ASSERT_LT(where.channel, 64u);
      ASSERT_EQ(where.bank % 2, 0u);
      ASSERT_LT(where.bank, 16u);
      ASSERT_LT(where.row, 4u);
      ++met[(where.channel * 8 + where.bank / 2) * 4 + where.row];
    }
    for (std::size_t i = 0; i < 64 * 8 * 4; ++i) ASSERT_EQ(met[i], 4) << i;
  }
}

TEST(AddressMapping, StacksNeedNotBeAPowerOfTwo) {
  for (const bool hash : {false, true}) {
    hw::Hbm p = testing::preset_memory().hbm;
    p.stacks = 6;
    p.hash = hash;
    const AddressMapping mapping(p);
    ASSERT_EQ(mapping.channels(), 96u);
    std::set<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>> rows;
    std::vector<int> met(96, 0);
    constexpr std::uint64_t kLines = 96 * 4 * 64;  // four of each row
    for (std::uint64_t line = 0; line < kLines; ++line) {
      const HbmLocation where = mapping.locate(line * 512);
      ASSERT_LT(where.channel, 96u);
      ++met[where.channel];
      rows.insert({where.channel, where.bank, where.row});
    }
    EXPECT_EQ(rows.size(), kLines / 4);
    for (const int lines : met) EXPECT_EQ(lines, 4 * 64);
  }
}

TEST(AddressMapping, HashSpreadsPowerOfTwoStrides) {
  const AddressMapping mapping(testing::preset_memory().hbm);
  for (std::uint64_t stride = 512; stride <= (16u << 20); stride *= 2) {
    std::vector<int> met(64, 0);
    for (std::uint64_t i = 0; i < 1024; ++i) ++met[mapping.locate(i * stride).channel];
    EXPECT_LE(*std::max_element(met.begin(), met.end()), 128) << stride;
  }
}

}  // namespace
}  // namespace cm384::npu::address_mapping_test
