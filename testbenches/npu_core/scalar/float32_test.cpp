// The integer float unit against the host's: every rounding mode the host has, results and flags.
#include "npu_core/scalar/float32.h"

#include <gtest/gtest.h>

#include <bit>
#include <cfenv>
#include <cmath>
#include <random>

namespace cm384::npu::float32::float32_test {
namespace {

std::uint32_t bits(float value) {
  return value != value ? kCanonicalNan : std::bit_cast<std::uint32_t>(value);
}

std::uint8_t host_flags() {
  const int raised = std::fetestexcept(FE_ALL_EXCEPT);
  return static_cast<std::uint8_t>(
      ((raised & FE_INVALID) != 0 ? invalid : 0) | ((raised & FE_DIVBYZERO) != 0 ? divide_by_zero : 0) |
      ((raised & FE_OVERFLOW) != 0 ? overflow : 0) | ((raised & FE_UNDERFLOW) != 0 ? underflow : 0) |
      ((raised & FE_INEXACT) != 0 ? inexact : 0));
}

// Encodings with many special cases among them.
class Numbers {
 public:
  std::uint32_t next() {
    static constexpr std::uint32_t kSpecial[] = {0,          1,          0x007fffff, 0x00800000, 0x00800001,
                                                 0x3f800000, 0x3f800001, 0x3f7fffff, 0x7f7fffff, 0x7f800000,
                                                 0x7f800001, 0x7fc00000, 0x4b000000, 0x34000000, 0x33800000};
    const std::uint32_t sign = (random_() & 1u) << 31;
    switch (random_() % 5) {
      case 0:
        return sign | kSpecial[random_() % std::size(kSpecial)];
      case 1:  // near one: additions that cancel
        return sign | (0x3f000000u + (static_cast<std::uint32_t>(random_()) & 0x01ffffffu));
      case 2:  // few significant bits: exact results and ties
        return sign | (static_cast<std::uint32_t>(random_()) & 0x7ff80000u);
      case 3:  // small
        return sign | (static_cast<std::uint32_t>(random_()) & 0x01ffffffu);
      default:
        return static_cast<std::uint32_t>(random_());
    }
  }

