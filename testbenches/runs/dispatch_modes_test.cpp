// Payload mode control, elided polls and repeated runs: the same simulated machine, to the picosecond or
// within what their definition allows.
#include <gtest/gtest.h>

#include "system/machine/supernode.h"
#include "testbenches/runs/machine_run.h"

namespace cm384::testing::dispatch_modes_test {
namespace {

using studies::DispatchCase;
using studies::DispatchReading;

void expect_same_times(const DispatchReading& one, const DispatchReading& other, const std::string& what) {
  EXPECT_EQ(times_differ(one, other), "") << what;
}

void expect_control_equals_full(DispatchCase setting, const std::string& what) {
  setting.full = true;
  const DispatchReading full = run_dispatch(setting);
  EXPECT_TRUE(*full.correct) << full.first_difference;
  setting.full = false;
  const DispatchReading control = run_dispatch(setting);
  EXPECT_FALSE(control.correct.has_value());
  expect_same_times(full, control, what);
}

TEST(PayloadModes, SameTimesToThePicosecond) {
  DispatchCase uniform = small_dispatch(8, 16, 1024, 24);
  uniform.iterations = 3;
  expect_control_equals_full(uniform, "8 ranks, three times");
  DispatchCase skewed = small_dispatch(20, 12, 512, 16);
  skewed.routing = "zipf:1.2";
  skewed.start_skew = 5_us;
  expect_control_equals_full(skewed, "20 ranks, zipf, skewed starts");
  DispatchCase recorded = small_dispatch(60, 8, 512, 8);
  recorded.routing = "trace:" + sample_trace();
  expect_control_equals_full(recorded, "60 ranks, recorded");
  DispatchCase strided = small_dispatch(24, 8, 512, 16);
  strided.placement = "strided";
  strided.shared_copies = 4;
  expect_control_equals_full(strided, "24 ranks, strided, shared expert");
}

TEST(PayloadModes, SameTimesAtFullSizeOnEightRanks) {
  DispatchCase setting = small_dispatch(8, 128, 7168, 48);
  setting.check_hazards = "on";
  expect_control_equals_full(setting, "8 ranks, full size");
}

TEST(PayloadModes, ControlReachesTheWholeSupernode) {
  const DispatchReading reading = run_dispatch(small_dispatch(768, 1, 256, 4));
  ASSERT_EQ(reading.tasks.size(), 768u);
  for (const npu::LaunchRecord& task : reading.tasks) EXPECT_GT(task.task_end, task.task_start);
}

// Turns that are left out take the same time, but no request of theirs reaches the memory: what real polling
// asks of it more is what those turns read.
TEST(Polling, SkippedPollsCostTimeAndNoRequests) {
  for (const int ranks : {8, 20}) {
    DispatchCase setting = small_dispatch(ranks, 8, 1024, 24);
    setting.start_skew = 20_us;  // something to wait for
    studies::SimulatorCounts of_elided, of_real;
    const DispatchReading elided = run_dispatch(setting, {}, 1, &of_elided);
    setting.real_polling = true;
    const DispatchReading real = run_dispatch(setting, {}, 1, &of_real);
    const auto more =
        static_cast<double>(of_real.memory_requests) - static_cast<double>(of_elided.memory_requests);
    const auto skipped = static_cast<double>(elided.skipped_polls);
    EXPECT_GE(more, skipped) << ranks;  // a turn reads one line of 512 B or two
    EXPECT_LE(more, 2 * skipped) << ranks;
    EXPECT_NEAR(elided.kernel_us.mean / real.kernel_us.mean, 1.0, 0.01) << ranks;
    EXPECT_NEAR(elided.kernel_us.max / real.kernel_us.max, 1.0, 0.01) << ranks;
    EXPECT_EQ(real.skipped_polls, 0u);
    EXPECT_GT(elided.skipped_polls, 100u) << ranks;
  }
}

TEST(Hazards, AreCheckedAsAskedFor) {
  const auto checked = [](bool full, const std::string& asked) {
    DispatchCase setting = small_dispatch(2, 1, 256, 2);
    setting.full = full;
    setting.check_hazards = asked;
    bool on = false;
    setting.prepare = [&](supernode::Supernode& machine) {
      on = machine.die(1).cluster().core(0).aiv().checks_hazards();
    };
    run_dispatch(setting);
    return on;
  };
  EXPECT_EQ(DispatchCase{}.check_hazards, "auto");
  EXPECT_TRUE(checked(true, "auto"));
  EXPECT_FALSE(checked(false, "auto"));
  EXPECT_TRUE(checked(false, "on"));
  EXPECT_FALSE(checked(true, "off"));
}

TEST(Determinism, TwoRunsInOneProcessAreEqual) {
  DispatchCase setting = small_dispatch(20, 12, 512, 16);
  setting.routing = "zipf:1.2";
  setting.start_skew = 5_us;
  setting.iterations = 2;
  const DispatchReading first = run_dispatch(setting);
  run_dispatch(small_dispatch(8, 2, 256, 4));  // what ran in between leaves nothing behind
  expect_same_times(first, run_dispatch(setting), "again");
  const DispatchReading other = run_dispatch(setting, {}, 2);
  EXPECT_NE(first.tasks.front().task_end.ps, other.tasks.front().task_end.ps) << "the seed does nothing";
}

TEST(Determinism, TheOrderOfModulesDoesNotMatter) {
  DispatchCase setting = small_dispatch(6, 4, 512, 16);
  setting.placement = "0,3,2,16,17,40";
  const DispatchReading forward = run_dispatch(setting);
  setting.reverse_modules = true;
  expect_same_times(forward, run_dispatch(setting), "modules made in reverse order");
}

}  // namespace
}  // namespace cm384::testing::dispatch_modes_test
