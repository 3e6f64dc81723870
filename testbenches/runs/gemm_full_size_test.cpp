// The published GEMM at its size: some ten seconds.
#include <gtest/gtest.h>

#include "testbenches/runs/machine_run.h"
#include "workloads/frame/validation.h"

namespace cm384::testing::gemm_full_size_test {
namespace {

TEST(GemmFullSize, UtilisationAndTrafficOfTable10) {
  studies::GemmSetting setting;
  setting.group_rows.assign(4, 7168);
  setting.tile_m = 128;
  setting.tile_n = 152;
  const studies::GemmReading reading = run_gemm(setting);
  const double utilisation = reading.operations / (reading.task_us * 1e-6) / 752e12;
  EXPECT_NEAR(utilisation, 0.794, 0.04) << "[P] table 10";
  EXPECT_NEAR(reading.hbm_bytes / (reading.task_us * 1e3) / 260, 1.0, 0.25) << "[P] table 10";
}

}  // namespace
}  // namespace cm384::testing::gemm_full_size_test
