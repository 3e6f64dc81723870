// Grouped GEMM on a die: values of ragged groups in both types and layouts of B, the same times in both
// payload modes, refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "base/text/error.h"
#include "testbenches/runs/machine_run.h"

namespace cm384::testing::gemm_test {
namespace {

using studies::GemmReading;
using studies::GemmSetting;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

GemmSetting setting_of(cm384_gemm_type type, std::vector<std::uint32_t> rows, std::uint32_t n,
                       std::uint32_t k, bool nz) {
  GemmSetting setting;
  setting.type = type;
  setting.group_rows = std::move(rows);
  setting.n = n;
  setting.k = k;
  setting.b_nz = nz;
  setting.full = true;
  return setting;
}

class GemmValues : public ::testing::TestWithParam<GemmSetting> {};

TEST_P(GemmValues, AreTheReferencesAndTimesDoNotDependOnThem) {
  GemmSetting setting = GetParam();
  const GemmReading full = run_gemm(setting);
  EXPECT_TRUE(full.correct && *full.correct) << full.first_difference;
  setting.full = false;
  const GemmReading control = run_gemm(setting);
  EXPECT_EQ(full.kernel_us, control.kernel_us);
  EXPECT_EQ(full.task_us, control.task_us);
  EXPECT_EQ(full.hbm_bytes, control.hbm_bytes);
}

INSTANTIATE_TEST_SUITE_P(Ragged, GemmValues,
                         ::testing::Values(setting_of(CM384_GEMM_INT8, {17, 0, 1, 300}, 200, 1184, true),
                                           setting_of(CM384_GEMM_INT8, {0, 129, 0}, 24, 33, false),
                                           setting_of(CM384_GEMM_INT8, {4095}, 168, 64, true),
                                           setting_of(CM384_GEMM_BF16, {1, 17, 0, 140}, 136, 600, true),
                                           setting_of(CM384_GEMM_BF16, {257}, 264, 48, false),
                                           setting_of(CM384_GEMM_BF16, {0}, 64, 64, true)));

// Signal to noise of INT8 by the largest of a crest factor, dB; of noises that add.
double of_crest(double crest) {
  return 20 * std::log10(127 * std::sqrt(12.0) / crest);
}
double added(double one, double other) {
  return -10 * std::log10(std::pow(10, -one / 10) + std::pow(10, -other / 10));
}

// What firmware makes of real numbers has the noise of the two roundings to INT8, to half a dB with those to
// BF16, and is right bit for bit as ever.
TEST(Gemm, DrawnInputsComeOutWithTheNoiseOfTheirCrestFactors) {
  for (const char* draw : {"normal", "outliers:7:20"}) {
    GemmSetting setting = setting_of(CM384_GEMM_INT8, {33, 7}, 72, 2048, true);
    setting.drawn = reference::parse_draw(draw);
    const GemmReading reading = run_gemm(setting);
    EXPECT_TRUE(reading.correct && *reading.correct) << reading.first_difference;
    ASSERT_EQ(reading.accuracy.size(), 1u);
    const reference::StageAccuracy& found = reading.accuracy.front();
    EXPECT_NEAR(*found.exact.snr_db(), added(of_crest(*found.crest), of_crest(*found.weights_crest)), 0.5);
    EXPECT_GT(*found.of_bf16.snr_db(), 50);
  }
  GemmSetting plain = setting_of(CM384_GEMM_BF16, {20}, 24, 512, true);
  plain.drawn.emplace();
  const reference::StageAccuracy found = run_gemm(plain).accuracy.front();
  EXPECT_NEAR(*found.exact.snr_db(), *found.of_bf16.snr_db(), 0.1);
  plain.drawn.reset();
  EXPECT_TRUE(run_gemm(plain).accuracy.empty());
}

// Noise relative to the values adds up along a network: that of the activations, with all before them, and
// that of the second weights.
TEST(Gemm, NoiseOfANetworkAddsUp) {
  studies::FfnSetting setting;
  setting.full = true;
  setting.expert_rows = {19, 30};
  setting.hidden = 1024;
  setting.width = 512;
  setting.drawn.emplace();
  const studies::CubeReading reading = run_ffn(setting);
  EXPECT_TRUE(reading.correct && *reading.correct) << reading.first_difference;
  ASSERT_EQ(reading.accuracy.size(), 3u);
  const auto& [first, between, last] =
      std::tie(reading.accuracy[0], reading.accuracy[1], reading.accuracy[2]);
  EXPECT_NEAR(*first.exact.snr_db(), added(of_crest(*first.crest), of_crest(*first.weights_crest)), 0.5);
  // silu(gate) x up has at least the relative noise of each factor, and its own rounding's.
  EXPECT_LT(*between.exact.snr_db(), added(*first.exact.snr_db(), of_crest(*between.crest)));
  EXPECT_GT(*between.exact.snr_db(), added(*first.exact.snr_db() - 6, of_crest(*between.crest)));
  EXPECT_NEAR(*last.exact.snr_db(), added(*between.exact.snr_db(), of_crest(*last.weights_crest)), 0.5);
}

TEST(Gemm, EveryTileGivesTheSameValues) {
  for (const auto& [m, n] : {std::pair{16u, 16u}, {128u, 152u}, {96u, 256u}, {256u, 128u}, {40u, 24u}}) {
    GemmSetting setting = setting_of(CM384_GEMM_INT8, {70, 200}, 320, 700, true);
    setting.tile_m = m;
    setting.tile_n = n;
    setting.blocks = 3;
    const GemmReading reading = run_gemm(setting);
    EXPECT_TRUE(*reading.correct) << m << "x" << n << ": " << reading.first_difference;
  }
}

TEST(Gemm, ATileThatDoesNotFitIsRefusedByTheNameOfItsBuffer) {
  const auto refuses = [](std::uint32_t m, std::uint32_t n, const char* text) {
    GemmSetting setting = setting_of(CM384_GEMM_INT8, {512}, 512, 512, true);
    setting.tile_m = m;
    setting.tile_n = n;
    EXPECT_THAT([&] { run_gemm(setting); }, ThrowsMessage<InputError>(HasSubstr(text)));
  };
  refuses(256, 256, "L0C would hold");
  refuses(512, 256, "L0C would hold");
  refuses(128, 100, "multiples of 8");
}

TEST(Gemm, EveryBufferThatATilingDoesNotFitIsNamed) {
  const std::vector<std::uint32_t> rows{512};
  const operators::GemmShape shape{rows, 512, 1024, CM384_GEMM_INT8, 24};
  const cm384_gemm_tiling sound = operators::tiling_of(shape, 128, 152);
  operators::check_tiling(sound, shape);
  const auto refuses = [&](auto change, const char* text) {
    cm384_gemm_tiling tiling = sound;
    change(tiling);
    EXPECT_THAT([&] { check_tiling(tiling, shape); }, ThrowsMessage<InputError>(HasSubstr(text)));
  };
  refuses([](auto& t) { t.l0_k = t.l1_k = 512; }, "half of L0A would hold 65536 B; allowed: 32768 B");
  refuses([](auto& t) { t.parts = t.places = 1, t.part_n = 160; }, "half of L0B would hold 40960 B");
  refuses([](auto& t) { t.places = 4; }, "L0C would hold 163840 B; allowed: 131072 B");
  refuses([](auto& t) { t.l1_buffers = 4; }, "L1 would hold 589824 B; allowed: 524288 B");
  refuses([](auto& t) { t.vector_rows = 120; }, "the UBuffer would hold");
  refuses([](auto& t) { t.vector_rows = 20; }, "multiples of 8");
  refuses([](auto& t) { t.places = 1; }, "a place in L0C for each part");
  refuses([](auto& t) { t.l0_k = 48; }, "multiples of 32 B");
}

// Of 128 rows or more it is 128x256, unless more than half of the blocks had no tile.
TEST(Gemm, TheBasicTileIsTakenWhereHalfOfTheBlocksHaveOne) {
  const auto tile = [](std::vector<std::uint32_t> rows, std::uint32_t n) {
    const cm384_gemm_tiling t = operators::basic_tiling({rows, n, 512, CM384_GEMM_BF16, 24});
    return std::pair(t.tile_m, t.tile_n);
  };
  const auto basic = std::pair(128u, 256u);
  EXPECT_EQ(tile({256}, 6 * 256), basic);
  EXPECT_NE(tile({256}, 5 * 256), basic);
  EXPECT_EQ(tile({128, 128}, 6 * 256), basic);
  EXPECT_EQ(tile({112}, 65536).first, 112u);
}

// What the tiling function takes is at most a twentieth slower than the fastest of a range of tiles.
TEST(Gemm, TheTilingFunctionFindsAFastTile) {
  for (const auto& [m, n, k, type] : {std::tuple{768u, 1536u, 1024u, CM384_GEMM_INT8},
                                      {96u, 4096u, 2048u, CM384_GEMM_BF16},
                                      {16u, 2048u, 4096u, CM384_GEMM_INT8}}) {
    GemmSetting setting = setting_of(type, {m}, n, k, true);
    setting.full = false;
    const double chosen = run_gemm(setting).kernel_us;
    setting.tile_m = std::min(m, 128u);
    for (const std::uint32_t columns : {32u, 64u, 96u, 128u, 160u, 192u, 256u}) {
      setting.tile_n = columns;
      EXPECT_LT(chosen, 1.05 * run_gemm(setting).kernel_us) << m << "x" << n << "x" << k << ", " << columns;
    }
  }
}

// A shape of the published kind, nine tiles per core: bound by MTE2, which L2 feeds.
TEST(Gemm, ALargeShapeKeepsTheMatrixUnitsBusy) {
  GemmSetting setting;
  setting.group_rows = {128 * 24};
  setting.n = 152 * 9;
  setting.k = 4096;
  setting.tile_m = 128;
  setting.tile_n = 152;
  const GemmReading reading = run_gemm(setting);
  const double ideal_us = reading.operations / 752e12 * 1e6;
  EXPECT_GT(ideal_us / reading.kernel_us, 0.55) << reading.kernel_us;
  EXPECT_LT(ideal_us / reading.kernel_us, 0.92) << reading.kernel_us;  // 727/752 x 9.5/10
}

}  // namespace
}  // namespace cm384::testing::gemm_test
