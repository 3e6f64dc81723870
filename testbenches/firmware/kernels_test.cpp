// Kernels p2p, stream and hello: they move what they say, with the hazard checker on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "firmware/abi/kernel.h"
#include "firmware/abi/p2p.h"
#include "firmware/abi/stream.h"
#include "firmware/embedded.h"
#include "hw/machine.h"
#include "system/host/runtime.h"

namespace cm384::firmware::kernels_test {
namespace {

class Kernels : public ::testing::Test {
 protected:
  supernode::SupernodeOptions options() {
    supernode::SupernodeOptions made;
    made.dies = {0, 2};
    made.die.aiv.check_hazards = true;
    made.output = [this](int, int, std::string_view text) { printed += text; };
    return made;
  }
  template <class Arguments>
  host::LaunchHandle launch(const char* kernel, int die, const Arguments& arguments, int blocks) {
    const std::uint64_t block = runtime.allocate(die, sizeof arguments);
    runtime.put(block, arguments);
    return runtime.launch(die, runtime.load(npu::ElfImage::from_memory(kernel_image(kernel), kernel)), block,
                          runtime.first_cores(blocks), runtime.earliest_start());
  }
  std::vector<cm384_p2p_result> run_p2p(cm384_p2p a, int blocks) {
    a.results = runtime.allocate(0, static_cast<std::uint64_t>(blocks) * CM384_P2P_RESULT_STRIDE);
    launch("p2p", 0, a, blocks);
    runtime.wait();
    std::vector<cm384_p2p_result> results;
    for (int b = 0; b < blocks; ++b) {
      results.push_back(
          runtime
              .get<cm384_p2p_result>(a.results + static_cast<std::uint64_t>(b) * CM384_P2P_RESULT_STRIDE, 1)
              .front());
    }
    return results;
  }

