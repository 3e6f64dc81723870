// The flows of a layer's token distribution.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <tuple>

#include "base/text/error.h"
#include "testbenches/hw/refusal.h"
#include "testbenches/runs/machine_run.h"

namespace cm384::testing::moe_test {
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

// Of as many tokens as a rank may have: lists of pairs, windows and status entries are the longest.
TEST(FusedFlow, DeliversAndSums512TokensOfARank) {
  MoeCase setting = small_moe(3);
  setting.batch = 512;
  setting.top_k = 8;
  setting.experts = 24;
  setting.hidden = 64;
  setting.cores = 48;
  setting.full = true;
  for (const char* completion : {"flag", "atomic"}) {
    setting.completion = completion;
    const MoeReading reading = run_moe(setting);
    EXPECT_TRUE(*reading.correct) << completion << ": " << reading.first_difference;
  }
}

TEST(FusedFlow, RefusesTokensWhoseExpertsDoNotFitTheUBuffer) {
  MoeCase setting = small_moe(3);
  setting.batch = 512;
  setting.top_k = 16;
  setting.hidden = 16384;
  EXPECT_THAT(refusal([&] { run_moe(setting); }), ::testing::HasSubstr("batch 512, 3 ranks"));
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

TEST(BasicFlow, DeliversAndSumsInBothPayloadModesAtTheSameTimes) {
  for (const std::string& routing :
       {std::string("uniform"), std::string("zipf:1.2"), "trace:" + sample_trace()}) {
    MoeCase setting = small_moe(12);
    setting.flow = "basic";
    setting.routing = routing;
    setting.iterations = 2;
    setting.start_skew = 20_us;
    setting.expert_time = 10_us;
    setting.check_hazards = "on";
    setting.full = true;
    const MoeReading full = run_moe(setting);
    EXPECT_TRUE(*full.correct) << routing << ": " << full.first_difference;
    setting.full = false;
    const MoeReading control = run_moe(setting);
    EXPECT_EQ(full.ends.size(), 24u);
    EXPECT_TRUE(full.ends == control.ends) << routing;
  }
}

// Ranks without a row to send or to receive, experts of several copies, one core.
TEST(BasicFlow, DeliversAtOddSizes) {
  for (const auto& [ranks, experts, batch, hidden, cores] :
       {std::tuple{5, 17, 1, 32, 1}, std::tuple{9, 4, 5, 96, 3}, std::tuple{3, 64, 7, 2080, 48}}) {
    MoeCase setting = small_moe(ranks);
    setting.flow = "basic";
    setting.top_k = 3;
    setting.experts = experts;
    setting.batch = batch;
    setting.hidden = hidden;
    setting.cores = cores;
    setting.full = true;
    setting.check_hazards = "on";
    const MoeReading reading = run_moe(setting);
    EXPECT_TRUE(*reading.correct) << ranks << " ranks: " << reading.first_difference;
  }
}

TEST(BasicFlow, PhasesAddUpAndCostWhatTheHostCosts) {
  MoeCase setting = small_moe(8);
  const double fused = run_moe(setting).latency_us.mean;
  setting.flow = "basic";
  const MoeReading basic = run_moe(setting);
  EXPECT_NEAR(sum_of_phases(basic), basic.latency_us.mean, 1e-6);
  EXPECT_GT(basic.latency_us.mean, fused);
  // Three times from the host to the engine and back, and three meetings of the processes, at least.
  const double later = run_moe(setting, {"host.message_latency=15us"}).latency_us.mean;
  EXPECT_GE(later, basic.latency_us.mean + 3 * 10.0);
  // An AICPU submits copies of tokens with nothing under way; those of the counts and the results hide in
  // part behind the kernels before them. Nine entries of counts, eight of each other kind at most.
  const double dearer = run_moe(setting, {"aicpu.entry=3us"}).latency_us.mean - basic.latency_us.mean;
  EXPECT_GT(dearer, 8 * 2.0);
  EXPECT_LT(dearer, (9 + 8 + 8) * 2.0 + 0.5);
}

TEST(BasicFlow, RefusesASharedExpertOnRanksOfItsOwn) {
  MoeCase setting = small_moe(8);
  setting.flow = "basic";
  setting.shared_copies = 2;
  EXPECT_THROW(run_moe(setting), InputError);
}

}  // namespace
}  // namespace cm384::testing::moe_test
