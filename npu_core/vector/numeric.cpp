#include "npu_core/vector/numeric.h"

#include <algorithm>

namespace cm384::npu {

std::uint16_t f32_to_f16(float x, Rounding mode) {
  if (mode == Rounding::nearest_even || is_nan(x)) return f32_to_f16(x);
  const auto u = std::bit_cast<std::uint32_t>(x);
  const bool negative = (u >> 31) != 0;
  const std::uint32_t sign = negative ? 0x8000u : 0u;
  const std::uint32_t a = u & 0x7fffffffu;
  if (a == 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7c00u);
  if (a >= (143u << 23)) {  // beyond FP16: infinity or the largest value, by the direction
    return static_cast<std::uint16_t>(sign | (rounds_up(1, 1, 1, negative, mode) ? 0x7c00u : 0x7bffu));
  }
  std::uint32_t kept = 0;
  std::uint32_t rest = 0;
  std::uint32_t halfway = 0x1000u;
  if (a >= (113u << 23)) {
    kept = (a - (112u << 23)) >> 13;
    rest = a & 0x1fffu;
  } else {
    const std::uint32_t exponent = a >> 23;
    const std::uint32_t mantissa = (a & 0x7fffffu) | (exponent != 0 ? 0x800000u : 0u);
    const std::uint32_t shift = 126u - (exponent != 0 ? exponent : 1u);
    kept = shift > 31 ? 0 : mantissa >> shift;
    rest = shift > 31 ? mantissa : mantissa & ((1u << shift) - 1u);
    halfway = 1u << std::min(shift - 1u, 31u);
  }
  return static_cast<std::uint16_t>(sign |
                                    (kept + (rounds_up(kept, rest, halfway, negative, mode) ? 1u : 0u)));
}

float s32_to_f32(std::int32_t v, Rounding mode) {
  const std::uint32_t magnitude = v < 0 ? 0u - static_cast<std::uint32_t>(v) : static_cast<std::uint32_t>(v);
  constexpr int kDigits = std::numeric_limits<float>::digits;
  const int lost = static_cast<int>(std::bit_width(magnitude)) - kDigits;
  if (mode == Rounding::nearest_even || lost <= 0) return static_cast<float>(v);
  const std::uint32_t kept = magnitude >> lost;
  const std::uint32_t rest = magnitude & ((1u << lost) - 1u);
  const std::uint32_t rounded = kept + (rounds_up(kept, rest, 1u << (lost - 1), v < 0, mode) ? 1u : 0u);
  const float result = static_cast<float>(rounded) * static_cast<float>(1u << lost);
  return v < 0 ? -result : result;
}

float s64_to_f32(std::int64_t v, Rounding mode) {
  const std::uint64_t magnitude = v < 0 ? 0u - static_cast<std::uint64_t>(v) : static_cast<std::uint64_t>(v);
  constexpr int kDigits = std::numeric_limits<float>::digits;
  const int lost = static_cast<int>(std::bit_width(magnitude)) - kDigits;
  if (mode == Rounding::nearest_even || lost <= 0) return static_cast<float>(v);
  // What is cut counts as none, below half, half, above half.
  const auto kept = static_cast<std::uint32_t>(magnitude >> lost);
  const std::uint64_t rest = magnitude & ((std::uint64_t{1} << lost) - 1),
                      half = std::uint64_t{1} << (lost - 1);
  const std::uint32_t part = rest == 0 ? 0 : rest < half ? 1 : rest == half ? 2 : 3;
  const std::uint32_t rounded = kept + (rounds_up(kept, part, 2, v < 0, mode) ? 1u : 0u);
  const float result = static_cast<float>(rounded) * static_cast<float>(std::uint64_t{1} << lost);
  return v < 0 ? -result : result;
}

float exp_f32(float x) {
  if (is_nan(x)) return x;
  if (x > 89.0f) return std::numeric_limits<float>::infinity();
  if (x < -104.0f) return 0.0f;
  constexpr double kLog2E = 1.4426950408889634074;
  constexpr double kLn2High = 0x1.62e42fefa0000p-1;
  constexpr double kLn2Low = 0x1.cf79abc9e3b39p-40;
  const double scaled = double{x} * kLog2E;
  const auto k = static_cast<std::int64_t>(scaled + (scaled < 0 ? -0.5 : 0.5));
  const double r = (double{x} - static_cast<double>(k) * kLn2High) - static_cast<double>(k) * kLn2Low;
  double p = 1.0;  // Taylor series by Horner; |r| <= 0.347, so 13 terms leave 2^-60
  for (int n = 13; n >= 1; --n) p = 1.0 + p * r / n;
  const double power = std::bit_cast<double>(static_cast<std::uint64_t>(k + 1023) << 52);
  return static_cast<float>(p * power);
}

float ln_f32(float x) {
  if (is_nan(x)) return x;
  if (x < 0) return std::numeric_limits<float>::quiet_NaN();
  if (x == 0) return -std::numeric_limits<float>::infinity();
  if (x == std::numeric_limits<float>::infinity()) return x;
  const auto bits = std::bit_cast<std::uint64_t>(double{x});  // subnormal FP32 is normal FP64
  auto e = static_cast<std::int64_t>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & ((std::uint64_t{1} << 52) - 1)) | (std::uint64_t{1023} << 52));
  if (m > 1.4142135623730951) {
    m *= 0.5;
    ++e;
  }
  // ln m = 2 artanh f with f = (m - 1) / (m + 1), |f| <= 0.1716
  const double f = (m - 1.0) / (m + 1.0);
  const double f2 = f * f;
  double s = 0.0;
  for (int n = 23; n >= 1; n -= 2) s = s * f2 + 1.0 / n;
  return static_cast<float>(static_cast<double>(e) * 0.69314718055994530942 + 2.0 * f * s);
}

}  // namespace cm384::npu
