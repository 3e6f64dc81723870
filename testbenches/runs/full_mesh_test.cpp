// Dispatch with the flags inside the rows' blocks: the same outputs as with flags after a barrier, in both
// payload modes at the same times, and combine after it.
#include <gtest/gtest.h>

#include <tuple>

#include "testbenches/runs/machine_run.h"

namespace cm384::testing::full_mesh_test {
namespace {

using studies::CombineCase;
using studies::CombineReading;

void expect_rows_and_sums(CombineCase setting) {
  setting.full_mesh = true;
  setting.full = true;
  const CombineReading full = run_combine(setting);
  EXPECT_TRUE(*full.dispatch.correct) << setting.routing << ": " << full.dispatch.first_difference;
  EXPECT_TRUE(*full.combine.correct) << setting.routing << ": " << full.combine.first_difference;
  setting.full = false;
  const CombineReading control = run_combine(setting);
  EXPECT_EQ(times_differ(full.dispatch, control.dispatch), "") << setting.routing;
  EXPECT_EQ(times_differ(full.combine, control.combine), "") << setting.routing;
}

TEST(FullMesh, DeliversUniformRoutingThreeTimesWithSkew) {
  CombineCase setting = small_combine(8, 16, 512, 16);
  setting.iterations = 3;  // the third call uses the half of the windows that the first has left
  setting.start_skew = 10_us;
  setting.check_hazards = "on";
  expect_rows_and_sums(setting);
}

TEST(FullMesh, DeliversSkewedAndRecordedRouting) {
  for (const std::string& routing : {std::string("zipf:1.2"), "trace:" + sample_trace()}) {
    CombineCase setting = small_combine(20, 12, 512, 16);
    setting.routing = routing;
    expect_rows_and_sums(setting);
  }
}

// Experts that blocks do not share evenly, shared experts, packets of two blocks and more, one block alone.
TEST(FullMesh, DeliversAtOddSizes) {
  for (const auto& [batch, hidden, cores] :
       {std::tuple{1, 32, 1}, std::tuple{5, 448, 3}, std::tuple{7, 2080, 48}}) {
    CombineCase setting = small_combine(8, batch, hidden, cores);
    setting.top_k = 3;
    setting.experts = 17;
    setting.shared_copies = 2;
    setting.check_hazards = "on";
    expect_rows_and_sums(setting);
  }
}

// No barrier between rows and flags, and two rows of a block under way: less time where all are neighbours.
TEST(FullMesh, IsFasterOnEightRanks) {
  studies::DispatchCase setting = small_dispatch(8, 128, 7168, 48);
  const double status = run_dispatch(setting).task_us.mean;
  setting.full_mesh = true;
  EXPECT_LT(run_dispatch(setting).task_us.mean, status);
}

}  // namespace
}  // namespace cm384::testing::full_mesh_test
