// What takes minutes: every token at full size, and dispatch and combine of EP256 and of the whole supernode.
#include <gtest/gtest.h>

#include "system/machine/faults.h"
#include "system/machine/supernode.h"
#include "testbenches/runs/machine_run.h"

namespace cm384::testing::full_size_test {
namespace {

using studies::DispatchCase;
using studies::DispatchReading;

DispatchCase full_size(int ranks) {
  DispatchCase setting = small_dispatch(ranks, 128, 7168, 48);
  setting.full = true;
  return setting;
}

TEST(FullSize, EveryTokenArrives) {
  for (const int ranks : {60, 64}) {
    for (const std::string& routing :
         {std::string("uniform"), std::string("zipf:1.2"), "trace:" + sample_trace()}) {
      DispatchCase setting = full_size(ranks);
      setting.routing = routing;
      const DispatchReading reading = run_dispatch(setting);
      EXPECT_TRUE(*reading.correct) << ranks << " ranks, " << routing << ": " << reading.first_difference;
    }
  }
}

// A chip and a link of sub-plane 3 at 60 us, under the first of 64 ranks' two dispatches.
TEST(FullSize, EveryTokenArrivesOverAChipThatBreaks) {
  DispatchCase setting = full_size(64);
  setting.placement = "strided";
  const DispatchReading whole = run_dispatch(setting);
  setting.prepare = [](supernode::Supernode& machine) {
    supernode::Faults faults(machine);
    faults.attach(supernode::parse_fault("plane=3,node=0,kind=down,at=60us"));
    faults.apply_breaks();
  };
  studies::SimulatorCounts counts, threaded;
  const DispatchReading broken = run_dispatch(setting, {}, 1, &counts);
  EXPECT_TRUE(*broken.correct) << broken.first_difference;
  EXPECT_EQ(broken.digest, whole.digest);
  EXPECT_GT(counts.lost, 10u);
  EXPECT_EQ(counts.resent, counts.lost);
  EXPECT_GT(broken.task_us.mean, whole.task_us.mean);
  EXPECT_EQ(times_differ(broken, run_dispatch(setting, {}, 1, &threaded, 2)), "");
  EXPECT_EQ(threaded.lost, counts.lost);
}

TEST(FullSize, EveryTokenArrivesOfTheWholeRecording) {
  if (full_trace().empty()) GTEST_SKIP() << "../shared/traces is not there; the repository has a part of it";
  for (const bool drop_repeats : {false, true}) {
    DispatchCase setting = full_size(60);
    setting.routing = "trace:" + full_trace();
    setting.drop_repeats = drop_repeats;
    const DispatchReading reading = run_dispatch(setting);
    EXPECT_TRUE(*reading.correct) << reading.first_difference;
  }
}

TEST(FullSize, CombinedSumsEqualTheReference) {
  for (const std::string& routing : {std::string("uniform"), std::string("zipf:1.2"),
                                     "trace:" + sample_trace(), "trace:" + full_trace()}) {
    if (routing == "trace:") continue;  // the whole recording is not beside the checkout
    for (const char* completion : {"flag", "atomic"}) {
      studies::CombineCase setting = small_combine(60, 128, 7168, 48);
      setting.full = true;
      setting.routing = routing;
      setting.completion = completion;
      const studies::DispatchReading reading = run_combine(setting).combine;
      EXPECT_TRUE(*reading.correct) << routing << ", " << completion << ": " << reading.first_difference;
    }
  }
}

// A layer of 64 ranks, dispatch to combined sums, with an expert of the published size on each: 3 GB of
// weights.
TEST(FullSize, ALayersSumsEqualTheReference) {
  studies::MoeCase setting;
  static_cast<studies::CombineCase&>(setting) = small_combine(64, 8, 7168, 48);
  setting.experts = 64;
  setting.expert_network = true;
  setting.expert_cores = 8;
  setting.full = true;
  const studies::MoeReading reading = run_moe(setting);
  EXPECT_TRUE(*reading.correct) << reading.first_difference;
}

// Half the hidden size: what 320 ranks hold at full size takes 12 GB.
TEST(FullSize, EveryTokenArrivesAtTheDeploymentOf320Ranks) {
  DispatchCase setting = full_size(320);
  setting.hidden = 1024;
  setting.cores = 24;
  const DispatchReading full = run_dispatch(setting);
  EXPECT_TRUE(*full.correct) << full.first_difference;
  setting.full = false;
  const DispatchReading control = run_dispatch(setting);
  ASSERT_EQ(full.tasks.size(), control.tasks.size());
  for (std::size_t i = 0; i < full.tasks.size(); ++i)
    EXPECT_EQ(full.tasks[i].task_end.ps, control.tasks[i].task_end.ps) << "rank " << i;
}

TEST(FullSize, DispatchAndCombineOf256Ranks) {
  studies::CombineCase setting = small_combine(256, 128, 7168, 48);
  setting.warmup = 1;
  const studies::CombineReading reading = run_combine(setting);
  EXPECT_NEAR(reading.dispatch.task_us.mean / 152.0, 1.0, 0.10) << "[P] table 7";
  EXPECT_NEAR(reading.combine.task_us.mean / 149.0, 1.0, 0.10) << "[P] table 7";
}

TEST(FullSize, ControlReachesTheWholeSupernode) {
  DispatchCase setting = full_size(768);
  setting.full = false;
  const DispatchReading reading = run_dispatch(setting);
  ASSERT_EQ(reading.tasks.size(), 768u);
  DispatchCase fewer = full_size(64);
  fewer.full = false;
  EXPECT_GT(reading.task_us.mean, run_dispatch(fewer).task_us.mean) << "more peers take longer";
}

}  // namespace
}  // namespace cm384::testing::full_size_test
