// Number formats against independent references: neighbours found by search, transcendentals in FP64.
#include "npu_core/vector/numeric.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace cm384::npu::numeric_test {
namespace {

const Rounding kModes[] = {Rounding::nearest_even, Rounding::floor,        Rounding::ceil,
                           Rounding::truncate,     Rounding::nearest_away, Rounding::to_odd};

double value_of_f16(std::uint16_t v) {
  const int exponent = v >> 10 & 31;
  const int mantissa = v & 1023;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return (v & 0x8000) != 0 ? -magnitude : magnitude;
}

// Rounds |x| between the finite magnitudes 0..largest of a format (as bits), the next one standing for
// infinity.
template <class Value>
std::uint16_t reference_round(float x, Rounding mode, std::uint16_t infinity, Value value) {
  const double magnitude = std::fabs(static_cast<double>(x));
  const bool negative = std::signbit(x);
  std::uint32_t low = 0, high = infinity;
  while (high - low > 1) {
    const std::uint32_t middle = (low + high) / 2;
    (value(static_cast<std::uint16_t>(middle)) <= magnitude ? low : high) = middle;
  }
  std::uint32_t result = low;
  const double below = value(static_cast<std::uint16_t>(low));
  const double above = value(static_cast<std::uint16_t>(high));
  if (std::isinf(x)) {
    result = infinity;
  } else if (below != magnitude) {
    const bool up = mode == Rounding::nearest_even
                        ? magnitude - below > above - magnitude ||
                              (magnitude - below == above - magnitude && (low & 1) != 0)
                    : mode == Rounding::floor        ? negative
                    : mode == Rounding::ceil         ? !negative
                    : mode == Rounding::nearest_away ? magnitude - below >= above - magnitude
                    : mode == Rounding::to_odd       ? (low & 1) == 0
                                                     : false;
    if (up) result = high;
  }
  return static_cast<std::uint16_t>(result | (negative ? 0x8000u : 0u));
}

std::vector<float> interesting_floats() {
  std::vector<float> list = {0.0f,
                             -0.0f,
                             1.0f,
                             -1.0f,
                             65504.0f,
                             65519.0f,
                             65520.0f,
                             65536.0f,
                             -65520.0f,
                             1e-8f,
                             5.9e-8f,
                             2.9e-8f,
                             2.98023224e-8f,
                             6.1e-5f,
                             6.0975e-5f,
                             0.5f,
                             1.5f,
                             2.5f,
                             -2.5f,
                             1e-40f,
                             -1e-45f,
                             3.4e38f,
                             -3.4e38f,
                             0.1f,
                             127.5f,
                             -128.5f,
                             8388607.5f,
                             2147483520.0f,
                             2147483648.0f,
                             -2147483648.0f,
                             std::numeric_limits<float>::infinity(),
                             -std::numeric_limits<float>::infinity()};
  std::mt19937 random(5);
  for (int i = 0; i < 200000; ++i) {
    const auto f = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (!std::isnan(f)) list.push_back(f);
  }
  for (int i = 0; i < 100000; ++i) {  // in the range of FP16
    const auto exponent = static_cast<std::uint32_t>(100 + random() % 45);
    list.push_back(
        std::bit_cast<float>((static_cast<std::uint32_t>(random()) & 0x807fffffu) | exponent << 23));
  }
  return list;
}

TEST(Numeric, EveryF16IsExactInF32AndComesBack) {
  for (std::uint32_t v = 0; v < 65536; ++v) {
    const auto bits = static_cast<std::uint16_t>(v);
    const float f = f16_to_f32(bits);
    if ((v & 0x7c00) == 0x7c00) {
      EXPECT_EQ(std::isnan(f), (v & 0x3ff) != 0) << v;
      if (!std::isnan(f)) {
        EXPECT_EQ(f32_to_f16(f), bits);
      }
      continue;
    }
    ASSERT_EQ(static_cast<double>(f), value_of_f16(bits)) << v;
    ASSERT_EQ(std::signbit(f), (v & 0x8000) != 0);
    for (const Rounding mode : kModes) ASSERT_EQ(f32_to_f16(f, mode), bits) << v;
  }
}

TEST(Numeric, F16RoundsAsTheNeighbourSearch) {
  const auto value = [](std::uint16_t v) { return value_of_f16(v); };
  for (const float x : interesting_floats()) {
    for (const Rounding mode : kModes) {
      ASSERT_EQ(f32_to_f16(x, mode), reference_round(x, mode, 0x7c00, value))
          << x << " " << static_cast<int>(mode);
    }
    ASSERT_EQ(f32_to_f16(x), reference_round(x, Rounding::nearest_even, 0x7c00, value)) << x;
  }
  EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(std::nanf("")))));
}

TEST(Numeric, Bf16RoundsAsTheNeighbourSearch) {
  // The step beyond the largest finite value is 2^128.
  const auto value = [](std::uint16_t v) {
    return v == 0x7f80 ? std::ldexp(1.0, 128) : static_cast<double>(bf16_to_f32(v));
  };
  for (const float x : interesting_floats()) {
    for (const Rounding mode : kModes) {
      ASSERT_EQ(f32_to_bf16(x, mode), reference_round(x, mode, 0x7f80, value))
          << x << " " << static_cast<int>(mode);
    }
  }
  EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(std::bit_cast<float>(0x7f800001u)))));
  EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(std::bit_cast<float>(0xffffffffu)))));
}

