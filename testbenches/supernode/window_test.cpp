// What is simulated does not depend on how long modules run before they hand over, or on who goes first.
#include <gmock/gmock.h>

#include <algorithm>

#include "firmware/abi/memory_map.h"
#include "firmware/abi/p2p.h"
#include "firmware/embedded.h"
#include "supernode/runtime.h"
#include "supernode/supernode.h"

namespace cm384::supernode {
namespace {

using namespace cm384::literals;

constexpr int kCores = 6;

// Two dies of a package and one of another node write to each other's memory, in a ring: by the package link,
// by sub-planes, and through their L2 chips. Times of every block, in the order of the ring.
std::vector<std::uint64_t> ring(Time window, bool reversed) {
  const hw::Machine parameters = hw::load_machine("cloudmatrix384");
  const std::vector<int> dies = {0, 1, 16};
  SupernodeOptions options;
  options.dies = dies;
  if (reversed) std::reverse(options.dies.begin(), options.dies.end());
  options.window = window;
  Supernode machine(parameters, options);
  Runtime runtime(machine);
  const auto program = runtime.load(npu::ElfImage::from_memory(firmware::kernel_image("p2p"), "p2p"));
  std::vector<std::uint64_t> results;
  for (std::size_t n = 0; n < dies.size(); ++n) {
    cm384_p2p write{};
    write.mode = CM384_P2P_WRITE;
    write.buffers = 2;
    write.chunk_bytes = 4096;
    write.bytes = write.target_stride = 64 << 10;
    write.target = runtime.allocate(dies[(n + 1) % dies.size()], kCores * write.bytes);
    write.results = runtime.allocate(dies[n], kCores * CM384_P2P_RESULT_STRIDE);
    results.push_back(write.results);
    const std::uint64_t block = runtime.allocate(dies[n], sizeof write);
    runtime.put(block, write);
    runtime.launch(dies[n], program, block, runtime.first_cores(kCores), runtime.earliest_start());
  }
  runtime.wait();
  std::vector<std::uint64_t> times;
  for (const std::uint64_t at : results) {
    for (int b = 0; b < kCores; ++b) {
      const auto r =
          runtime.get<cm384_p2p_result>(at + static_cast<std::uint64_t>(b) * CM384_P2P_RESULT_STRIDE, 1)[0];
      times.push_back(r.start_cycle);
      times.push_back(r.end_cycle);
    }
  }
  times.push_back(machine.counts().events);
  return times;
}

TEST(Windows, ShorterOnesChangeNothing) {
  const std::vector<std::uint64_t> longest = ring(Time::never(), false);
  EXPECT_GT(longest[1], longest[0]);
  for (const Time window : {299_ns, 200_ns, 100_ns, 37_ns})
    EXPECT_EQ(ring(window, false), longest) << window.ps;
}

// By closed form: link, chip, link; without the chip where it may not count.
TEST(Windows, AreAsLongAsWhatAPacketTakesFromDieToDie) {
  const auto lookahead = [](const std::vector<std::string>& overrides, const std::vector<int>& sockets) {
    const hw::Machine parameters = hw::load_machine("cloudmatrix384", overrides);
    SupernodeOptions options;
    options.dies = {0};
    options.sockets = sockets;
    return Supernode(parameters, options).lookahead();
  };
  EXPECT_EQ(lookahead({}, {}), 300_ns);
  EXPECT_EQ(lookahead({"ub.link.endpoint_latency=70ns", "ub.switch.pipeline_latency=20ns"}, {}), 160_ns);
  EXPECT_EQ(lookahead({}, {0}), 200_ns);  // a socket's controller holds writes
  EXPECT_EQ(lookahead({"cpu.controller.target_write_interval=0ps"}, {0}), 300_ns);
  EXPECT_EQ(lookahead({"ub.controller.target_read_interval=1ns"}, {}), 200_ns);
}

TEST(Windows, TheOrderOfModulesChangesNothing) {
  EXPECT_EQ(ring(Time::never(), true), ring(Time::never(), false));
}

}  // namespace
}  // namespace cm384::supernode
