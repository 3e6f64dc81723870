// Elementary functions of a fixed order against those of the library, and their bits.
#include "traces/fixed_math.h"

#include <gtest/gtest.h>

#include <bit>
#include <boost/math/special_functions/erf.hpp>
#include <cmath>

#include "traces/random.h"

namespace cm384::traces::fixed_math_test {
namespace {

// Units in the last place between a value and the right one.
double off(double value, long double right) {
  const double near = std::abs(static_cast<double>(right));
  return static_cast<double>(std::abs(value - right)) / (std::nextafter(near, HUGE_VAL) - near);
}

TEST(FixedMath, IsWithinTwoUnitsInTheLastPlace) {
  Random random(1);
  for (int n = 0; n < 200'000; ++n) {
    const double u = random.real() + 0x1p-54, wide = std::exp(1'400 * (random.real() - 0.5));
    ASSERT_LE(off(natural_log(u), std::log(static_cast<long double>(u))), 2) << u;
    ASSERT_LE(off(natural_log(wide), std::log(static_cast<long double>(wide))), 2) << wide;
    for (const double x : {1'400 * (u - 0.5), 4 * u - 2})
      ASSERT_LE(off(exponential(x), std::exp(static_cast<long double>(x))), 2) << x;
  }
  EXPECT_EQ(natural_log(1), 0);
  EXPECT_EQ(exponential(0), 1);
  EXPECT_EQ(power(0.5, 3), 0.125);
  EXPECT_EQ(power(7, 0), 1);
}

TEST(FixedMath, InvertsTheNormalDistribution) {
  Random random(2);
  for (int n = 0; n < 20'000; ++n) {
    const double share = random.real() * std::ldexp(1.0, -static_cast<int>(random.below(52))) + 0x1p-54;
    const double right = -std::sqrt(2.0) * boost::math::erfc_inv(2 * share);
    ASSERT_NEAR(normal_quantile(share), right, 3e-15 * std::abs(right) + 1e-16) << share;
    if (share > 0x1p-20 && share < 0.5) {
      ASSERT_NEAR(normal_quantile(1 - share), -right, 1e-9) << share;
    }
  }
  EXPECT_EQ(normal_quantile(0.5), 0);
}

// Changes with any change of the order of operations, and by nothing else: rows of runs hang on it.
TEST(FixedMath, HasTheSameBitsEverywhere) {
  Random random(3);
  std::uint64_t bits = 0;
  const auto add = [&](double x) { bits = mix(bits ^ std::bit_cast<std::uint64_t>(x)); };
  for (int n = 0; n < 10'000; ++n) {
    const double u = random.real() * 0.999 + 0.0005;
    add(natural_log(u));
    add(exponential(20 * (u - 0.5)));
    add(normal_quantile(u));
    add(power(u, 5));
  }
  EXPECT_EQ(bits, 9015754775284791469u);
}

}  // namespace
}  // namespace cm384::traces::fixed_math_test