double rounded(double x, Rounding mode) {
  switch (mode) {
    case Rounding::nearest_even:
      return std::nearbyint(x);
    case Rounding::floor:
      return std::floor(x);
    case Rounding::ceil:
      return std::ceil(x);
    case Rounding::nearest_away:
      return std::round(x);
    case Rounding::to_odd: {
      const double cut = std::trunc(x);
      return cut == x || std::fmod(cut, 2) != 0 ? cut : cut + std::copysign(1.0, x);
    }
    default:
      return std::trunc(x);
  }
}

TEST(Numeric, IntegersSaturateAndRound) {
  for (const float x : interesting_floats()) {
    for (const Rounding mode : kModes) {
      const double r = rounded(x, mode);
      ASSERT_EQ(round_integral(x, mode), static_cast<float>(r)) << x;
      ASSERT_EQ(std::signbit(round_integral(x, mode)), std::signbit(x)) << x;
      const double clamped = std::clamp(r, -2147483648.0, 2147483647.0);
      ASSERT_EQ(f32_to_s32(x, mode), static_cast<std::int32_t>(clamped)) << x;
      const std::uint16_t h = f32_to_f16(x);
      ASSERT_EQ(f16_to_s8(h, mode), static_cast<int>(std::clamp(rounded(f16_to_f32(h), mode), -128.0, 127.0)))
          << x;
    }
  }
  EXPECT_EQ(f32_to_s32(std::nanf(""), Rounding::nearest_even), 0);
  EXPECT_EQ(f16_to_s8(0x7e00, Rounding::floor), 0);
  EXPECT_EQ(f16_to_s8(0x7c00, Rounding::floor), 127);
  EXPECT_EQ(s32_to_s16(40000), 32767);
  EXPECT_EQ(s32_to_s16(-40000), -32768);
}

TEST(Numeric, IntegersToFloats) {
  std::mt19937 random(9);
  for (int i = 0; i < 100000; ++i) {
    const auto v = static_cast<std::int32_t>(random());
    const double exact = v;
    const float down = s32_to_f32(v, Rounding::floor), up = s32_to_f32(v, Rounding::ceil);
    ASSERT_LE(down, exact);
    ASSERT_GE(up, exact);
    ASSERT_TRUE(down == up ? down == exact : std::nextafterf(down, up) == up) << v;
    ASSERT_EQ(s32_to_f32(v, Rounding::truncate), v > 0 ? down : up);
    const bool tie = exact - down == up - exact, low = exact - down < up - exact;
    ASSERT_EQ(s32_to_f32(v, Rounding::nearest_away), tie ? (v > 0 ? up : down) : low ? down : up) << v;
    const bool odd = (std::bit_cast<std::uint32_t>(down) & 1) != 0;
    ASSERT_EQ(s32_to_f32(v, Rounding::to_odd), down == up || odd ? down : up) << v;
  }
  EXPECT_EQ(s32_to_f16(70000, Rounding::nearest_even), 0x7c00);
  EXPECT_EQ(s32_to_f16(70000, Rounding::truncate), 0x7bff);
  EXPECT_EQ(s32_to_f16(-2049, Rounding::nearest_even), f32_to_f16(-2048.0f));
}

TEST(Numeric, ExpAndLnAreWithinOneUnit) {
  std::mt19937 random(11);
  std::uniform_real_distribution<float> exponents(-103.0f, 88.7f);
  for (int i = 0; i < 200000; ++i) {
    const float x = exponents(random);
    const float wanted = static_cast<float>(std::exp(static_cast<double>(x)));
    const float got = exp_f32(x);
    ASSERT_TRUE(got == wanted || std::nextafterf(wanted, got) == got) << x;
    const auto y = std::bit_cast<float>(static_cast<std::uint32_t>(random()) & 0x7fffffffu);
    if (std::isnan(y) || y == 0) continue;
    const float ln_wanted = static_cast<float>(std::log(static_cast<double>(y)));
    const float ln_got = ln_f32(y);
    ASSERT_TRUE(ln_got == ln_wanted || std::nextafterf(ln_wanted, ln_got) == ln_got) << y;
  }
  EXPECT_EQ(exp_f32(0.0f), 1.0f);
  EXPECT_TRUE(std::isinf(exp_f32(89.0f)));
  EXPECT_EQ(exp_f32(-std::numeric_limits<float>::infinity()), 0.0f);
  EXPECT_EQ(ln_f32(1.0f), 0.0f);
  EXPECT_TRUE(std::isnan(ln_f32(-1.0f)));
  EXPECT_EQ(ln_f32(0.0f), -std::numeric_limits<float>::infinity());
}

TEST(Numeric, MaximumKeepsNan) {
  const float nan = std::nanf("");
  EXPECT_TRUE(std::isnan(max_f32(nan, 1.0f)));
  EXPECT_TRUE(std::isnan(max_f32(1.0f, nan)));
  EXPECT_TRUE(std::isnan(min_f32(nan, 1.0f)));
  EXPECT_EQ(max_f32(-3.0f, 2.0f), 2.0f);
  EXPECT_EQ(min_f32(-3.0f, 2.0f), -3.0f);
}

}  // namespace
}  // namespace cm384::npu::numeric_test
