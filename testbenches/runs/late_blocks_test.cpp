// Launches of groups whose blocks begin long after each other: a cross-core flag that is set for a block on
// its way is kept for it, and for that launch alone; a flag that nobody sets is still a hang.
#include <gmock/gmock.h>

#include <string>

#include "base/text/error.h"
#include "system/host/runtime.h"
#include "testbenches/runs/kernels/flag_of_a_group.h"
#include "testbenches/runs/machine_run.h"

namespace cm384::testing::late_blocks_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using namespace cm384::literals;

// The kernel `flag_of_a_group` on groups of one die.
class Groups {
 public:
  explicit Groups(const Changes& changes, Time patience = 5_ms)
      : machine_(hw::load_machine("cloudmatrix384", changes)), supernode_(machine_, options(patience)) {}

  // Launches follow one another.
  host::LaunchHandle launch(std::vector<std::uint16_t> groups, const cm384_flag_of_a_group& given) {
    const std::uint64_t block = runtime_.allocate(0, sizeof given);
    runtime_.put(block, given);
    return runtime_.launch(0, program_, block, std::move(groups), 1_us, npu::KernelType::mix);
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
  // From its first instruction to its last.
  Time length(host::LaunchHandle launch) const {
    const npu::LaunchRecord& record = runtime_.record(launch);
    return record.last_retired - record.first_instruction;
  }
  Time ended() const { return supernode_.earliest(); }

 private:
  static supernode::SupernodeOptions options(Time patience) {
    supernode::SupernodeOptions made;
    made.dies = {0};
    made.patience = patience;
    return made;
  }

  hw::Machine machine_;
  supernode::Supernode supernode_;
  host::Runtime runtime_{supernode_};
  std::shared_ptr<npu::Program> program_ =
      runtime_.load(npu::ElfImage::read(CM384_KERNELS "flag_of_a_group.elf"));
};

// Each AIV finds both sets when it begins, though its AIC has ended by then: the last of six blocks begins
// five intervals after the first and waits for nothing.
TEST(LateBlocks, FindTheFlagsThatWereSetForThem) {
  Groups machine({"scheduler.block_interval=5us"});
  const host::LaunchHandle launch = machine.launch({0, 7}, {.meet = 0, .sets = 2, .waits = 2});
  EXPECT_EQ(machine.run(), "");
  EXPECT_GE(machine.length(launch), 25_us);
  EXPECT_LE(machine.length(launch), 26_us);
}

// No more of them than were set.
TEST(LateBlocks, HangWhereAFlagIsMissing) {
  for (const std::uint64_t sets : {0u, 1u}) {
    Groups machine({"scheduler.block_interval=5us"});
    machine.launch({0, 7}, {.meet = 0, .sets = sets, .waits = 2});
    EXPECT_THAT(machine.run(), AllOf(HasSubstr("hangs at"), HasSubstr("S waits for cross-core flag 3"),
                                     HasSubstr("die 0 core 0"), HasSubstr("die 0 core 15")))
        << sets;
    EXPECT_LE(machine.ended(), 10_ms);
  }
}

// A set takes 50 us to its AIVs, by when its launch has ended and the next one runs on the same cores: that
// waits for its own set, whether the block it was meant for had begun or not.
TEST(LateBlocks, DoNotFindAFlagOfALaunchThatEnded) {
  for (const char* interval : {"scheduler.block_interval=20ns", "scheduler.block_interval=5us"}) {
    const Changes slow{interval, "die.cross_core_flag_latency=50us"};
    Groups machine(slow);
    const host::LaunchHandle first = machine.launch({0}, {.meet = 0, .sets = 1, .waits = 0});
    const host::LaunchHandle second = machine.launch({0}, {.meet = 0, .sets = 1, .waits = 1});
    EXPECT_EQ(machine.run(), "") << interval;
    EXPECT_LT(machine.length(first), 20_us) << interval;
    EXPECT_GE(machine.length(second), 50_us) << interval;
    Groups without(slow);
    without.launch({0}, {.meet = 0, .sets = 1, .waits = 0});
    without.launch({0}, {.meet = 0, .sets = 0, .waits = 1});
    EXPECT_THAT(without.run(), HasSubstr("S waits for cross-core flag 3")) << interval;
  }
}

// All blocks have been given a core, one is still on its way to it for longer than the patience: who waits
// for it is not stuck.
TEST(LateBlocks, AreWaitedForUntilTheyBegin) {
  const Changes slow{"scheduler.block_interval=100us", "scheduler.block_head=100us"};
  Groups machine(slow, 50_us);
  machine.launch({0}, {.meet = 1, .sets = 1, .waits = 1});
  EXPECT_EQ(machine.run(), "");
}

// Operators whose AICs and AIVs hand each other pieces of work.
TEST(LateBlocks, OperatorsOfGroupsGiveTheSameValues) {
  const Changes slow{"scheduler.block_interval=5us"};
  studies::GemmSetting gemm;
  gemm.group_rows = {70, 200};
  gemm.n = 320;
  gemm.k = 700;
  gemm.blocks = 3;
  gemm.full = true;
  const studies::GemmReading product = run_gemm(gemm, slow);
  EXPECT_TRUE(product.correct.value_or(false)) << product.first_difference;
  studies::FfnSetting ffn;
  ffn.hidden = 256;
  ffn.width = 128;
  ffn.expert_rows = {5, 40};
  ffn.blocks = 3;
  ffn.full = true;
  const studies::CubeReading network = run_ffn(ffn, slow);
  EXPECT_TRUE(network.correct.value_or(false)) << network.first_difference;
  studies::MlaSetting mla;
  mla.kv_lens = {500, 261};
  mla.queries = 2;
  mla.heads = 48;
  mla.blocks = 3;
  mla.full = true;
  const studies::MlaReading attention = run_mla(mla, slow);
  EXPECT_TRUE(attention.attention.correct.value_or(false)) << attention.attention.first_difference;
}

}  // namespace
}  // namespace cm384::testing::late_blocks_test
