// A dispatch over eight ranks with one L1 chip as RTL: every byte as the host's reference has it, in the time
// the model alone takes.
#include "workloads/moe/dispatch.h"

#include <gtest/gtest.h>

#include "base/text/error.h"

namespace cm384::studies::dispatch_test {
namespace {

class Silence final : public Progress {
  void update(double, Time, std::uint64_t) override {}
};

DispatchReading dispatch(const std::vector<std::string>& chips, SimulatorCounts& counts) {
  const hw::Machine machine = hw::load_machine("cloudmatrix384");
  Silence silence;
  const volatile std::sig_atomic_t never = 0;
  DispatchCase setting;
  setting.ranks = 8;
  setting.batch = 32;
  setting.warmup = 0;
  setting.full = true;
  StudyContext context{machine, 1, silence, never};
  context.fabric.rtl = chips;
  return measure_dispatch(context, setting, counts);
}

TEST(Dispatch, WithAnL1ChipAsRtl) {
  SimulatorCounts model, rtl;
  const DispatchReading without = dispatch({}, model);
  const DispatchReading with = dispatch({"l1:0.2"}, rtl);
  EXPECT_TRUE(with.correct.value_or(false)) << with.first_difference;
  EXPECT_GT(rtl.rtl_packets, 1'000u);
  EXPECT_EQ(model.rtl_packets, 0u);
  EXPECT_NEAR(with.task_us.mean / without.task_us.mean, 1, 0.02);
}

TEST(Dispatch, RefusesAChipThatIsNotThere) {
  SimulatorCounts counts;
  for (const char* chip : {"l1:48.0", "l1:0.7", "l2:0.16", "l2:7.0", "l3:0.0", "l1:0", "l1:.1", "l1:0.x", ""})
    EXPECT_THROW(dispatch({chip}, counts), InputError) << chip;
  EXPECT_THROW(dispatch({"l1:0.1", "l1:0.1"}, counts), InputError);
}

}  // namespace
}  // namespace cm384::studies::dispatch_test
