// The flows of a layer's token distribution.
#include <gtest/gtest.h>

#include <numeric>

#include "testbenches/system/machine_run.h"

namespace cm384::testing {
namespace {

using studies::MoeCase;
using studies::MoePhase;
using studies::MoeReading;

MoeCase small_moe(int ranks) {
  MoeCase setting;
  static_cast<studies::CombineCase&>(setting) = small_combine(ranks, 12, 512, 16);
  return setting;
}

double sum_of_phases(const MoeReading& reading) {
  return std::accumulate(reading.phases.begin(), reading.phases.end(), 0.0,
                         [](double sum, const MoePhase& phase) { return sum + phase.mean_us; });
}

TEST(FusedFlow, DeliversAndSumsInBothPayloadModesAtTheSameTimes) {
  for (const std::string& routing :
       {std::string("uniform"), std::string("zipf:1.2"), "trace:" + sample_trace()}) {
    MoeCase setting = small_moe(20);
    setting.routing = routing;
    setting.iterations = 3;
    setting.start_skew = 20_us;
    setting.full = true;
    const MoeReading full = run_moe(setting);
    EXPECT_TRUE(*full.correct) << routing << ": " << full.first_difference;
    setting.full = false;
    const MoeReading control = run_moe(setting);
    EXPECT_FALSE(control.correct.has_value());
    EXPECT_EQ(full.ends.size(), 60u);
    EXPECT_TRUE(full.ends == control.ends) << routing;
  }
}

TEST(FusedFlow, IsDispatchAndCombineAfterEachOther) {
  MoeCase setting = small_moe(8);
  const MoeReading reading = run_moe(setting);
  EXPECT_NEAR(sum_of_phases(reading), reading.latency_us.mean, 1e-6);
  const studies::CombineReading apart = run_combine(setting);
  EXPECT_NEAR(reading.latency_us.mean / (apart.dispatch.task_us.mean + apart.combine.task_us.mean), 1.0,
              0.05);
}

TEST(FusedFlow, ExpertsTakeTheirTime) {
  MoeCase setting = small_moe(8);
  const double without = run_moe(setting).latency_us.mean;
  setting.expert_time = 40_us;
  const double with = run_moe(setting).latency_us.mean;
  setting.expert_time = 140_us;
  EXPECT_NEAR(run_moe(setting).latency_us.mean - with, 100.0, 0.1);
  EXPECT_GT(with, without + 40);
}

}  // namespace
}  // namespace cm384::testing
