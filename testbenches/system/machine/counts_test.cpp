// The machine's own sums, of a run with atomic adds.
#include <gtest/gtest.h>

#include "firmware/abi/p2p.h"
#include "firmware/embedded.h"
#include "system/host/runtime.h"

namespace cm384::supernode::counts_test {
namespace {

TEST(Counts, OfMemoryRequestsHoldAtomicAddsToo) {
  const hw::Machine parameters = hw::load_machine("cloudmatrix384");
  SupernodeOptions options;
  options.dies = {0, 16};
  Supernode machine(parameters, options);
  host::Runtime runtime(machine);
  cm384_p2p a{};
  a.mode = CM384_P2P_ATOMIC;
  a.buffers = 4;
  a.chunk_bytes = 4096;
  a.pattern = 3;
  a.bytes = a.target_stride = 32768;
  a.target = runtime.allocate(16, 2 * a.bytes);
  a.results = runtime.allocate(0, 2 * CM384_P2P_RESULT_STRIDE);
  const std::uint64_t block = runtime.allocate(0, sizeof a);
  runtime.put(block, a);
  runtime.launch(0, runtime.load(npu::ElfImage::from_memory(firmware::kernel_image("p2p"), "p2p")), block,
                 runtime.first_cores(2), runtime.earliest_start());
  ASSERT_TRUE(runtime.wait());
  for (const std::uint32_t word : runtime.get<std::uint32_t>(a.target, 2 * 32768 / 4)) ASSERT_EQ(word, 3u);
  sim::Statistics all;
  machine.declare_statistics(all);
  EXPECT_EQ(all.total("die16.memory.atomics"), 2u * 32768 / 512);
  EXPECT_EQ(all.total("die0.ub.atomics"), 2u * 32768 / 512);
  EXPECT_EQ(machine.counts().memory_requests,
            all.sum("die*.memory.reads") + all.sum("die*.memory.writes") + all.sum("die*.memory.atomics"));
}

}  // namespace
}  // namespace cm384::supernode::counts_test
