#include "workloads/operators/reference/quantise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "workloads/operators/reference/tokens.h"

namespace cm384::reference::quantise_test {
namespace {

constexpr std::uint16_t kOne = 0x3f80, kTwo = 0x4000, kHalf = 0x3f00, kMinusOne = 0xbf80;

TEST(Quantise, KnownVectors) {
  const std::vector<std::uint16_t> row = {kTwo, kOne, kHalf, kMinusOne, 0, 0x8000, 0xc000, 0x3c80};
  std::vector<std::int8_t> out(row.size());
  const float scale = quantise_row(row, out);
  // Factor 63.5: 127, 63.5 (to even 64), 31.75, -63.5, 0, -0, -127, 0.9921875.
  EXPECT_THAT(out, ::testing::ElementsAre(127, 64, 32, -64, 0, 0, -127, 1));
  EXPECT_EQ(scale, 1.0f / 63.5f);
}

TEST(Quantise, RowOfZerosHasScaleZero) {
  const std::vector<std::uint16_t> row(64, 0);
  std::vector<std::int8_t> out(64, 99);
  EXPECT_EQ(quantise_row(row, out), 0.0f);
  EXPECT_THAT(out, ::testing::Each(0));
}

TEST(Quantise, TinyRowSaturates) {
  // The factor of the smallest bf16, 127 / 2^-133, is infinite.
  const std::vector<std::uint16_t> row = {0x0001, 0x8001, 0x0000};
  std::vector<std::int8_t> out(3);
  EXPECT_EQ(quantise_row(row, out), 0.0f);
  EXPECT_THAT(out, ::testing::ElementsAre(127, -128, 0));
}

TEST(Quantise, ErrorIsAtMostHalfAStep) {
  int zero_rows = 0;
  for (int token = 0; token < 400; ++token) {
    std::vector<std::uint16_t> row(256);
    std::vector<std::int8_t> out(256);
    make_token(7, 3, token, row);
    const float scale = quantise_row(row, out);
    int largest = 0;
    for (std::size_t i = 0; i < row.size(); ++i) {
      EXPECT_NEAR(from_bf16(row[i]), static_cast<float>(out[i]) * scale, scale * 0.50001f);
      largest = std::max(largest, std::abs(out[i]));
    }
    if (scale == 0) {
      ++zero_rows;
    } else {
      EXPECT_EQ(largest, 127);
    }
  }
  EXPECT_GT(zero_rows, 1);
  EXPECT_LT(zero_rows, 20);
}

TEST(Tokens, DependOnSeedRankAndToken) {
  std::vector<std::uint16_t> a(32), b(32), c(32), d(32);
  make_token(1, 0, 1, a);
  make_token(1, 0, 2, b);
  make_token(1, 1, 1, c);
  make_token(2, 0, 1, d);
  EXPECT_NE(a, b);
  EXPECT_NE(a, c);
  EXPECT_NE(a, d);
  const auto all = make_tokens(1, 0, 3, 32);
  EXPECT_TRUE(std::equal(a.begin(), a.end(), all.begin() + 32));
}

}  // namespace
}  // namespace cm384::reference::quantise_test
