// What loads, MMAD and fixpipe do to the buffers, against plain loops over matrices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "base/text/error.h"
#include "firmware/abi/isa.h"
#include "npu_core/cube/cube_unit.h"
#include "npu_core/vector/numeric.h"

namespace cm384::npu::values_test {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// Small whole numbers: sums are exact in every type.
int value(std::uint32_t row, std::uint32_t column, int salt) {
  return static_cast<int>((row * 7 + column * 13 + static_cast<std::uint32_t>(salt) * 5) % 11) - 5;
}

void put(LocalBuffer& buffer, std::uint32_t offset, std::uint8_t type, int v) {
  const auto f = static_cast<float>(v);
  const auto s8 = static_cast<std::int8_t>(v);
  const std::uint16_t half = type == CM384_CUBE_F16 ? f32_to_f16(f) : f32_to_bf16(f);
  const void* from = type == CM384_CUBE_S8    ? static_cast<const void*>(&s8)
                     : type == CM384_CUBE_F32 ? static_cast<const void*>(&f)
                                              : static_cast<const void*>(&half);
  buffer.store(offset, static_cast<const std::byte*>(from), cube_element_bytes(type));
}

// A matrix in L1 as NZ, its columns of blocks `stride` bytes apart.
void put_nz(LocalBuffer& l1, std::uint32_t at, std::uint32_t stride, std::uint8_t type, std::uint32_t rows,
            std::uint32_t columns, int salt, bool transposed = false) {
  const std::uint32_t size = cube_element_bytes(type), c0 = 32 / size;
  for (std::uint32_t r = 0; r < rows; ++r) {
    for (std::uint32_t c = 0; c < columns; ++c) {
      put(l1, at + c / c0 * stride + r * 32 + c % c0 * size, type,
          transposed ? value(c, r, salt) : value(r, c, salt));
    }
  }
}

PipeInstruction cube(int operation, int type, std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  PipeInstruction in;
  in.instruction_class = CM384_CLASS_CUBE;
  in.operation = static_cast<std::uint8_t>(operation);
  in.type = static_cast<std::uint8_t>(type);
  in.a = a;
  in.b = b;
  in.c = c;
  in.pc = 0x1000;
  return in;
}

double accumulator(const CubeBuffers& b, std::uint8_t type, std::uint32_t m16, std::uint32_t r,
                   std::uint32_t n) {
  std::uint32_t bits = 0;
  b.l0c.load((n / 16 * m16 + r) * 64 + n % 16 * 4, reinterpret_cast<std::byte*>(&bits), 4);
  return type == CM384_CUBE_S8 ? static_cast<double>(static_cast<std::int32_t>(bits))
                               : static_cast<double>(std::bit_cast<float>(bits));
}

struct Shape {
  std::uint8_t type;
  std::uint32_t m, n, k;
  bool transposed;
};

class Multiplies : public ::testing::TestWithParam<Shape> {};

TEST_P(Multiplies, AsPlainLoopsDo) {
  const Shape s = GetParam();
  const std::uint32_t c0 = 32 / cube_element_bytes(s.type);
  const std::uint32_t m1 = blocks_of(s.m, 16), n1 = blocks_of(s.n, 16), k1 = blocks_of(s.k, c0);
  CubeBuffers b;
  // What lies past the edges must not matter.
  std::vector<std::byte> noise(kL1Bytes, std::byte{0x41});
  b.l1.store(0, noise.data(), kL1Bytes);
  const std::uint32_t at_b = 256 * 1024, stride_a = m1 * 512 + 64;
  const std::uint32_t stride_b = (s.transposed ? k1 : n1) * 512;
  put_nz(b.l1, 0, stride_a, s.type, s.m, s.k, 1);
  s.transposed ? put_nz(b.l1, at_b, stride_b, s.type, s.k, s.n, 2, true)
               : put_nz(b.l1, at_b, stride_b, s.type, s.n, s.k, 2);
  perform(decode_cube_load(cube(CM384_CUBE_LOAD_A, s.type, 0, stride_a, m1 | k1 << 16)), b);
  perform(decode_cube_load(cube(s.transposed ? CM384_CUBE_LOAD_B_TRANSPOSED : CM384_CUBE_LOAD_B, s.type,
                                std::uint64_t{at_b} << 32, stride_b, n1 | k1 << 16)),
          b);
  const std::uint64_t sizes = s.m | std::uint64_t{s.n} << 16 | std::uint64_t{s.k} << 32;
  perform(decode_mmad(cube(CM384_CUBE_MMAD, s.type, 0, 0, sizes)), b);
  perform(decode_mmad(cube(CM384_CUBE_MMAD, s.type, 0, std::uint64_t{1} << 32, sizes)),
          b);  // adds the same again
  for (std::uint32_t r = 0; r < s.m; ++r) {
    for (std::uint32_t n = 0; n < s.n; ++n) {
      int sum = 0;
      for (std::uint32_t k = 0; k < s.k; ++k) sum += value(r, k, 1) * value(n, k, 2);
      ASSERT_EQ(accumulator(b, s.type, m1 * 16, r, n), 2 * sum) << r << "," << n;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Types, Multiplies,
    ::testing::Values(Shape{CM384_CUBE_S8, 17, 24, 70, false}, Shape{CM384_CUBE_S8, 1, 1, 1, false},
                      Shape{CM384_CUBE_F16, 16, 33, 40, false}, Shape{CM384_CUBE_BF16, 31, 16, 16, false},
                      Shape{CM384_CUBE_BF16, 5, 50, 37, true}, Shape{CM384_CUBE_F16, 48, 16, 16, true},
                      Shape{CM384_CUBE_F32, 20, 20, 20, false}));

TEST(Values, AnAccumulatorWraps) {
  CubeBuffers b;
  put_nz(b.l1, 0, 512, CM384_CUBE_S8, 1, 1, 1);
  const std::int32_t most = 0x7fffffff;
  b.l0c.store(0, reinterpret_cast<const std::byte*>(&most), 4);
  const std::int8_t one = 1;
  b.l0a.store(0, reinterpret_cast<const std::byte*>(&one), 1);
  b.l0b.store(0, reinterpret_cast<const std::byte*>(&one), 1);
  perform(decode_mmad(cube(CM384_CUBE_MMAD, CM384_CUBE_S8, 0, std::uint64_t{1} << 32,
                           1 | 1 << 16 | std::uint64_t{1} << 32)),
          b);
  EXPECT_EQ(accumulator(b, CM384_CUBE_S8, 16, 0, 0), -2147483648.0);
}

// Two elements in a byte, the first in the low half: 64 of k in a row of a fractal.
TEST(Values, HalvesOfBytes) {
  constexpr std::uint32_t kM = 20, kN = 18, kK = 101;
  const auto half = [](std::uint32_t row, std::uint32_t column, std::uint32_t salt) {
    return static_cast<int>((row * 5 + column * 11 + salt * 3) % 16) - 8;
  };
  CubeBuffers b;
  const auto fill = [&](LocalBuffer& to, bool rows, std::uint32_t count, std::uint32_t salt) {
    for (std::uint32_t i = 0; i < blocks_of(count, 16) * 16; ++i) {
      for (std::uint32_t k = 0; k < 128; k += 2) {
        const auto both =
            static_cast<std::uint8_t>((half(i, k, salt) & 15) | (half(i, k + 1, salt) & 15) << 4);
        const std::uint32_t fractal = rows ? i / 16 * 2 + k / 64 : k / 64 * blocks_of(count, 16) + i / 16;
        to.store(fractal * 512 + i % 16 * 32 + k % 64 / 2, reinterpret_cast<const std::byte*>(&both), 1);
      }
    }
  };
  fill(b.l0a, true, kM, 1);
  fill(b.l0b, false, kN, 2);
  const std::uint64_t sizes = kM | kN << 16 | std::uint64_t{kK} << 32 | std::uint64_t{1} << 48;
  const Mmad mmad = decode_mmad(cube(CM384_CUBE_MMAD, CM384_CUBE_S8, 0, 0, sizes));
  EXPECT_EQ(mmad.k_blocks(), 2u);
  perform(mmad, b);
  for (std::uint32_t r = 0; r < kM; ++r) {
    for (std::uint32_t n = 0; n < kN; ++n) {
      int sum = 0;
      for (std::uint32_t k = 0; k < kK; ++k) sum += half(r, k, 1) * half(n, k, 2);
      ASSERT_EQ(accumulator(b, CM384_CUBE_S8, 32, r, n), sum) << r << "," << n;
    }
  }
  EXPECT_THAT([&] { decode_mmad(cube(CM384_CUBE_MMAD, CM384_CUBE_F16, 0, 0, sizes)); },
              ThrowsMessage<MachineError>(HasSubstr("two elements in a byte are of S8")));
}

TEST(Values, ABiasStartsEveryRow) {
  CubeBuffers b;
  std::vector<float> bias(8, 2.5f);
  b.l1.store(64, reinterpret_cast<const std::byte*>(bias.data()), 32);
  perform(decode_cube_load(cube(CM384_CUBE_LOAD_BIAS, 0, 32 | std::uint64_t{64} << 32, 0, 32)), b);
  perform(
      decode_mmad(cube(CM384_CUBE_MMAD, CM384_CUBE_F16, 0, std::uint64_t{2} << 32 | std::uint64_t{32} << 40,
                       3 | 8 << 16 | std::uint64_t{16} << 32)),
      b);
  for (std::uint32_t r = 0; r < 3; ++r) EXPECT_EQ(accumulator(b, CM384_CUBE_F16, 16, r, 7), 2.5);
}

TEST(Values, TheFixpipeConvertsAndLaysOut) {
  CubeBuffers b;
  LocalBuffer out(kL0cBytes);
  const std::uint32_t m = 18, n = 20;
  std::vector<float> scales(24);
  for (std::uint32_t i = 0; i < 24; ++i) scales[i] = static_cast<float>(i + 1) * 0.5f;
  b.fixpipe.store(64, reinterpret_cast<const std::byte*>(scales.data()), 96);
  for (std::uint32_t r = 0; r < m; ++r) {
    for (std::uint32_t c = 0; c < n; ++c) {
      const std::int32_t v = value(r, c, 3);
      b.l0c.store((c / 16 * 32 + r) * 64 + c % 16 * 4, reinterpret_cast<const std::byte*>(&v), 4);
    }
  }
  const auto fix = [&](int operation, std::uint64_t flags) {
    perform(decode_fixpipe(cube(CM384_CUBE_FIX, 0, 0, std::uint64_t{std::bit_cast<std::uint32_t>(3.0f)} << 32,
                                m | n << 16 | static_cast<std::uint64_t>(operation) << 32 | flags)),
            b, out);
  };
  const auto half = [&](std::uint32_t at) {
    std::uint16_t bits = 0;
    out.load(at, reinterpret_cast<std::byte*>(&bits), 2);
    return f16_to_f32(bits);
  };
  fix(CM384_FIX_S32_TO_F16_VECTOR, std::uint64_t{64} << 48);
  EXPECT_EQ(half(17 * 64 + 19 * 2), static_cast<float>(value(17, 19, 3)) * 10.0f);
  fix(CM384_FIX_S32_TO_F16, std::uint64_t{1} << 40);
  for (std::uint32_t r = 0; r < m; ++r)
    EXPECT_EQ(half(r * 64 + 34), std::max(0.0f, static_cast<float>(value(r, 17, 3)) * 3.0f));
  fix(CM384_FIX_S32_TO_F16, std::uint64_t{1} << 41);  // NZ: block column 1 is 18 rows of 32 B on
  EXPECT_EQ(half((m + 5) * 32 + 3 * 2), static_cast<float>(value(5, 19, 3)) * 3.0f);
}

// A convolution's picture, its filter and how it steps: widths, then heights.
struct Image {
  std::uint8_t type;
  std::uint32_t blocks, size[2], filter[2], stride[2], dilation[2];
  std::uint32_t padding[4];  // left, right, top, bottom
};
std::uint64_t image_word(const Image& i) {
  return i.size[1] | i.size[0] << 16 | std::uint64_t{i.padding[0]} << 32 | std::uint64_t{i.padding[1]} << 40 |
         std::uint64_t{i.padding[2]} << 48 | std::uint64_t{i.padding[3]} << 56;
}
std::uint64_t filter_word(const Image& i) {
  return i.stride[0] | i.stride[1] << 8 | std::uint64_t{i.filter[0]} << 16 |
         std::uint64_t{i.filter[1]} << 25 | std::uint64_t{i.dilation[0]} << 34 |
         std::uint64_t{i.dilation[1]} << 42;
}

class Images : public ::testing::TestWithParam<Image> {};

// Places are walked as a convolution's loops do; what the instruction has is every one of them, in order.
TEST_P(Images, BecomeWhatAConvolutionMultiplies) {
  const Image i = GetParam();
  const std::uint32_t size = cube_element_bytes(i.type), at = 96;
  CubeBuffers b;
  for (std::uint32_t n = 0; n < i.blocks * i.size[0] * i.size[1] * 32 / size; ++n)
    put(b.l1, at + n * size, i.type, static_cast<int>(n % 101) - 50);
  const auto word = [&](std::uint32_t offset) {
    std::uint32_t bits = 0;
    b.l1.load(offset, reinterpret_cast<std::byte*>(&bits), size);
    return bits;
  };
  std::vector<std::vector<std::uint32_t>> rows;  // of the matrix, the first element of each block
  const std::uint32_t padded = 0x5a;
  const auto reach = [&](int d) { return i.dilation[d] * (i.filter[d] - 1); };
  for (std::uint32_t y = 0; y + reach(1) < i.size[1] + i.padding[2] + i.padding[3]; y += i.stride[1]) {
    for (std::uint32_t x = 0; x + reach(0) < i.size[0] + i.padding[0] + i.padding[1]; x += i.stride[0]) {
      rows.emplace_back();
      for (std::uint32_t block = 0; block < i.blocks; ++block) {
        for (std::uint32_t fy = 0; fy < i.filter[1]; ++fy) {
          for (std::uint32_t fx = 0; fx < i.filter[0]; ++fx) {
            const std::uint32_t px = x + fx * i.dilation[0] - i.padding[0],
                                py = y + fy * i.dilation[1] - i.padding[2];
            const bool inside = px < i.size[0] && py < i.size[1];  // below 0 it wraps
            rows.back().push_back(inside ? word(at + ((block * i.size[1] + py) * i.size[0] + px) * 32)
                                         : padded);
          }
        }
      }
    }
  }
  const auto all = static_cast<std::uint32_t>(rows.size()),
             columns = static_cast<std::uint32_t>(rows[0].size());
  for (const auto& [first_row, first_column] : {std::pair{0u, 0u}, {all / 2, columns / 3}}) {
    const std::uint32_t take = all - first_row + 5, wide = columns - first_column;
    perform(decode_image_load(
                cube(CM384_CUBE_LOAD_3D_A, i.type, 512 | std::uint64_t{at} << 32,
                     first_row | take << 16 | std::uint64_t{first_column} << 32 | std::uint64_t{wide} << 48,
                     padded),
                image_word(i), filter_word(i)),
            b);
    for (std::uint32_t r = 0; r < take; ++r) {
      for (std::uint32_t c = 0; c < wide; ++c) {
        std::uint32_t bits = 0;
        b.l0a.load(512 + (r / 16 * wide + c) * 512 + r % 16 * 32, reinterpret_cast<std::byte*>(&bits), size);
        const std::uint32_t row = first_row + r;
        ASSERT_EQ(bits, row < all ? rows[row][first_column + c] : 0u) << row << " " << c;
      }
    }
  }
}
INSTANTIATE_TEST_SUITE_P(
    Filters, Images,
    ::testing::Values(Image{CM384_CUBE_F16, 2, {4, 4}, {1, 1}, {1, 1}, {1, 1}, {}},
                      Image{CM384_CUBE_S8, 1, {7, 5}, {3, 2}, {1, 2}, {1, 1}, {1, 0, 2, 1}},
                      Image{CM384_CUBE_BF16, 3, {6, 9}, {2, 3}, {2, 1}, {3, 2}, {2, 3, 0, 1}},
                      Image{CM384_CUBE_F32, 2, {5, 6}, {2, 2}, {2, 3}, {1, 1}, {0, 1, 1, 0}}));

TEST(Values, FillsRepeatAWordInTurns) {
  CubeBuffers b;
  const auto word = [](const LocalBuffer& buffer, std::uint32_t at) {
    std::uint32_t bits = 0;
    buffer.load(at, reinterpret_cast<std::byte*>(&bits), 4);
    return bits;
  };
  b.l1.set_payload(0, 4096, true);
  perform(decode_buffer_fill(cube(CM384_CUBE_FILL, 0, 64, 0x12345678, 3 | 2 << 16 | std::uint64_t{1} << 32)),
          b);
  for (std::uint32_t block = 0; block < 12; ++block) {
    const bool filled = block >= 2 && block < 10 && (block - 2) % 3 != 2;
    EXPECT_EQ(!b.l1.payload(block * 32, 32), filled) << block;
    if (filled) EXPECT_EQ(word(b.l1, block * 32 + 28), 0x12345678u) << block;
  }
  perform(decode_buffer_fill(cube(CM384_CUBE_FILL, 0, 512 | std::uint64_t{2} << 32, 7, 1 | 2 << 16)), b);
  EXPECT_EQ(word(b.l0b, 508), 0u);
  EXPECT_EQ(word(b.l0b, 512), 7u);
  EXPECT_EQ(word(b.l0b, 1532), 7u);
  EXPECT_EQ(word(b.l0b, 1536), 0u);
}

TEST(Values, PayloadMakesAllOfAResultPayload) {
  CubeBuffers b;
  b.l1.set_payload(512, 32, true);
  perform(decode_cube_load(cube(CM384_CUBE_LOAD_A, CM384_CUBE_S8, 0, 512, 1 | 2 << 16)), b);
  EXPECT_TRUE(b.l0a.payload(0, 32));
  perform(decode_mmad(cube(CM384_CUBE_MMAD, CM384_CUBE_S8, 0, 0, 16 | 16 << 16 | std::uint64_t{64} << 32)),
          b);
  EXPECT_TRUE(b.l0c.payload(992, 32));
  perform(decode_cube_load(cube(CM384_CUBE_LOAD_A, CM384_CUBE_S8, 0, 512, 1 | 1 << 16)), b);
  EXPECT_FALSE(b.l0a.payload(0, 512));
}

TEST(Values, WhatDoesNotFitIsRefusedByName) {
  const auto refuses = [](const PipeInstruction& in, const char* text, auto&& decode) {
    EXPECT_THAT([&] { decode(in); }, ThrowsMessage<MachineError>(HasSubstr(text)));
  };
  const std::uint64_t big = 256 | 256 << 16 | std::uint64_t{64} << 32;
  refuses(cube(CM384_CUBE_MMAD, CM384_CUBE_S8, 0, 1024, big), "L0C", decode_mmad);
  refuses(cube(CM384_CUBE_MMAD, CM384_CUBE_S8, 0, 0, 256 | 16 << 16 | std::uint64_t{512} << 32), "L0A",
          decode_mmad);
  refuses(cube(CM384_CUBE_MMAD, CM384_CUBE_S8, std::uint64_t{100} << 32, 0,
               16 | 16 << 16 | std::uint64_t{32} << 32),
          "L0B offset 0x64 must be a multiple of 512", decode_mmad);
  refuses(cube(CM384_CUBE_LOAD_A, CM384_CUBE_S8, 0, 512, 2 | 2 << 16), "do not hold 2 fractals",
          decode_cube_load);
  refuses(cube(CM384_CUBE_LOAD_B_TRANSPOSED, CM384_CUBE_S8, 0, 512, 1 | 1 << 16), "elements of 2 B",
          decode_cube_load);
  refuses(cube(CM384_CUBE_LOAD_B, CM384_CUBE_S8, std::uint64_t{kL1Bytes} << 32, 512, 1 | 1 << 16), "L1",
          decode_cube_load);
  const auto image = [](const PipeInstruction& in) {
    const Image small{CM384_CUBE_F16, 1, {4, 4}, {5, 1}, {1, 1}, {1, 1}, {}};
    return decode_image_load(in, image_word(small), filter_word(small));
  };
  refuses(cube(CM384_CUBE_LOAD_3D_A, CM384_CUBE_F16, 0, 16 << 16 | std::uint64_t{1} << 48, 0),
          "larger than the padded image", image);
  refuses(cube(CM384_CUBE_LOAD_3D_A, CM384_CUBE_F16, 0, 16 << 16, 0), "no rows or no columns", image);
  const auto places = [](const PipeInstruction& in) {
    const Image one{CM384_CUBE_F16, 1, {4, 4}, {1, 1}, {1, 1}, {1, 1}, {}};
    return decode_image_load(in, image_word(one), filter_word(one));
  };
  const std::uint64_t near_end = std::uint64_t{kL1Bytes - 512} << 32, one_column = std::uint64_t{1} << 48;
  EXPECT_NO_THROW(places(cube(CM384_CUBE_LOAD_3D_A, CM384_CUBE_F16, near_end, 16 << 16 | one_column, 0)));
  refuses(cube(CM384_CUBE_LOAD_3D_A, CM384_CUBE_F16, near_end, 16 << 16 | 2 * one_column, 0), "L1", places);
  refuses(cube(CM384_CUBE_LOAD_3D_A, CM384_CUBE_F16, 0, 2064 << 16 | one_column, 0), "L0A", places);
  refuses(cube(CM384_CUBE_FILL, 0, kL1Bytes - 32, 0, 1 | 2 << 16), "L1", decode_buffer_fill);
  refuses(cube(CM384_CUBE_FILL, 0, std::uint64_t{3} << 32, 0, 1 | 1 << 16), "buffers are 0 to 2",
          decode_buffer_fill);
  refuses(cube(CM384_CUBE_FIX, 0, 0, 512, 16 | 16 << 16), "L0C offset",
          [](const PipeInstruction& in) { return decode_fixpipe(in); });
}

}  // namespace
}  // namespace cm384::npu::values_test
