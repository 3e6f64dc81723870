// Grouped GEMM on a die: values of ragged groups in both types and layouts of B, the same times in both
// payload modes, refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/error.h"
#include "testbenches/system/machine_run.h"

namespace cm384::testing {
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

// A shape of the published kind, nine tiles a core: bound by MTE2, which L2 feeds.
TEST(Gemm, ALargeShapeKeepsTheMatrixUnitsBusy) {
  GemmSetting setting;
  setting.group_rows = {128 * 24};
  setting.n = 152 * 9;
  setting.k = 4096;
  const GemmReading reading = run_gemm(setting);
  const double ideal_us = reading.operations / 752e12 * 1e6;
  EXPECT_GT(ideal_us / reading.kernel_us, 0.55) << reading.kernel_us;
  EXPECT_LT(ideal_us / reading.kernel_us, 0.92) << reading.kernel_us;  // 727/752 x 9.5/10
}

}  // namespace
}  // namespace cm384::testing