 private:
  std::mt19937 random_{7};
};

struct Mode {
  Rounding ours;
  int host;
};
constexpr Mode kModes[] = {{rne, FE_TONEAREST}, {rtz, FE_TOWARDZERO}, {rdn, FE_DOWNWARD}, {rup, FE_UPWARD}};

template <class Ours, class Host>
void compare(const char* what, Ours ours, Host host) {
  Numbers numbers;
  for (int i = 0; i < 400'000; ++i) {
    const std::uint32_t a = numbers.next(), b = numbers.next(), c = numbers.next();
    const Mode mode = kModes[i % 4];
    std::uint8_t flags = 0;
    const std::uint32_t got = ours(a, b, c, mode.ours, flags);
    volatile float x = std::bit_cast<float>(a), y = std::bit_cast<float>(b), z = std::bit_cast<float>(c);
    std::fesetround(mode.host);
    std::feclearexcept(FE_ALL_EXCEPT);
    volatile float result = host(x, y, z);
    const std::uint8_t expected_flags = host_flags();
    std::fesetround(FE_TONEAREST);
    const std::uint32_t expected = bits(result);
    ASSERT_EQ(got, expected) << what << std::hex << " of " << a << " " << b << " " << c << ", mode "
                             << mode.ours;
    ASSERT_EQ(flags, expected_flags) << what << std::hex << " of " << a << " " << b << " " << c << ", mode "
                                     << mode.ours;
  }
}

TEST(Float32, AddAsTheHost) {
  compare(
      "add", [](auto a, auto b, auto, auto r, auto& f) { return add(a, b, r, f); },
      [](float a, float b, float) { return a + b; });
}
TEST(Float32, MultiplyAsTheHost) {
  compare(
      "multiply", [](auto a, auto b, auto, auto r, auto& f) { return multiply(a, b, r, f); },
      [](float a, float b, float) { return a * b; });
}
TEST(Float32, DivideAsTheHost) {
  compare(
      "divide", [](auto a, auto b, auto, auto r, auto& f) { return divide(a, b, r, f); },
      [](float a, float b, float) { return a / b; });
}
TEST(Float32, SquareRootAsTheHost) {
  compare(
      "square root", [](auto a, auto, auto, auto r, auto& f) { return square_root(a, r, f); },
      [](float a, float, float) { return std::sqrt(a); });
}

// Ties away from zero, which the host does not have: an exact tie goes up, everything else as to nearest.
// As RISC-V has it: a NaN on either side gives the other one, two give the canonical NaN, and -0 is below +0.
TEST(Float32, MinimumAndMaximumPassOverNan) {
  constexpr std::uint32_t kQuiet = 0xffc12345, kSignaling = 0x7f812345, kMinusZero = 0x80000000;
  const std::uint32_t one = bits(1.0f), two = bits(2.0f);
  for (const auto pick : {minimum, maximum}) {
    const bool smaller = pick == minimum;
    const auto expect = [&](std::uint32_t a, std::uint32_t b, std::uint32_t wanted, int raised) {
      std::uint8_t flags = 0;
      EXPECT_EQ(pick(a, b, flags), wanted) << std::hex << a << ' ' << b;
      EXPECT_EQ(flags, raised) << std::hex << a << ' ' << b;
    };
    expect(one, two, smaller ? one : two, 0);
    expect(two, one, smaller ? one : two, 0);
    expect(0, kMinusZero, smaller ? kMinusZero : 0, 0);
    expect(kMinusZero, 0, smaller ? kMinusZero : 0, 0);
    expect(kQuiet, one, one, 0);
    expect(one, kQuiet, one, 0);
    expect(kSignaling, one, one, invalid);
    expect(one, kSignaling, one, invalid);
    expect(kQuiet, kQuiet, kCanonicalNan, 0);
    expect(kSignaling, kQuiet, kCanonicalNan, invalid);
  }
}

TEST(Float32, TiesAwayFromZero) {
  std::uint8_t flags = 0;
  EXPECT_EQ(add(0x4b800000, 0x3f800000, rmm, flags), 0x4b800001u);  // 2^24 + 1
  EXPECT_EQ(add(0x4b800000, 0x3f800000, rne, flags), 0x4b800000u);
  EXPECT_EQ(add(0xcb800000, 0xbf800000, rmm, flags), 0xcb800001u);
  EXPECT_EQ(to_int32(0x3f000000, rmm, flags), 1u);
  EXPECT_EQ(to_int32(0x3f000000, rne, flags), 0u);
  EXPECT_EQ(to_int32(0x3effffff, rmm, flags), 0u);
  Numbers numbers;
  for (int i = 0; i < 100'000; ++i) {
    const std::uint32_t a = numbers.next(), b = numbers.next();
    std::uint8_t up_flags = 0, down_flags = 0, away_flags = 0;
    const std::uint32_t away = multiply(a, b, rmm, away_flags);
    const bool is_one_of = away == multiply(a, b, rup, up_flags) || away == multiply(a, b, rdn, down_flags);
    ASSERT_TRUE(is_one_of) << std::hex << a << " " << b;
  }
}

TEST(Float32, FusedMultiplyAddRoundsOnce) {
  std::uint8_t flags = 0;
  // (1 + 2^-23)^2 - (1 + 2^-22) = 2^-46, lost when the product is rounded first.
  EXPECT_EQ(fused_multiply_add(0x3f800001, 0x3f800001, 0xbf800002, rne, flags), 0x28800000u);
  EXPECT_EQ(flags, 0);
  EXPECT_EQ(fused_multiply_add(0x7f800000, 0, 0x7fc00000, rne, flags), kCanonicalNan);
  EXPECT_EQ(flags, invalid);
  flags = 0;
  EXPECT_EQ(fused_multiply_add(0x3f800000, 0x3f800000, 0xbf800000, rdn, flags), kSign);
  EXPECT_EQ(fused_multiply_add(0x3f800000, 0x3f800000, 0xbf800000, rne, flags), 0u);
  EXPECT_EQ(flags, 0);
}

TEST(Float32, FusedMultiplyAddAsTheHost) {
  Numbers numbers;
  for (int i = 0; i < 400'000; ++i) {
    const std::uint32_t a = numbers.next(), b = numbers.next(), c = numbers.next();
    std::uint8_t flags = 0;
    const float expected =
        std::fma(std::bit_cast<float>(a), std::bit_cast<float>(b), std::bit_cast<float>(c));
    ASSERT_EQ(fused_multiply_add(a, b, c, rne, flags), bits(expected))
        << std::hex << a << " " << b << " " << c;
  }
}

TEST(Float32, ConversionsAreInversesWhereExact) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 100'000; ++i) {
    const auto value = static_cast<std::int64_t>(random()) >> (40 + random() % 24);
    std::uint8_t flags = 0;
    ASSERT_EQ(to_int64(from_int64(value, rne, flags), rtz, flags), static_cast<std::uint64_t>(value));
    ASSERT_EQ(flags, 0);
    const std::uint64_t wide = random() >> (random() % 64);
    ASSERT_EQ(from_uint64(wide, rne, flags), bits(static_cast<float>(wide))) << wide;
  }
}

}  // namespace
}  // namespace cm384::npu::float32::float32_test
