// MLA decode attention and the experts' feed-forward network on a die: values within their stated bounds, the
// same times in both payload modes.
#include <gtest/gtest.h>

#include "testbenches/runs/machine_run.h"

namespace cm384::testing::attention_test {
namespace {

using studies::AttentionReading;
using studies::CubeReading;
using studies::FfnSetting;
using studies::MlaSetting;

MlaSetting setting_of(std::vector<std::uint32_t> kv_lens, std::uint32_t queries, std::uint32_t heads,
                      int blocks) {
  MlaSetting setting;
  setting.kv_lens = std::move(kv_lens);
  setting.queries = queries;
  setting.heads = heads;
  setting.blocks = blocks;
  return setting;
}

class MlaValues : public ::testing::TestWithParam<MlaSetting> {};

TEST_P(MlaValues, AreWithinTheirBoundAndTimesDoNotDependOnThem) {
  MlaSetting setting = GetParam();
  setting.full = true;
  const AttentionReading full = run_mla(setting).attention;
  EXPECT_TRUE(full.correct && *full.correct) << full.first_difference;
  setting.full = false;
  const AttentionReading control = run_mla(setting).attention;
  EXPECT_EQ(full.kernel_us, control.kernel_us);
  EXPECT_EQ(full.hbm_bytes, control.hbm_bytes);
}

// Lengths that end inside a page and inside a KV block, one token, more and fewer tasks than cores, splits.
INSTANTIATE_TEST_SUITE_P(
    Ragged, MlaValues,
    ::testing::Values(setting_of({1, 17, 128, 129, 300}, 1, 16, 2), setting_of({127, 40}, 2, 32, 2),
                      setting_of({126, 40}, 3, 32, 2), setting_of({200}, 1, 128, 1),
                      setting_of({700}, 1, 16, 4), setting_of({500, 261}, 2, 48, 3),
                      setting_of({500, 261}, 2, 128, 3), setting_of({100, 90, 128, 1, 60}, 1, 112, 1),
                      setting_of({900, 333}, 1, 80, 1), setting_of({1, 1500, 1, 129}, 2, 16, 4),
                      setting_of({1, 1, 700}, 1, 32, 3)));

TEST(Mla, AShareOfTheTokensGoesToEveryCore) {
  EXPECT_EQ(operators::even_splits(24, 24, 32), 1u);
  EXPECT_EQ(operators::even_splits(96, 24, 32), 1u);
  EXPECT_EQ(operators::even_splits(1, 24, 32), 24u);
  EXPECT_EQ(operators::even_splits(1, 24, 3), 3u);
  EXPECT_EQ(operators::even_splits(25, 24, 1), 1u);
  // A part costs a tenth of a KV block.
  const auto splits = [](std::vector<std::uint32_t> kv_blocks, std::uint32_t blocks) {
    return operators::choose_splits(kv_blocks, blocks, {10, 1, 0});
  };
  // Two whole sequences of 24 KV blocks on one block are 480; 25 times 12 parts are 13 turns at most: 273.
  EXPECT_EQ(splits(std::vector<std::uint32_t>(25, 24), 24), 12u);
  // Parts of two KV blocks; as one has two with 31 as well, fewer are as good.
  EXPECT_EQ(splits({32, 1}, 32), 16u);
  EXPECT_EQ(splits({31, 1}, 32), 31u);
  // What it costs to write parts, and to combine them.
  const std::vector<std::uint32_t> two{2, 2};
  EXPECT_EQ(operators::choose_splits(two, 4, {10, 11, 0}), 1u);
  EXPECT_EQ(operators::choose_splits(two, 4, {10, 9, 0}), 2u);
  EXPECT_EQ(operators::choose_splits(two, 4, {10, 0, 6}), 1u);
  EXPECT_EQ(operators::choose_splits(two, 4, {10, 0, 4}), 2u);
  // L1 holds three KV blocks beside queries and probabilities, or two and a third.
  EXPECT_EQ(operators::choose_blocking(32).block_tokens, 128u);
  EXPECT_EQ(operators::choose_blocking(32).slots, 6u);
  EXPECT_EQ(operators::choose_blocking(128).block_tokens, 128u);
  EXPECT_EQ(operators::choose_blocking(128).slots, 7u);
}

// A long context beside slots that are all but empty takes about as long as the same tokens spread evenly,
// and what its parts cost. Its 65 KV blocks on one block of the launch, 5,120 cycles of the fixpipe each, are
// 180 us.
TEST(Mla, ALongSequenceAmongShortOnesIsSpreadOverAllBlocks) {
  const auto time = [](std::vector<std::uint32_t> kv_lens) {
    return run_mla(setting_of(std::move(kv_lens), 2, 128, 16)).attention.kernel_us;
  };
  const double even = time(std::vector<std::uint32_t>(8, 1025));
  const double uneven = time({8193, 1, 1, 1, 1, 1, 1, 1});
  EXPECT_LT(uneven, 1.5 * even) << even;
  EXPECT_GT(uneven, 0.9 * even) << even;
  EXPECT_LT(uneven, 0.5 * 65 * 5120 / 1850.0);
}

// 32 heads: a core reads HBM at 32 B a cycle and little else; long enough that ends do not matter.
TEST(Mla, AMemoryBoundShapeReachesThePublishedBandwidth) {
  MlaSetting setting;
  setting.kv_lens.assign(24, 24576);
  setting.heads = 32;
  const AttentionReading reading = run_mla(setting).attention;
  EXPECT_NEAR(reading.kv_bytes / (reading.kernel_us * 1e3) / 1346, 1.0, 0.05) << reading.kernel_us;
}

// 128 heads: about the ridge. The fixpipe takes 5,120 cycles a KV block of 128 tokens, the matrix unit 4,480.
TEST(Mla, AllHeadsKeepTheMatrixUnitBusyForMoreThanHalfOfTheTime) {
  MlaSetting setting;
  setting.kv_lens.assign(24, 8192);
  const AttentionReading reading = run_mla(setting).attention;
  const double utilisation = reading.operations / (reading.kernel_us * 1e-6) / 376e12;
  EXPECT_GT(utilisation, 0.5) << reading.kernel_us;
  EXPECT_LT(utilisation, 0.967 * 4352 / 5120) << reading.kernel_us;  // 1.85 of 1.91 GHz
}

FfnSetting ffn_of(std::vector<std::uint32_t> rows, std::uint32_t hidden, std::uint32_t width, int blocks,
                  bool bf16 = false, bool int8_rows = false) {
  FfnSetting setting;
  setting.expert_rows = std::move(rows);
  setting.hidden = hidden;
  setting.width = width;
  setting.bf16 = bf16;
  setting.int8_rows = int8_rows;
  setting.blocks = blocks;
  return setting;
}

class FfnValues : public ::testing::TestWithParam<FfnSetting> {};

TEST_P(FfnValues, AreWithinTheirBoundAndTimesDoNotDependOnThem) {
  FfnSetting setting = GetParam();
  setting.full = true;
  const CubeReading full = run_ffn(setting);
  EXPECT_TRUE(full.correct && *full.correct) << full.first_difference;
  setting.full = false;
  const CubeReading control = run_ffn(setting);
  EXPECT_EQ(full.kernel_us, control.kernel_us);
}

INSTANTIATE_TEST_SUITE_P(Ragged, FfnValues,
                         ::testing::Values(ffn_of({1}, 256, 64, 2), ffn_of({17, 0, 1, 70}, 448, 192, 3),
                                           ffn_of({0}, 128, 64, 2), ffn_of({130}, 320, 256, 24),
                                           ffn_of({1}, 256, 64, 2, true),
                                           ffn_of({17, 0, 1, 70}, 448, 192, 3, true),
                                           ffn_of({0}, 128, 64, 2, true), ffn_of({130}, 320, 256, 24, true),
                                           ffn_of({17, 0, 1, 70}, 448, 192, 3, true, true)));

}  // namespace
}  // namespace cm384::testing::attention_test
