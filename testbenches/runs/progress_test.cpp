// What the progress display is told: a fraction that grows with the work, in the first round too, whose time
// is only estimated.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <string>
#include <vector>

#include "testbenches/runs/machine_run.h"
#include "workloads/frame/published.h"
#include "workloads/kernels/gemm.h"
#include "workloads/studies.h"

namespace cm384::testing::progress_test {
namespace {

struct Told final : studies::Progress {
  void update(double fraction, Time simulated, std::uint64_t) override {
    fractions.push_back(fraction);
    times.push_back(simulated);
  }
  // Of the work done when half of the simulated time had passed.
  double at_half() const {
    for (std::size_t i = 0; i < times.size(); ++i)
      if (times[i].ps * 2 >= times.back().ps) return fractions[i];
    return 0;
  }
  std::vector<double> fractions;
  std::vector<Time> times;
};

template <class Measure>
Told told_by(Measure&& measure) {
  const volatile std::sig_atomic_t never = 0;
  const hw::Machine machine = hw::load_machine(std::string(hw::kDefaultMachine));
  Told told;
  studies::SimulatorCounts counts;
  measure(studies::StudyContext{machine, 1, told, never}, counts);
  return told;
}

void expect_growth(const Told& told) {
  ASSERT_GT(told.fractions.size(), 8u);
  EXPECT_LT(told.fractions.front(), 0.2);
  EXPECT_LE(told.fractions.back(), 1.0);
  EXPECT_GT(told.fractions.back(), 0.7);
  for (std::size_t i = 1; i < told.fractions.size(); ++i) {
    EXPECT_GE(told.fractions[i], told.fractions[i - 1]) << i;
  }
  EXPECT_NEAR(told.at_half(), 0.5, 0.15);
}

TEST(Progress, GrowsWithinTheOnlyRoundOfADispatch) {
  expect_growth(told_by([](const studies::StudyContext& context, studies::SimulatorCounts& counts) {
    studies::DispatchCase setting = small_dispatch(8, 128, 7168, 48);
    setting.warmup = 0;
    studies::measure_dispatch(context, setting, counts);
  }));
}

TEST(Progress, GrowsOverTheRoundsOfACombine) {
  expect_growth(told_by([](const studies::StudyContext& context, studies::SimulatorCounts& counts) {
    studies::CombineCase setting = small_combine(8, 128, 7168, 48);
    setting.warmup = 1;
    studies::measure_combine(context, setting, counts);
  }));
}

TEST(Progress, GrowsWithinAGemm) {
  expect_growth(told_by([](const studies::StudyContext& context, studies::SimulatorCounts& counts) {
    studies::GemmSetting setting;
    setting.group_rows = {2048, 2048};
    setting.n = 2048;
    setting.k = 2048;
    studies::measure_gemm(context, setting, counts);
  }));
}

// Studies without a machine: a row of theirs may take minutes.
void expect_growth_of(const char* name, const std::vector<std::string>& arguments) {
  const studies::Study& study = *std::ranges::find(studies::registry(), name, &studies::Study::name);
  const Told told = told_by([&](const studies::StudyContext& context, studies::SimulatorCounts&) {
    studies::StudySettings(study, arguments).run(context);
  });
  ASSERT_GT(told.fractions.size(), 8u);
  EXPECT_LT(told.fractions.front(), 0.2);
  EXPECT_DOUBLE_EQ(told.fractions.back(), 1);
  EXPECT_TRUE(std::ranges::is_sorted(told.fractions));
  double widest = 0;
  for (std::size_t i = 1; i < told.fractions.size(); ++i)
    widest = std::max(widest, told.fractions[i] - told.fractions[i - 1]);
  EXPECT_LT(widest, 0.3);
}

TEST(Progress, GrowsOverTheStepsOfABalance) {
  expect_growth_of("balance", {"--ranks", "8", "--tokens", "4", "--steps", "40", "--renew", "0,4"});
}

TEST(Progress, GrowsOverTheRequestsOfAService) {
  expect_growth_of("serve", {"--rate", "40", "--duration", "200s", "--seeds", "2"});
}

}  // namespace
}  // namespace cm384::testing::progress_test
