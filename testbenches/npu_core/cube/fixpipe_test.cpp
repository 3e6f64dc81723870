// The fixpipe's conversions of single values, and the last offsets that fit.
#include <gtest/gtest.h>

#include <bit>

#include "base/text/error.h"
#include "firmware/abi/isa.h"
#include "npu_core/cube/cube_unit.h"
#include "npu_core/vector/numeric.h"

namespace cm384::npu::fixpipe_test {
namespace {

PipeInstruction cube(int operation, std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  PipeInstruction in;
  in.instruction_class = CM384_CLASS_CUBE;
  in.operation = static_cast<std::uint8_t>(operation);
  in.type = CM384_CUBE_S8;
  in.a = a;
  in.b = b;
  in.c = c;
  return in;
}

// What one element of L0C becomes.
std::uint32_t converted(int operation, bool relu, std::uint32_t bits) {
  CubeBuffers buffers;
  LocalBuffer out(kL0cBytes);
  buffers.l0c.store(0, reinterpret_cast<const std::byte*>(&bits), 4);
  const std::uint64_t shape = 1 | 1 << 16 | static_cast<std::uint64_t>(operation) << 32;
  const FixpipeCopy copy =
      decode_fixpipe(cube(CM384_CUBE_FIX, 0, 0, shape | (relu ? std::uint64_t{1} << 40 : 0)));
  perform(copy, buffers, out);
  std::uint32_t result = 0;
  out.load(0, reinterpret_cast<std::byte*>(&result), copy.element_bytes());
  return result;
}

std::uint32_t bits_of(float value) {
  return std::bit_cast<std::uint32_t>(value);
}

TEST(Fixpipe, ReluHoldsForEveryConversion) {
  for (const int operation : {CM384_FIX_F32_TO_F16, CM384_FIX_F32_TO_BF16, CM384_FIX_KEEP}) {
    EXPECT_NE(converted(operation, false, bits_of(-1.5f)), 0u) << operation;
    EXPECT_EQ(converted(operation, true, bits_of(-1.5f)), 0u) << operation;
    EXPECT_NE(converted(operation, true, bits_of(1.5f)), 0u) << operation;
  }
}

TEST(Fixpipe, FloatsRoundToNearestEven) {
  EXPECT_EQ(converted(CM384_FIX_F32_TO_BF16, false, bits_of(1.0f + 0x1p-8f)), 0x3f80u);
  EXPECT_EQ(converted(CM384_FIX_F32_TO_BF16, false, bits_of(1.0f + 3 * 0x1p-8f)), 0x3f82u);
  EXPECT_EQ(converted(CM384_FIX_F32_TO_F16, false, bits_of(1.0f + 0x1p-11f)), 0x3c00u);
  EXPECT_EQ(converted(CM384_FIX_F32_TO_F16, false, bits_of(1.0f + 3 * 0x1p-11f)), 0x3c02u);
  EXPECT_EQ(converted(CM384_FIX_KEEP, false, 0x12345678), 0x12345678u);
}

// What fills a buffer to its last byte is taken; 32 B more are not.
TEST(CubeInstructions, ABufferMayBeFull) {
  const auto bias = [](std::uint64_t to, std::uint64_t bytes) {
    return cube(CM384_CUBE_LOAD_BIAS, to, 0, bytes);
  };
  EXPECT_EQ(decode_cube_load(bias(0, kBiasBytes)).bytes, kBiasBytes);
  EXPECT_THROW(decode_cube_load(bias(32, kBiasBytes)), MachineError);
  const std::uint64_t columns = kL0cBytes / kAccumulatorFractal / 8 * 16;  // beside 8 blocks of rows
  const auto mmad = [](std::uint64_t m, std::uint64_t n) {
    return cube(CM384_CUBE_MMAD, 0, 0, m | n << 16 | std::uint64_t{32} << 32);
  };
  EXPECT_EQ(decode_mmad(mmad(128, columns)).n, columns);
  EXPECT_THROW(decode_mmad(mmad(129, columns)), MachineError);
}

}  // namespace
}  // namespace cm384::npu::fixpipe_test
