// Values of element-wise instructions and casts against a reference that works element by element.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <random>

#include "base/text/error.h"
#include "firmware/abi/isa.h"
#include "npu_core/vector/vector_unit.h"

namespace cm384::npu::operations_test {
namespace {

struct Shape {
  std::uint32_t destination, source0, source1;
  std::uint32_t repeats;
  std::uint64_t blocks[3], strides[3];  // block and repeat strides of destination, source 0, source 1
  std::uint64_t mask_low, mask_high;
};

constexpr std::uint64_t kOnes = ~std::uint64_t{0};
const Shape kShapes[] = {
    {0x0, 0x8000, 0x10000, 9, {1, 1, 1}, {8, 8, 8}, kOnes, kOnes},    // contiguous, across pages
    {0x20, 0x8fe0, 0x10f20, 20, {1, 1, 1}, {8, 8, 8}, kOnes, kOnes},  // pages meet at different places
    {0x400, 0x400, 0x10000, 5, {1, 1, 1}, {8, 8, 8}, kOnes, kOnes},   // in place
    {0x0, 0x8000, 0x10000, 7, {1, 2, 3}, {8, 16, 25}, kOnes, kOnes},  // strided
    {0x0, 0x8000, 0x10000, 4, {1, 1, 1}, {8, 8, 8}, 0x00ff00ff12345678u, 7},  // masked
    {0x0, 0x0, 0x10000, 6, {1, 1, 1}, {0, 0, 8}, kOnes, kOnes},               // accumulates
    {0x100, 0x0, 0x10000, 6, {1, 1, 1}, {8, 8, 8}, kOnes, kOnes},    // each repeat reads the one before
    {0x0, 0x8000, 0x10000, 3, {1, 0, 1}, {8, 1, 8}, kOnes, kOnes}};  // one block for all

std::uint32_t element_offset(std::uint32_t base, std::uint64_t block, std::uint64_t stride,
                             std::uint32_t repeat, std::uint32_t element, std::uint32_t size) {
  const std::uint32_t per_block = 32 / size;
  return base + 32 * static_cast<std::uint32_t>(repeat * stride + element / per_block * block) +
         element % per_block * size;
}

PipeInstruction make(int instruction_class, int operation, int type, const Shape& s, std::uint64_t rs2) {
  PipeInstruction i;
  i.instruction_class = static_cast<std::uint8_t>(instruction_class);
  i.operation = static_cast<std::uint8_t>(operation);
  i.type = static_cast<std::uint8_t>(type);
  i.a = s.destination | std::uint64_t{s.source0} << 32;
  i.b = rs2;
  i.c = s.repeats | s.blocks[0] << 8 | s.blocks[1] << 16 | s.blocks[2] << 24 | s.strides[0] << 32 |
        s.strides[1] << 40 | s.strides[2] << 48;
  i.pc = 0x80001234;
  return i;
}

template <class T>
T get(const std::vector<std::byte>& m, std::uint32_t at) {
  T v;
  std::memcpy(&v, &m[at], sizeof v);
  return v;
}
template <class T>
void put(std::vector<std::byte>& m, std::uint32_t at, T v) {
  std::memcpy(&m[at], &v, sizeof v);
}

// FP32 values that meet NaN, infinities, zeros of both signs, subnormals.
template <class T>
T random_value(std::mt19937& random) {
  if constexpr (std::is_same_v<T, float>) {
    const float specials[] = {0.0f, -0.0f, std::nanf(""), INFINITY, -INFINITY, 1e-40f, 1.0f, -1.0f};
    if (random() % 16 == 0) return specials[random() % 8];
    return (static_cast<float>(random() % 2000001) - 1000000.0f) / 1024.0f;
  } else {
    return static_cast<T>(random());
  }
}

std::vector<std::byte> filled(std::mt19937& random, int type) {
  std::vector<std::byte> m(kUBufferBytes);
  for (std::uint32_t at = 0; at < kUBufferBytes; at += 4) {
    if (type == CM384_F32) {
      put(m, at, random_value<float>(random));
    } else if (type == CM384_F16) {
      put(m, at, f32_to_f16(random_value<float>(random)));
      put(m, at + 2, f32_to_f16(random_value<float>(random)));
    } else {
      put(m, at, static_cast<std::uint32_t>(random()));
    }
  }
  return m;
}

std::vector<std::byte> performed(const PipeInstruction& i, const Shape& s,
                                 const std::vector<std::byte>& before) {
  UBuffer u;
  u.store(0, before.data(), kUBufferBytes);
  perform(decode_vector(i, s.mask_low, s.mask_high), u);
  std::vector<std::byte> after(kUBufferBytes);
  u.load(0, after.data(), kUBufferBytes);
  return after;
}

bool element_on(const Shape& s, std::uint32_t e) {
  return ((e < 64 ? s.mask_low >> e : s.mask_high >> (e - 64)) & 1) != 0;
}

template <class T>
bool same(T a, T b) {
  if constexpr (std::is_same_v<T, float>) {
    if (std::isnan(a) && std::isnan(b)) return true;
  }
  return std::memcmp(&a, &b, sizeof a) == 0;
}
bool same_f16(std::uint16_t a, std::uint16_t b) {
  return same(f16_to_f32(a), f16_to_f32(b));
}

// Runs an operation on every shape and compares with f(source 0, source 1, destination) element by element.
template <class T, class F>
void check_operation(int operation, int type, bool scalar, T scalar_bits, const F& f) {
  std::mt19937 random(static_cast<unsigned>(operation * 8 + type + 1));
  for (const Shape& s : kShapes) {
    const auto before = filled(random, type);
    std::uint64_t rs2 = s.source1;
    if (scalar) {
      rs2 = 0;
      std::memcpy(&rs2, &scalar_bits, sizeof scalar_bits);
    }
    const auto after = performed(make(CM384_CLASS_VECTOR, operation, type, s, rs2), s, before);
    auto expected = before;
    constexpr auto size = static_cast<std::uint32_t>(sizeof(T));
    for (std::uint32_t r = 0; r < s.repeats; ++r) {
      for (std::uint32_t e = 0; e < 256 / size; ++e) {
        if (!element_on(s, e)) continue;
        const std::uint32_t d = element_offset(s.destination, s.blocks[0], s.strides[0], r, e, size);
        const T a = get<T>(expected, element_offset(s.source0, s.blocks[1], s.strides[1], r, e, size));
        const T b = scalar
                        ? scalar_bits
                        : get<T>(expected, element_offset(s.source1, s.blocks[2], s.strides[2], r, e, size));
        put(expected, d, f(a, b, get<T>(expected, d)));
      }
    }
    for (std::uint32_t at = 0; at < kUBufferBytes; at += size) {
      const T got = get<T>(after, at);
      const T want = get<T>(expected, at);
      const bool equal = type == CM384_F16
                             ? same_f16(static_cast<std::uint16_t>(got), static_cast<std::uint16_t>(want))
                             : same(got, want);
      ASSERT_TRUE(equal) << "operation " << operation << " type " << type << " shape " << &s - kShapes
                         << " at " << at << ": " << +got << " instead of " << +want;
    }
  }
}

float reference(int operation, float a, float b, float d) {
  const auto maximum = [](float x, float y) { return std::isnan(x) || std::isnan(y) ? NAN : x > y ? x : y; };
  const auto minimum = [](float x, float y) { return std::isnan(x) || std::isnan(y) ? NAN : x < y ? x : y; };
  switch (operation) {
    case CM384_VADD:
    case CM384_VADDS:
      return a + b;
    case CM384_VSUB:
      return a - b;
    case CM384_VMUL:
    case CM384_VMULS:
      return a * b;
    case CM384_VDIV:
      return a / b;
    case CM384_VMAX:
    case CM384_VMAXS:
      return maximum(a, b);
    case CM384_VMIN:
    case CM384_VMINS:
      return minimum(a, b);
    case CM384_VABS:
      return std::fabs(a);
    case CM384_VRELU:
      return maximum(a, 0.0f);
    case CM384_VSQRT:
      return std::sqrt(a);
    case CM384_VREC:
      return 1.0f / a;
    case CM384_VDUP:
      return b;
    case CM384_VCOPY:
      return a;
    default:
      ADD_FAILURE();
      return d;
  }
}

const int kFloatBinary[] = {CM384_VADD, CM384_VSUB, CM384_VMUL, CM384_VDIV, CM384_VMAX, CM384_VMIN};
const int kFloatScalar[] = {CM384_VADDS, CM384_VMULS, CM384_VMAXS, CM384_VMINS, CM384_VDUP};
const int kFloatUnary[] = {CM384_VABS, CM384_VRELU, CM384_VSQRT, CM384_VREC, CM384_VCOPY};

TEST(VectorOperations, F32) {
  const auto check = [](int op, bool scalar) {
    check_operation<float>(op, CM384_F32, scalar, -3.25f,
                           [op](float a, float b, float d) { return reference(op, a, b, d); });
  };
  for (const int op : kFloatBinary) check(op, false);
  for (const int op : kFloatScalar) check(op, true);
  for (const int op : kFloatUnary) check(op, false);
  check_operation<float>(CM384_VEXP, CM384_F32, false, 0, [](float a, float, float) { return exp_f32(a); });
  check_operation<float>(CM384_VLN, CM384_F32, false, 0, [](float a, float, float) { return ln_f32(a); });
  check_operation<float>(CM384_VRSQRT, CM384_F32, false, 0,
                         [](float a, float, float) { return 1.0f / std::sqrt(a); });
  check_operation<float>(CM384_VMADD, CM384_F32, false, 0, [](float a, float b, float d) {
    const volatile float product = a * b;
    return product + d;
  });
  check_operation<float>(CM384_VAXPY, CM384_F32, true, 1.5f, [](float a, float b, float d) {
    const volatile float product = a * b;
    return product + d;
  });
}

TEST(VectorOperations, F16RoundsAfterEachOperation) {
  const auto check = [](int op, bool scalar) {
    check_operation<std::uint16_t>(
        op, CM384_F16, scalar, f32_to_f16(-3.25f), [op](std::uint16_t a, std::uint16_t b, std::uint16_t d) {
          return f32_to_f16(reference(op, f16_to_f32(a), f16_to_f32(b), f16_to_f32(d)));
        });
  };
  for (const int op : kFloatBinary) check(op, false);
  for (const int op : kFloatScalar) check(op, true);
  for (const int op : kFloatUnary) check(op, false);
  check_operation<std::uint16_t>(
      CM384_VMADD, CM384_F16, false, 0, [](std::uint16_t a, std::uint16_t b, std::uint16_t d) {
        return f32_to_f16(round_to_f16(f16_to_f32(a) * f16_to_f32(b)) + f16_to_f32(d));
      });
}

template <class T, class U>
void check_integers(int type) {
  const T k = static_cast<T>(0x7ffe);
  const auto two = [type](int op, auto f) { check_operation<T>(op, type, false, T{0}, f); };
  const auto one = [type, k](int op, auto f) { check_operation<T>(op, type, true, k, f); };
  const auto wrap = [](auto v) { return static_cast<T>(static_cast<U>(v)); };
  using I = std::int64_t;
  two(CM384_VADD, [=](T a, T b, T) { return wrap(I{a} + b); });
  two(CM384_VSUB, [=](T a, T b, T) { return wrap(I{a} - b); });
  two(CM384_VMUL, [=](T a, T b, T) { return wrap(I{a} * b); });
  two(CM384_VMAX, [](T a, T b, T) { return std::max(a, b); });
  two(CM384_VMIN, [](T a, T b, T) { return std::min(a, b); });
  two(CM384_VABS, [=](T a, T, T) { return a < 0 ? wrap(-I{a}) : a; });
  two(CM384_VRELU, [](T a, T, T) { return std::max(a, T{0}); });
  two(CM384_VAND, [=](T a, T b, T) { return wrap(a & b); });
  two(CM384_VOR, [=](T a, T b, T) { return wrap(a | b); });
  two(CM384_VNOT, [=](T a, T, T) { return wrap(~a); });
  two(CM384_VCOPY, [](T a, T, T) { return a; });
  two(CM384_VMADD, [=](T a, T b, T d) { return wrap(I{wrap(I{a} * b)} + d); });
  one(CM384_VADDS, [=](T a, T b, T) { return wrap(I{a} + b); });
  one(CM384_VMULS, [=](T a, T b, T) { return wrap(I{a} * b); });
  one(CM384_VMAXS, [](T a, T b, T) { return std::max(a, b); });
  one(CM384_VMINS, [](T a, T b, T) { return std::min(a, b); });
  one(CM384_VDUP, [](T, T b, T) { return b; });
  one(CM384_VAXPY, [=](T a, T b, T d) { return wrap(I{wrap(I{a} * b)} + d); });
  for (const int by : {0, 1, 5, static_cast<int>(sizeof(T)) * 8 - 1, static_cast<int>(sizeof(T)) * 8, 100}) {
    const bool all = by >= static_cast<int>(sizeof(T)) * 8;
    const T bits = static_cast<T>(by);
    check_operation<T>(CM384_VSHLS, type, true, bits,
                       [=](T a, T, T) { return all ? T{0} : wrap(static_cast<std::uint64_t>(a) << by); });
    check_operation<T>(CM384_VSHRS, type, true, bits,
                       [=](T a, T, T) { return wrap(I{a} >> (all ? 63 : by)); });
  }
}
TEST(VectorOperations, IntegersWrap) {
  check_integers<std::int32_t, std::uint32_t>(CM384_S32);
  check_integers<std::int16_t, std::uint16_t>(CM384_S16);
}

// Casts: element i of a repeat at its place on either side.
template <class From, class To, class F>
void check_cast(int operation, int rounding, const F& f) {
  std::mt19937 random(77);
  const std::uint64_t from_blocks = 2 * sizeof(From), to_blocks = 2 * sizeof(To);
  const Shape shapes[] = {
      {0, 0x10000, 0, 5, {1, 1, 1}, {to_blocks, from_blocks, 0}, kOnes, 0},
      {0x20, 0x10fe0, 0, 4, {2, 3, 1}, {to_blocks * 2, from_blocks * 3 + 1, 0}, kOnes, kOnes},
      {0x40, 0x40, 0, 1, {1, 1, 1}, {0, 0, 0}, kOnes, 0},
      {0, 0x10000, 0, 3, {1, 1, 1}, {to_blocks, from_blocks, 0}, 0x123456789abcdef0u, 0}};
  for (const Shape& s : shapes) {
    const auto before = filled(random, std::is_same_v<From, float> ? CM384_F32 : CM384_S32);
    const auto after = performed(make(CM384_CLASS_CONVERT, operation, rounding, s, 0), s, before);
    auto expected = before;
    for (std::uint32_t r = 0; r < s.repeats; ++r) {
      for (std::uint32_t e = 0; e < 64; ++e) {
        if (!element_on(s, e)) continue;
        const From x =
            get<From>(before, element_offset(s.source0, s.blocks[1], s.strides[1], r, e, sizeof(From)));
        put(expected, element_offset(s.destination, s.blocks[0], s.strides[0], r, e, sizeof(To)),
            static_cast<To>(f(x)));
      }
    }
    ASSERT_TRUE(std::equal(after.begin(), after.end(), expected.begin()))
        << "cast " << operation << "/" << rounding;
  }
}

TEST(VectorOperations, CastsInAllRoundings) {
  using U16 = std::uint16_t;
  using S32 = std::int32_t;
  for (int m = 0; m < 4; ++m) {
    const auto mode = static_cast<Rounding>(m);
    check_cast<U16, float>(CM384_BF16_TO_F32, m, [](U16 x) { return bf16_to_f32(x); });
    check_cast<float, U16>(CM384_F32_TO_BF16, m, [=](float x) { return f32_to_bf16(x, mode); });
    check_cast<U16, float>(CM384_F16_TO_F32, m, [](U16 x) { return f16_to_f32(x); });
    check_cast<float, U16>(CM384_F32_TO_F16, m, [=](float x) { return f32_to_f16(x, mode); });
    check_cast<float, S32>(CM384_F32_TO_S32, m, [=](float x) { return f32_to_s32(x, mode); });
    check_cast<S32, float>(CM384_S32_TO_F32, m, [=](S32 x) { return s32_to_f32(x, mode); });
    check_cast<S32, U16>(CM384_S32_TO_F16, m, [=](S32 x) { return s32_to_f16(x, mode); });
    check_cast<U16, std::int8_t>(CM384_F16_TO_S8, m, [=](U16 x) { return f16_to_s8(x, mode); });
    check_cast<std::int8_t, U16>(CM384_S8_TO_F16, m, [](std::int8_t x) { return f32_to_f16(x); });
    check_cast<float, float>(CM384_F32_TO_F32, m, [=](float x) { return round_integral(x, mode); });
    check_cast<U16, S32>(CM384_F16_TO_S32, m, [=](U16 x) { return f32_to_s32(f16_to_f32(x), mode); });
    check_cast<S32, std::int16_t>(CM384_S32_TO_S16, m, [](S32 x) { return s32_to_s16(x); });
    check_cast<std::int16_t, S32>(CM384_S16_TO_S32, m, [](std::int16_t x) { return x; });
  }
}

std::string error_of(const PipeInstruction& i) {
  try {
    decode_vector(i, kOnes, kOnes);
  } catch (const MachineError& e) {
    return e.what();
  }
  return "";
}

TEST(VectorOperations, WhatTheIsaDoesNotDefineIsAnErrorThatNamesThePc) {
  Shape s = kShapes[0];
  EXPECT_EQ(error_of(make(CM384_CLASS_VECTOR, CM384_VADD, CM384_F32, s, 0)), "");
  EXPECT_NE(error_of(make(CM384_CLASS_VECTOR, CM384_VEXP, CM384_S32, s, 0)).find("0x80001234"),
            std::string::npos);
  EXPECT_NE(error_of(make(CM384_CLASS_VECTOR, 28, CM384_F32, s, 0)), "");
  EXPECT_NE(error_of(make(CM384_CLASS_CONVERT, 24, 0, s, 0)), "");
  EXPECT_NE(error_of(make(CM384_CLASS_VECTOR, CM384_VADD, CM384_F32, s, 4)), "");  // misaligned source 1
  s.destination = kUBufferBytes - 9 * 256;
  EXPECT_EQ(error_of(make(CM384_CLASS_VECTOR, CM384_VABS, CM384_F32, s, 0)), "");
  s.destination += 32;  // one block beyond the end
  EXPECT_NE(error_of(make(CM384_CLASS_VECTOR, CM384_VABS, CM384_F32, s, 0)), "");
  s = kShapes[0];
  s.repeats = 0;
  EXPECT_NE(error_of(make(CM384_CLASS_VECTOR, CM384_VABS, CM384_F32, s, 0)), "");
}

}  // namespace
}  // namespace cm384::npu::operations_test