  std::string printed;
  hw::Machine machine = hw::load_machine("cloudmatrix384");
  supernode::Supernode supernode{machine, options()};
  host::Runtime runtime{supernode};
};

cm384_p2p p2p(std::uint32_t mode, std::uint32_t buffers, std::uint32_t chunk, std::uint64_t bytes,
              std::uint64_t target) {
  cm384_p2p a{};
  a.mode = mode;
  a.buffers = buffers;
  a.chunk_bytes = chunk;
  a.bytes = bytes;
  a.target = target;
  a.target_stride = bytes;
  a.pattern = 40;
  return a;
}

TEST_F(Kernels, P2pReadsARemoteDie) {
  std::vector<std::uint32_t> values(3 * 4096);
  std::iota(values.begin(), values.end(), 1u);
  const std::uint64_t source = runtime.allocate(2, values.size() * 4);
  runtime.put(source, std::span<const std::uint32_t>(values));
  for (const std::uint32_t buffers : {1u, 2u, 4u}) {
    cm384_p2p a = p2p(CM384_P2P_READ, buffers, 1024, 16384, source);
    a.warmup = 1;
    a.keep = runtime.allocate(0, 3 * 1024);
    a.keep_stride = 1024;
    const auto results = run_p2p(a, 3);
    for (std::size_t b = 0; b < 3; ++b) {
      EXPECT_GT(results[b].end_cycle, results[b].start_cycle);
      EXPECT_EQ(results[b].samples, buffers == 1 ? 15u : 0u);
      if (buffers == 1) {
        EXPECT_GE(results[b].min_cycles, 1000u);  // over the fabric and back: about 2,000 cycles
        EXPECT_LE(results[b].min_cycles * 15, results[b].sum_cycles);
        EXPECT_LE(results[b].sum_cycles, results[b].max_cycles * 15);
      }
      const auto kept = runtime.get<std::uint32_t>(a.keep + b * 1024, 256);
      EXPECT_TRUE(
          std::equal(kept.begin(), kept.end(), values.begin() + static_cast<long>(b * 4096 + 15 * 256)));
    }
  }
}

TEST_F(Kernels, P2pWritesAndAddsToARemoteDie) {
  const std::uint64_t target = runtime.allocate(2, 2 * 8192);
  run_p2p(p2p(CM384_P2P_WRITE, 2, 2048, 8192, target), 2);
  auto words = runtime.get<std::uint32_t>(target, 4096);
  EXPECT_THAT(std::span(words).first(2048), ::testing::Each(40u));
  EXPECT_THAT(std::span(words).last(2048), ::testing::Each(41u));
  run_p2p(p2p(CM384_P2P_ATOMIC, 1, 512, 8192, target), 2);
  words = runtime.get<std::uint32_t>(target, 4096);
  EXPECT_THAT(std::span(words).first(2048), ::testing::Each(80u));
  EXPECT_THAT(std::span(words).last(2048), ::testing::Each(81u));
}

TEST_F(Kernels, P2pPlaysPingPong) {
  cm384_p2p ping = p2p(CM384_P2P_PING, 1, 512, 512, runtime.allocate(2, 1024));
  ping.rounds = 10;
  ping.warmup = 2;
  ping.target_flag = runtime.allocate(2, 1024);
  ping.own_flag = runtime.allocate(0, 1024);
  cm384_p2p echo = ping;
  echo.mode = CM384_P2P_ECHO;
  std::swap(echo.target_flag, echo.own_flag);
  echo.results = runtime.allocate(2, 2 * CM384_P2P_RESULT_STRIDE);
  launch("p2p", 2, echo, 2);
  const auto results = run_p2p(ping, 2);
  for (const auto& r : results) {
    EXPECT_EQ(r.samples, 8u);
    EXPECT_GT(r.min_cycles, 3 * 1000u);  // three crossings and polls
  }
  EXPECT_THAT(runtime.get<std::uint32_t>(ping.target, 128), ::testing::Each(40u));
}

TEST_F(Kernels, StreamReadsEveryByteOnceWithBuffersThatWrap) {
  struct Shape {
    std::uint64_t rows, row_bytes;
    std::uint32_t count, bytes;
    std::uint64_t instructions;
  };
  for (const Shape& s :
       {Shape{100, 4096, 1, 128, 3200}, Shape{100, 4094, 8, 1024, 13 * 4}, Shape{7, 96, 4, 128, 2}}) {
    cm384_stream a{};
    a.rows = s.rows;
    a.row_bytes = a.pitch = s.row_bytes;
    a.block_count = s.count;
    a.block_bytes = s.bytes;
    a.buffer_bytes = 16 * 1024;
    a.buffers = 2;
    a.passes = 2;
    a.parts = 1;
    a.source = runtime.allocate(0, s.rows * s.row_bytes);
    a.results = runtime.allocate(0, 6 * CM384_STREAM_RESULT_STRIDE);
    launch("stream", 0, a, 6);
    runtime.wait();
    std::uint64_t bytes = 0, instructions = 0;
    for (std::uint64_t b = 0; b < 6; ++b) {
      const auto r = runtime.get<cm384_stream_result>(a.results + b * CM384_STREAM_RESULT_STRIDE, 1).front();
      bytes += r.bytes;
      instructions += r.instructions;
    }
    EXPECT_EQ(bytes, 2 * s.rows * s.row_bytes);
    EXPECT_EQ(instructions, 2 * s.instructions);
  }
}

TEST_F(Kernels, HelloComputesAndPrints) {
  cm384_kernel a{runtime.allocate(0, 1 << 20), 1 << 20};
  launch("hello", 0, a, 2);
  runtime.wait();
  EXPECT_THAT(printed, ::testing::HasSubstr("block 0 of 2: sum 65536.0, 16384 elements in "));
  EXPECT_THAT(printed, ::testing::HasSubstr("block 1 of 2: sum 98304.0, 16384 elements in "));
  const auto y = runtime.get<float>(a.scratch + 2 * 65536, 32768);
  EXPECT_EQ(y[0], 1.0f);
  EXPECT_EQ(y[4096], 3.0f);
  EXPECT_EQ(y[32767], 9.0f);
}

}  // namespace
}  // namespace cm384::firmware::kernels_test
