// A machine that hangs is found, whatever else is still to come; one that only waits for what is to come is
// left alone.
#include <gmock/gmock.h>

#include <string>

#include "base/text/error.h"
#include "firmware/abi/kernel.h"
#include "system/host/runtime.h"
#include "testbenches/runs/machine_run.h"

namespace cm384::testing::hang_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using namespace cm384::literals;

constexpr Time kPatience = 5_ms;

// Kernels on dies of one machine, each launched at a time of its own.
class Launches {
 public:
  Launches() : supernode_(machine_, options()) {}

  // `kernel`: of testbenches/runs/kernels. It is given memory of the first die, `bytes` of it.
  void launch(const std::string& kernel, int die, Time at, std::uint64_t bytes = 4096, int cores = 4) {
    cm384_kernel arguments{};
    arguments.scratch = scratch_;
    arguments.scratch_bytes = bytes;
    const std::uint64_t block = runtime_.allocate(die, sizeof arguments);
    runtime_.put(block, arguments);
    const auto program = runtime_.load(npu::ElfImage::read(CM384_KERNELS + kernel + ".elf"));
    runtime_.launch(die, program, block, runtime_.first_cores(cores), at);
  }
  // How the run ends: "" when all launches have finished.
  std::string run() {
    try {
      runtime_.wait();
    } catch (const MachineError& error) {
      return error.what();
    }
    return {};
  }
  host::Runtime& runtime() { return runtime_; }
  Time ended() const { return supernode_.earliest(); }

 private:
  static supernode::SupernodeOptions options() {
    supernode::SupernodeOptions made;
    made.dies = {0, 2};
    made.patience = kPatience;
    return made;
  }

  hw::Machine machine_ = hw::load_machine("cloudmatrix384");
  supernode::Supernode supernode_;
  host::Runtime runtime_{supernode_};
  std::uint64_t scratch_ = runtime_.allocate(0, 4096);
};

class Hang : public ::testing::TestWithParam<const char*> {};

TEST_P(Hang, IsFoundThoughALaunchIsFarInTheFuture) {
  Launches machine;
  machine.launch(GetParam(), 0, 1_us);
  machine.launch("waits_for_another", 2, 1_s, 0, 1);
  EXPECT_THAT(machine.run(), AllOf(HasSubstr("hangs at"), HasSubstr("die 0 core")));
  EXPECT_LE(machine.ended(), kPatience + kPatience);
}

INSTANTIATE_TEST_SUITE_P(Kernels, Hang,
                         ::testing::Values("waits_for_a_flag", "misses_the_barrier", "polls_for_ever",
                                           "spins_for_ever"));

// A kernel that calls itself for ever fills its stack, which takes longer than the patience: that is what is
// told, with where it calls, and not a hang. So is a frame that is larger than the stack's memory.
TEST(Stacks, ThatRunOutAreToldAsThat) {
  Launches deep;
  deep.launch("recurses", 0, 1_us, 4096, 1);
  EXPECT_THAT(deep.run(), AllOf(HasSubstr("store below the stack at recurses.elf: CallItself"),
                                HasSubstr("the stack has run out of its memory"), Not(HasSubstr("hangs"))));
  EXPECT_GT(deep.ended(), kPatience);
  Launches wide;
  wide.launch("recurses", 0, 1_us, 0, 1);
  EXPECT_THAT(wide.run(), AllOf(HasSubstr("store outside memory at recurses.elf: TooLarge"),
                                HasSubstr("is outside of the stack's memory, which is below 0x81000000")));
}

// Others go on all the while: what has stopped for good is found all the same.
TEST(Hangs, AreFoundWhileOthersMakeProgress) {
  Launches machine;
  machine.launch("waits_for_a_flag", 0, 1_us);
  for (int n = 1; n < 200; ++n) machine.launch("waits_for_another", 2, 1_ms * n, 0, 1);
  EXPECT_THAT(machine.run(), HasSubstr("WaitForNobody"));
  EXPECT_LE(machine.ended(), kPatience * 3);
}

// One that polls may be served by a launch that is still to come, however late.
TEST(Hangs, AWaitThatALateLaunchEndsIsNone) {
  Launches machine;
  machine.launch("waits_for_another", 0, 1_us);
  machine.launch("waits_for_another", 2, 1_s, 0, 1);
  EXPECT_EQ(machine.run(), "");
  EXPECT_GE(machine.ended(), 1_s);
}

TEST(Hangs, AWaitThatNothingEndsIsFoundAfterAllLaunches) {
  Launches machine;
  machine.launch("waits_for_another", 0, 1_us);
  machine.launch("gives_nothing", 2, 1_s, 0, 1);
  EXPECT_THAT(machine.run(), AllOf(HasSubstr("no event is pending"), HasSubstr("a write to memory")));
}

// What a die's memory cannot count is refused, not wrapped around.
TEST(Hangs, ARunEndsBeforeTimeOverflows) {
  Launches machine;
  machine.launch("gives_nothing", 0, 200_s);
  EXPECT_THAT(machine.run(), HasSubstr("simulated time would pass 140 s"));
}

// The host's threads may compute for longer than the patience.
TEST(Hangs, AHostThatComputesIsNone) {
  Launches machine;
  for (const int die : {0, 2}) machine.runtime().host_compute(die, kPatience * 10);
  machine.runtime().host_compute(0, kPatience * 10);
  EXPECT_EQ(machine.run(), "");
  EXPECT_GE(machine.ended(), kPatience * 10);
}

// Ranks that start later than the patience, waited for by real polling and without.
TEST(Hangs, SkewedStartsAreNone) {
  studies::DispatchCase setting = small_dispatch(8, 2, 256, 4);
  setting.full = true;
  setting.start_skew = kPatience * 4;
  EXPECT_TRUE(*run_dispatch(setting).correct);
  setting.start_skew = 6_ms;
  setting.real_polling = true;
  EXPECT_TRUE(*run_dispatch(setting).correct);
}

}  // namespace
}  // namespace cm384::testing::hang_test
