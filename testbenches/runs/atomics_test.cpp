// Scalar units and global memory: atomics act on one memory for all cores of a die, and what a core stores is
// seen when it is complete.
#include <gtest/gtest.h>

#include <array>

#include "firmware/abi/kernel.h"
#include "npu_core/scalar/elf_image.h"
#include "system/host/runtime.h"
#include "testbenches/runs/machine_run.h"

namespace cm384::testing::atomics_test {
namespace {

// One launch of a kernel on die 0, with 4 KiB of scratch memory.
class Launch {
 public:
  explicit Launch(const std::vector<std::string>& changes = {})
      : machine(hw::load_machine("cloudmatrix384", changes)), supernode_(machine, only_die_0()) {
    arguments_.scratch = runtime.allocate(0, 4096);
    arguments_.scratch_bytes = 4096;
  }
  const npu::LaunchRecord& run(const std::string& image, int cores) {
    const std::uint64_t block = runtime.allocate(0, sizeof arguments_);
    runtime.put(block, arguments_);
    const auto program = runtime.load(npu::ElfImage::read(CM384_KERNELS + image));
    const auto launch =
        runtime.launch(0, program, block, runtime.first_cores(cores), runtime.earliest_start());
    EXPECT_TRUE(runtime.wait());
    return runtime.record(launch);
  }
  npu::Die& die() { return supernode_.die(0); }
  std::uint64_t scratch() const { return arguments_.scratch; }

  const hw::Machine machine;

 private:
  static supernode::SupernodeOptions only_die_0() {
    supernode::SupernodeOptions options;
    options.dies = {0};
    return options;
  }
  supernode::Supernode supernode_;
  cm384_kernel arguments_{};

 public:
  host::Runtime runtime{supernode_};
};

TEST(Atomics, NoneIsLost) {
  Launch launch;
  launch.runtime.put(launch.scratch(), std::uint64_t{1000});
  const npu::LaunchRecord& record = launch.run("adds_to_memory.elf", 48);
  EXPECT_EQ(launch.runtime.get<std::uint64_t>(launch.scratch(), 1).front(), 1000u + 100u * 48 * 49 / 2);
  EXPECT_EQ(launch.die().memory().statistics().atomics, 4800u);
  // One after another at the line: the adder, and the hold for the next requester.
  const auto& l2 = launch.machine.memory.l2;
  EXPECT_GE(record.last_retired - record.first_instruction,
            Time{4799 * (l2.atomic_latency + l2.line_hold).ps});
}

// Block 0 cleans the line at one cycle, block 1 loads the word `after` cycles later.
TEST(Stores, AreSeenWhenTheyAreComplete) {
  bool early = false, late = false;
  std::uint64_t took = 0;
  for (const std::int64_t after : {-500, 20, 100, 200, 300, 400, 500, 700, 1000}) {
    Launch launch({"scalar_core.instruction_fetch=free"});
    constexpr std::uint64_t kAt = 100'000;
    launch.runtime.put(launch.scratch() + 512, std::array{kAt, kAt + static_cast<std::uint64_t>(after)});
    launch.run("sees_a_store.elf", 2);
    const auto stored = launch.runtime.get<std::uint64_t>(launch.scratch() + 1024, 2);
    const auto loaded = launch.runtime.get<std::uint64_t>(launch.scratch() + 1536, 2);
    if (took == 0) took = stored[1] - stored[0];
    EXPECT_EQ(stored[1] - stored[0], took) << "the clean does not depend on the load";
    if (loaded[0] >= stored[1]) {
      EXPECT_EQ(loaded[1], 7u) << after;
      late = true;
    } else if (loaded[0] + 8 < stored[1]) {
      EXPECT_EQ(loaded[1], 0u) << after;
      early = early || loaded[0] > stored[0] + 8;
    }
  }
  EXPECT_TRUE(early && late) << "the clean takes " << took;
}

}  // namespace
}  // namespace cm384::testing::atomics_test
