// What is simulated does not depend on how long modules run before they hand over, or on who goes first.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "base/text/error.h"
#include "firmware/abi/kernel.h"
#include "firmware/abi/memory_map.h"
#include "firmware/abi/p2p.h"
#include "firmware/embedded.h"
#include "system/host/runtime.h"
#include "system/machine/supernode.h"
#include "system/observe/memory_check.h"

namespace cm384::supernode::window_test {
namespace {

using namespace cm384::literals;

constexpr int kCores = 6;

// Two dies of a package and one of another node write to each other's memory, in a ring: by the package link,
// by sub-planes, and through their L2 chips. Times of every block, in the order of the ring.
std::vector<std::uint64_t> ring(Time window, bool reversed, unsigned threads = 1,
                                const std::vector<std::string>& overrides = {}) {
  const hw::Machine parameters = hw::load_machine("cloudmatrix384", overrides);
  const std::vector<int> dies = {0, 1, 16};
  SupernodeOptions options;
  options.dies = dies;
  if (reversed) std::reverse(options.dies.begin(), options.dies.end());
  options.window = window;
  options.threads = threads;
  options.worth_sharing = 0;
  Supernode machine(parameters, options);
  host::Runtime runtime(machine);
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
  EXPECT_EQ(machine.thread_choice().threads(), threads);
  EXPECT_EQ(machine.shared_windows() > 100, threads > 1);
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

TEST(Windows, ThreadsChangeNothing) {
  const std::vector<std::uint64_t> one = ring(Time::never(), false);
  EXPECT_EQ(ring(Time::never(), false, 2), one);
  EXPECT_EQ(ring(100_ns, true, 2), one);
}

// Buffers of as few cells as there may be: senders wait for credits nearly all the time, those that come back
// in the window before and those of the same one.
TEST(Windows, StarvedCreditsChangeNothing) {
  for (const char* held :
       {"ub.controller.target_write_interval=0ps", "ub.controller.target_write_interval=9ns"}) {
    const std::vector<std::string> starved = {"ub.link.buffer_cells=4", "ub.link.lanes=2", held};
    const std::vector<std::uint64_t> one = ring(Time::never(), false, 1, starved);
    // The second die is the first whose writes leave its package.
    const auto took = [](const std::vector<std::uint64_t>& times) {
      return times[2 * kCores + 1] - times[2 * kCores];
    };
    EXPECT_GT(took(one), took(ring(Time::never(), false)) * 3 / 2);
    EXPECT_EQ(ring(Time::never(), true, 1, starved), one);
    for (const Time window : {199_ns, 100_ns, 37_ns})
      EXPECT_EQ(ring(window, false, 1, starved), one) << window.ps;
    EXPECT_EQ(ring(Time::never(), false, 2, starved), one);
    EXPECT_EQ(ring(37_ns, true, 2, starved), one);
  }
}

TEST(Windows, NoMoreThreadsThanPackages) {
  const hw::Machine parameters = hw::load_machine("cloudmatrix384");
  SupernodeOptions options;
  options.dies = {0, 1, 2, 5};
  options.threads = 8;
  options.threads_why = "one per core of the host";
  const auto choice = [&] {
    const Supernode machine(parameters, options);
    return std::pair{machine.thread_choice().threads(), machine.thread_choice().why()};
  };
  EXPECT_EQ(choice(), std::pair(3u, std::string("as many as packages take part")));
  options.threads = 3;
  EXPECT_EQ(choice(), std::pair(3u, std::string("one per core of the host")));
  options.dies = {};
  EXPECT_EQ(choice(), std::pair(1u, std::string("as many as packages take part")));
}

TEST(Windows, WhoNeedsOneOrderGetsOneThread) {
  const hw::Machine parameters = hw::load_machine("cloudmatrix384");
  const auto why_after = [&](const std::function<void(Supernode&)>& then) {
    SupernodeOptions options;
    options.dies = {0, 2};
    options.threads = 2;
    Supernode machine(parameters, options);
    EXPECT_EQ(machine.thread_choice().threads(), 2u);
    EXPECT_EQ(machine.thread_choice().why(), "asked for");
    then(machine);
    EXPECT_EQ(machine.thread_choice().threads(), 1u);
    return machine.thread_choice().why();
  };
  EXPECT_EQ(why_after([](Supernode& m) { m.follow_transactions(); }),
            "one order, for following transactions");
  EXPECT_EQ(why_after([](Supernode& m) {
              host::Runtime(m).host_barrier({0, 2});
            }),
            "one order, for host threads that meet");
  EXPECT_EQ(why_after([](Supernode& m) { host::Runtime(m).host_function(0, [] {}); }),
            "one order, for functions of host threads");
  EXPECT_EQ(why_after([](Supernode& m) { const observe::MemoryCheck check(m, {}); }),
            "one order, for --check-memory");
  // All who need it are named, each once, in the order in which they came.
  EXPECT_EQ(why_after([](Supernode& m) {
              m.need_order("a test");
              m.need_order("a replay");
              m.need_order("a replay");
              m.need_order("--gdb");
            }),
            "one order, for a test, a replay and --gdb");
}

// What is declared while the machine runs holds from the next window on.
TEST(Windows, AnOrderNeededInTheMiddleHoldsFromThen) {
  const hw::Machine parameters = hw::load_machine("cloudmatrix384");
  SupernodeOptions options;
  options.dies = {0, 2};
  options.threads = 2;
  options.worth_sharing = 0;
  Supernode* running = nullptr;
  std::uint64_t shared = 0;
  options.sample = [&](Time at) {
    if (at != 5_us) return;
    running->need_order("a test");
    shared = running->shared_windows();
  };
  Supernode machine(parameters, options);
  running = &machine;
  host::Runtime runtime(machine);
  const auto program = runtime.load(npu::ElfImage::from_memory(firmware::kernel_image("hello"), "hello"));
  for (const int die : options.dies) {
    cm384_kernel arguments{};
    arguments.scratch_bytes = 64 << 20;
    arguments.scratch = runtime.allocate(die, arguments.scratch_bytes);
    const std::uint64_t block = runtime.allocate(die, sizeof arguments);
    runtime.put(block, arguments);
    runtime.launch(die, program, block, runtime.first_cores(48), runtime.earliest_start());
  }
  runtime.wait();
  EXPECT_GT(shared, 0u);
  EXPECT_EQ(machine.shared_windows(), shared);
  EXPECT_GT(machine.earliest(), 10_us);
}

// Two dies of different packages fault in the same window: the first in order is told, whoever ran first.
TEST(Windows, ThreadsFailAlike) {
  const auto failure = [](unsigned threads) -> std::string {
    const hw::Machine parameters = hw::load_machine("cloudmatrix384");
    SupernodeOptions options;
    options.dies = {0, 2, 4, 6};
    options.threads = threads;
    options.worth_sharing = 0;
    Supernode machine(parameters, options);
    host::Runtime runtime(machine);
    const auto program = runtime.load(npu::ElfImage::from_memory(firmware::kernel_image("hello"), "hello"));
    for (const int die : {2, 4}) {
      const std::uint64_t block = runtime.allocate(die, sizeof(cm384_kernel));
      runtime.put(block, cm384_kernel{});  // no scratch memory: the kernel gives up
      runtime.launch(die, program, block, runtime.first_cores(1), runtime.earliest_start());
    }
    try {
      runtime.wait();
    } catch (const MachineError& error) {
      return error.what();
    }
    return {};
  };
  const std::string one = failure(1);
  EXPECT_THAT(one, ::testing::HasSubstr("die 2 core 0: the kernel gave up"));
  EXPECT_EQ(failure(2), one);
  EXPECT_EQ(failure(4), one);
}

// Told between windows or within them, a listener may end the run.
TEST(Windows, AListenerThatThrowsEndsTheRun) {
  for (const unsigned threads : {1u, 2u}) {
    const hw::Machine parameters = hw::load_machine("cloudmatrix384");
    SupernodeOptions options;
    options.dies = {0, 2, 4};
    options.threads = threads;
    options.worth_sharing = 0;
    Supernode machine(parameters, options);
    int heard = 0;
    machine.probes().launch_begun.attach(&heard, [](void* count, int, const npu::LaunchRecord&) {
      ++*static_cast<int*>(count);
      throw MachineError("enough");
    });
    host::Runtime runtime(machine);
    const auto program = runtime.load(npu::ElfImage::from_memory(firmware::kernel_image("hello"), "hello"));
    const std::uint64_t block = runtime.allocate(2, sizeof(cm384_kernel));
    runtime.put(block, cm384_kernel{});
    runtime.launch(2, program, block, runtime.first_cores(1), runtime.earliest_start());
    EXPECT_THROW(runtime.wait(), MachineError) << threads;
    EXPECT_EQ(heard, 1) << threads;
  }
}

// Kernels of several packages print in the same windows.
TEST(Windows, ThreadsPrintInTheSameOrder) {
  const auto printed = [](unsigned threads) {
    const hw::Machine parameters = hw::load_machine("cloudmatrix384");
    std::vector<std::string> lines;
    SupernodeOptions options;
    options.dies = {9, 0, 1, 2, 4, 6};
    options.threads = threads;
    options.worth_sharing = 0;
    options.output = [&](int die, int core, std::string_view text) {
      lines.push_back(fmt::format("{}.{}: {}", die, core, text));
    };
    Supernode machine(parameters, options);
    host::Runtime runtime(machine);
    const auto program = runtime.load(npu::ElfImage::from_memory(firmware::kernel_image("hello"), "hello"));
    for (const int die : options.dies) {
      cm384_kernel arguments{};
      arguments.scratch_bytes = 64 << 20;
      arguments.scratch = runtime.allocate(die, arguments.scratch_bytes);
      const std::uint64_t block = runtime.allocate(die, sizeof arguments);
      runtime.put(block, arguments);
      runtime.launch(die, program, block, runtime.first_cores(48), runtime.earliest_start());
    }
    runtime.wait();
    EXPECT_EQ(machine.shared_windows() > 0, threads > 1);
    return lines;
  };
  const std::vector<std::string> one = printed(1);
  EXPECT_GE(one.size(), 6u * 48u);
  EXPECT_EQ(printed(2), one);
  EXPECT_EQ(printed(5), one);
}

}  // namespace
}  // namespace cm384::supernode::window_test
