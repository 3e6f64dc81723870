// Times of the cube core's pipes against the formulas, ND2NZ, and missing flags.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <tuple>

#include "base/text/error.h"
#include "npu_core/cube/aic.h"
#include "testbenches/npu_core/vector/stand_in.h"

namespace cm384::npu::testing::pipes_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
constexpr int kM = CM384_PIPE_M, kMte1 = CM384_PIPE_MTE1, kMte2 = CM384_PIPE_MTE2, kFix = CM384_PIPE_FIX;

hw::CubeCore cube_parameters() {
  hw::CubeCore p;
  p.queue_depth = 32;
  p.mmad_setup = 6;
  p.macs_per_cycle = {8192, 4096, 1024, 16384};
  p.l0a_bytes_per_cycle = 512;
  p.l0b_bytes_per_cycle = 256;
  p.table_bytes_per_cycle = 16;
  p.load_latency = 20;
  p.fixpipe_bytes_per_cycle = 64;
  return p;
}

struct CubeStandIn : StandIn {
  explicit CubeStandIn(const hw::CubeCore& cube = cube_parameters())
      : aic(3, cube, mte_parameters(), Clock{Frequency{1'850'000'000}}, *this, true) {
    pipes = &aic;
  }
  Aic aic;
};

PipeInstruction cube(int operation, int type, std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  PipeInstruction in;
  in.instruction_class = CM384_CLASS_CUBE;
  in.operation = static_cast<std::uint8_t>(operation);
  in.type = static_cast<std::uint8_t>(type);
  in.a = a;
  in.b = b;
  in.c = c;
  return in;
}
PipeInstruction mmad(int type, std::uint32_t m, std::uint32_t n, std::uint32_t k, std::uint32_t l0c = 0) {
  return cube(CM384_CUBE_MMAD, type, 0, l0c, m | n << 16 | std::uint64_t{k} << 32);
}
PipeInstruction load(int operation, std::uint32_t rows, std::uint32_t columns) {
  return cube(operation, CM384_CUBE_S8, 0, rows * 512, rows | columns << 16);
}
PipeInstruction fix(std::uint64_t gm, std::uint32_t m, std::uint32_t n) {
  return cube(CM384_CUBE_FIX, 0, gm, 0, m | n << 16);
}
PipeInstruction copy_to_l1(int operation, std::uint32_t l1, std::uint64_t gm, std::uint32_t bytes,
                           std::uint32_t bursts) {
  PipeInstruction in = copy_in(l1, gm, bytes, bursts);
  in.operation = static_cast<std::uint8_t>(operation);
  return in;
}

// Cycles of one instruction between an idle start and the end of a barrier over all pipes.
std::int64_t alone(const PipeInstruction& in) {
  CubeStandIn die;
  EXPECT_TRUE(die.run({in, barrier(CM384_PIPE_ALL)}, 100));
  return die.released(1) - 102;  // the push, and the barrier's own cycle
}

TEST(CubePipes, AnMmadTakesWhatThePublishedFormulaSays) {
  // ascend-facts A5: 128 x 64 x 128 of half takes 262 cycles.
  EXPECT_EQ(alone(mmad(CM384_CUBE_F16, 128, 128, 64)), 262);
  EXPECT_EQ(alone(mmad(CM384_CUBE_S8, 128, 152, 128)), 6 + 8 * 10 * 4);
  EXPECT_EQ(alone(mmad(CM384_CUBE_S8, 1, 1, 1)), 7);
  EXPECT_EQ(alone(mmad(CM384_CUBE_F32, 32, 16, 16)), 6 + 2 * 1 * 2 * 2);
}

// Twice the multiply-adds a cycle, half the time, less the set-up; a step that is not a whole number of
// cycles is rounded up once an instruction.
TEST(CubePipes, AnMmadTakesItsMultiplyAddsAtTheRateOfItsType) {
  const auto cycles = [](int type, std::uint32_t k, int factor, int more) {
    hw::CubeCore cube = cube_parameters();
    hw::MacsPerCycle& rates = cube.macs_per_cycle;
    rates = {rates.int8 * factor + more, rates.bf16 * factor + more, rates.fp32 * factor + more};
    CubeStandIn die(cube);
    EXPECT_TRUE(die.run({mmad(type, 128, 128, k), barrier(CM384_PIPE_ALL)}, 100));
    return die.released(1) - 102 - 6;
  };
  for (const auto& [type, k, rate] : {std::tuple{CM384_CUBE_S8, 256u, 8192},
                                      {CM384_CUBE_F16, 128u, 4096},
                                      {CM384_CUBE_BF16, 128u, 4096},
                                      {CM384_CUBE_F32, 64u, 1024}}) {
    const std::int64_t macs = 128 * 128 * std::int64_t{k};
    EXPECT_EQ(cycles(type, k, 1, 0), macs / rate) << type;
    EXPECT_EQ(cycles(type, k, 2, 0), macs / rate / 2) << type;
    EXPECT_EQ(cycles(type, k, 1, 972), (macs + rate + 971) / (rate + 972)) << type;
  }
}

TEST(CubePipes, LoadsMoveAtTheRatesOfTheirBuffers) {
  EXPECT_EQ(alone(load(CM384_CUBE_LOAD_A, 8, 4)), 8 * 4 * 512 / 512 + 20);
  EXPECT_EQ(alone(load(CM384_CUBE_LOAD_B, 8, 4)), 8 * 4 * 512 / 256 + 20);
  EXPECT_EQ(alone(cube(CM384_CUBE_LOAD_BIAS, 0, 0, 0, 1024)), 1024 / 16 + 20);
}

// Fills of L0 and images cost what loads of as many bytes do; a fill of L1 stands on MTE2, C to L1 on FIX,
// and both are ordered by these pipes' flags.
TEST(CubePipes, FillsImagesAndResultsInL1) {
  const std::uint64_t units = 1 | 32 << 16;
  EXPECT_EQ(alone(cube(CM384_CUBE_FILL, 0, std::uint64_t{1} << 32, 0, units)), 32 * 512 / 512 + 20);
  EXPECT_EQ(alone(cube(CM384_CUBE_FILL, 0, std::uint64_t{2} << 32, 0, units)), 32 * 512 / 256 + 20);
  const PipeInstruction fill = cube(CM384_CUBE_FILL, 0, 0, 0, units);
  const std::uint64_t nz = std::uint64_t{1} << 41;
  const PipeInstruction result =
      cube(CM384_CUBE_FIX_TO_L1, 0, 0, 0, 16 | 16 << 16 | std::uint64_t{1} << 32 | nz);
  const auto runs = [](const std::vector<PipeInstruction>& p) {
    CubeStandIn die;
    return die.run(p);
  };
  EXPECT_TRUE(runs({fill, set_flag(kMte2, kMte1), wait_flag(kMte2, kMte1), load(CM384_CUBE_LOAD_A, 1, 1)}));
  EXPECT_THROW(runs({fill, load(CM384_CUBE_LOAD_A, 1, 1)}), MachineError);
  EXPECT_TRUE(runs({result, set_flag(kFix, kMte1), wait_flag(kFix, kMte1), load(CM384_CUBE_LOAD_A, 1, 1)}));
  EXPECT_THROW(runs({result, load(CM384_CUBE_LOAD_A, 1, 1)}), MachineError);
  EXPECT_THROW(runs({mmad(CM384_CUBE_F16, 16, 16, 16), result}), MachineError);
  PipeInstruction rows = result;
  rows.c &= ~nz;
  EXPECT_THROW(runs({rows}), MachineError) << "NZ alone";
  // The load after the flag begins once the result is complete: 512 B at 64 B a cycle, and the latency.
  CubeStandIn die;
  ASSERT_TRUE(die.run({result, set_flag(kFix, kMte1), wait_flag(kFix, kMte1), load(CM384_CUBE_LOAD_A, 1, 1),
                       barrier(CM384_PIPE_ALL)},
                      100));
  EXPECT_GE(die.released(4) - 102, 512 / cube_parameters().fixpipe_bytes_per_cycle + 20 + 1 + 20);
}

TEST(CubePipes, InstructionsOfThePipesFollowWithoutAGapAndOverlapAcrossPipes) {
  CubeStandIn die;
  ASSERT_TRUE(die.run(
      {mmad(CM384_CUBE_S8, 128, 128, 128), mmad(CM384_CUBE_S8, 128, 128, 128), barrier(CM384_PIPE_ALL)},
      100));
  EXPECT_EQ(die.released(2) - 102, 2 * (6 + 8 * 8 * 4));
  EXPECT_EQ(die.aic.statistics().mmad_cycles, 2u * 262);
  EXPECT_EQ(die.aic.statistics().multiply_adds, 2u * 128 * 128 * 128);
}

// Not those of the blocks that the shape is rounded up to.
TEST(CubePipes, MultiplyAddsAreThoseOfTheShape) {
  CubeStandIn die;
  ASSERT_TRUE(die.run({mmad(CM384_CUBE_S8, 3, 5, 7), barrier(CM384_PIPE_ALL)}));
  EXPECT_EQ(die.aic.statistics().multiply_adds, 3u * 5 * 7);
}

TEST(CubePipes, TheFixpipeSendsSectorsAtItsRate) {
  // Rows of 512 B, whole sectors: 8 cycles each; set-up 50, and the memory's 250 ns after the last one.
  CubeStandIn die;
  ASSERT_TRUE(die.run(
      {sync(CM384_SET_STRIDE, 0, 512), fix(cm384_gm_die(kLocal, 0), 16, 128), barrier(CM384_PIPE_ALL)}, 100));
  ASSERT_EQ(die.accesses.size(), 16u);
  const Clock clock = die.clock;
  EXPECT_EQ(die.accesses[0].at, clock.start(102 + 50));
  for (std::size_t i = 1; i < 16; ++i)
    EXPECT_NEAR(static_cast<double>((die.accesses[i].at - die.accesses[i - 1].at).ps), 8e6 / 1850, 1);
}

TEST(CubePipes, Nd2NzScattersRows) {
  CubeStandIn die;
  for (std::size_t i = 0; i < 4096; ++i) die.memory[i] = static_cast<std::byte>(i * 31 + i / 256);
  // Five rows of 70 B, 100 B apart, from an address that is no multiple of anything.
  ASSERT_TRUE(die.run({sync(CM384_SET_STRIDE, 100, 16 * 32),
                       copy_to_l1(CM384_MTE_GM_TO_L1_ND2NZ, 1024, cm384_gm_die(kLocal, 3), 70, 5),
                       barrier(CM384_PIPE_ALL)}));
  for (std::uint32_t row = 0; row < 5; ++row) {
    for (std::uint32_t byte = 0; byte < 96; ++byte) {
      std::byte got{};
      die.aic.buffers().l1.load(1024 + byte / 32 * 512 + row * 32 + byte % 32, &got, 1);
      const std::byte wanted = byte < 70 ? die.memory[3 + row * 100 + byte] : std::byte{0};
      ASSERT_EQ(got, wanted) << "row " << row << " byte " << byte;
    }
  }
}

// Load A and B, multiply, drain, with every flag but number `missing`.
std::vector<PipeInstruction> program(int missing) {
  const auto to_l1 = [](std::uint32_t at) {
    return copy_to_l1(CM384_MTE_GM_TO_L1, at, cm384_gm_die(kLocal, 0), 512, 1);
  };
  const std::pair<int, int> flags[] = {{kMte2, kMte1}, {kMte1, kM}, {kM, kFix},
                                       {kFix, kM},     {kM, kMte1}, {kMte1, kMte2}};
  const std::vector<std::vector<PipeInstruction>> work{
      {to_l1(0)},
      {load(CM384_CUBE_LOAD_A, 1, 1), load(CM384_CUBE_LOAD_B, 1, 1)},
      {mmad(CM384_CUBE_S8, 16, 16, 32)},
      {sync(CM384_SET_STRIDE, 0, 64), fix(cm384_gm_die(kLocal, 4096), 16, 16)},
      {mmad(CM384_CUBE_S8, 16, 16, 32)},
      {load(CM384_CUBE_LOAD_A, 1, 1)},
      {to_l1(0)}};
  std::vector<PipeInstruction> p;
  for (int i = 0; i < 7; ++i) {
    p.insert(p.end(), work[static_cast<std::size_t>(i)].begin(), work[static_cast<std::size_t>(i)].end());
    if (i == 6 || i == missing) continue;
    p.push_back(set_flag(flags[i].first, flags[i].second));
    p.push_back(wait_flag(flags[i].first, flags[i].second));
  }
  return p;
}

TEST(CubePipes, EachMissingFlagIsReportedByName) {
  CubeStandIn sound;
  EXPECT_TRUE(sound.run(program(-1)));
  const char* const who[][2] = {{"hazard in L1", "MTE1 reads"},   {"hazard in L0A", "M reads"},
                                {"hazard in L0C", "FIX reads"},   {"hazard in L0C", "M writes"},
                                {"hazard in L0A", "MTE1 writes"}, {"hazard in L1", "MTE2 writes"}};
  for (int missing = 0; missing < 6; ++missing) {
    EXPECT_THAT(
        [&] {
          CubeStandIn die;
          die.run(program(missing));
        },
        ThrowsMessage<MachineError>(AllOf(HasSubstr(who[missing][0]), HasSubstr(who[missing][1]))))
        << missing;
  }
}

TEST(CubePipes, WhatACubeCoreDoesNotHaveIsRefused) {
  const auto refuses = [](const PipeInstruction& in, const char* text) {
    EXPECT_THAT(
        [&] {
          CubeStandIn die;
          die.run({in});
        },
        ThrowsMessage<MachineError>(HasSubstr(text)));
  };
  refuses(copy_in(0, cm384_gm_die(kLocal, 0), 32), "no such MTE operation on a cube core");
  refuses(set_flag(CM384_PIPE_V, kMte2), "no such flag: two different pipes of S, M, MTE1, MTE2, FIX, MTE3");
  refuses(barrier(CM384_PIPE_V), "a pipe that a cube core does not have");
  refuses(copy_to_l1(CM384_MTE_GM_TO_L1, kL1Bytes - 32, cm384_gm_die(kLocal, 0), 64, 1), "leaves L1");
}

TEST(CubePipes, AFullQueueHoldsTheScalarUnitBack) {
  std::vector<PipeInstruction> p(40, mmad(CM384_CUBE_S8, 128, 128, 128));
  CubeStandIn die;
  ASSERT_TRUE(die.run(p, 100));
  // Instruction n leaves the queue when it starts; the 34th push finds its place when the second one has
  // left.
  EXPECT_EQ(die.released(32), 100 + 33);
  EXPECT_GT(die.released(34), 100 + 262);
}

}  // namespace
}  // namespace cm384::npu::testing::pipes_test
