// Number formats of the vector unit: conversions among FP32, BF16, FP16 and integers in all six roundings,
// and exp and ln. Bit-exact on every machine: integer arithmetic and IEEE basic operations only. FP16 and
// BF16 values are carried as their bits. Also used by the host's reference computations.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace cm384::npu {

// Rounding modes, with the values of enum cm384_rounding.
enum class Rounding : std::uint8_t {
  nearest_even = 0,
  floor = 1,
  ceil = 2,
  truncate = 3,
  nearest_away = 4,
  to_odd = 5
};

inline bool is_nan(float x) {
  return x != x;
}
inline float with_sign_of(float magnitude, float sign) {
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(magnitude) & 0x7fffffffu) |
                              (std::bit_cast<std::uint32_t>(sign) & 0x80000000u));
}

// Whether a magnitude that was cut at `halfway * 2` grows by one in the last place kept.
inline bool rounds_up(std::uint32_t kept, std::uint32_t rest, std::uint32_t halfway, bool negative,
                      Rounding mode) {
  switch (mode) {
    case Rounding::nearest_even:
      return rest > halfway || (rest == halfway && (kept & 1) != 0);
    case Rounding::floor:
      return negative && rest != 0;
    case Rounding::ceil:
      return !negative && rest != 0;
    case Rounding::truncate:
      return false;
    case Rounding::nearest_away:
      return rest >= halfway;
    case Rounding::to_odd:
      return rest != 0 && (kept & 1) == 0;
  }
  return false;
}

// ---- BF16 ----
inline float bf16_to_f32(std::uint16_t v) {
  return std::bit_cast<float>(std::uint32_t{v} << 16);
}
// Nearest even, without branches. NaN stays a quiet NaN.
inline std::uint16_t f32_to_bf16(float x) {
  const auto u = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  const std::uint32_t nan = (u >> 16) | 0x40u;
  return static_cast<std::uint16_t>((u & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
}
inline std::uint16_t f32_to_bf16(float x, Rounding mode) {
  if (mode == Rounding::nearest_even || is_nan(x)) return f32_to_bf16(x);
  const auto u = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t kept = u >> 16;
  return static_cast<std::uint16_t>(kept + (rounds_up(kept, u & 0xffffu, 0x8000u, (u >> 31) != 0, mode)));
}

// ---- FP16 ----
inline float f16_to_f32(std::uint16_t v) {
  constexpr std::uint32_t kExponent = 0x7c00u << 13;
  const std::uint32_t sign = (v & 0x8000u) << 16;
  const std::uint32_t shifted = (v & 0x7fffu) << 13;
  const std::uint32_t exponent = shifted & kExponent;
  const std::uint32_t normal = shifted + (112u << 23);
  const std::uint32_t special = normal + (112u << 23);
  const std::uint32_t subnormal =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(normal + (1u << 23)) - 0x1p-14f);
  const std::uint32_t bits = exponent == kExponent ? special : exponent == 0 ? subnormal : normal;
  return std::bit_cast<float>(bits | sign);
}
// Nearest even, without branches. Overflow gives infinity, NaN a quiet NaN.
inline std::uint16_t f32_to_f16(float x) {
  constexpr std::uint32_t kMagic = ((127u - 15u) + (23u - 10u) + 1u) << 23;
  const auto u = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t sign = u & 0x80000000u;
  const std::uint32_t a = u ^ sign;
  const std::uint32_t normal = (a - (112u << 23) + 0xfffu + ((a >> 13) & 1u)) >> 13;
  const std::uint32_t subnormal =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(a) + std::bit_cast<float>(kMagic)) - kMagic;
  const std::uint32_t large = a > 0x7f800000u ? 0x7e00u : 0x7c00u;
  const std::uint32_t small = a < (113u << 23) ? subnormal : normal;
  return static_cast<std::uint16_t>((a >= (143u << 23) ? large : small) | (sign >> 16));
}
std::uint16_t f32_to_f16(float x, Rounding mode);
// Rounds an intermediate result to FP16 precision.
inline float round_to_f16(float x) {
  return f16_to_f32(f32_to_f16(x));
}

// ---- integral values and integers ----
inline float round_integral_nearest(float x) {
  constexpr float kTwo23 = 8388608.0f;
  const float a = with_sign_of(x, 1.0f);
  const float rounded = (a + kTwo23) - kTwo23;
  return a < kTwo23 ? with_sign_of(rounded, x) : x;
}
inline float round_integral(float x, Rounding mode) {
  if (mode == Rounding::nearest_even) return round_integral_nearest(x);
  if (!(with_sign_of(x, 1.0f) < 8388608.0f)) return x;
  const auto whole = static_cast<std::int32_t>(x);
  float t = static_cast<float>(whole);
  if (mode == Rounding::floor && t > x) t -= 1.0f;
  if (mode == Rounding::ceil && t < x) t += 1.0f;
  const float outwards = with_sign_of(1.0f, x);
  if (mode == Rounding::nearest_away && with_sign_of(x - t, 1.0f) >= 0.5f) t += outwards;
  if (mode == Rounding::to_odd && t != x && (whole & 1) == 0) t += outwards;
  return with_sign_of(t, x);
}
// An integral value to an integer, saturating; NaN gives 0.
inline std::int32_t integral_to_s32(float r) {
  const float low = r < -2147483648.0f ? -2147483648.0f : r;
  const float inside = low > 2147483520.0f ? 2147483520.0f : low;
  const std::int32_t v = static_cast<std::int32_t>(is_nan(inside) ? 0.0f : inside);
  return r >= 2147483648.0f ? std::numeric_limits<std::int32_t>::max() : v;
}
inline std::int8_t integral_to_s8(float r) {
  const float low = r < -128.0f ? -128.0f : r;
  const float inside = low > 127.0f ? 127.0f : low;
  return static_cast<std::int8_t>(static_cast<std::int32_t>(is_nan(inside) ? 0.0f : inside));
}
inline std::int32_t f32_to_s32(float x, Rounding mode) {
  return integral_to_s32(round_integral(x, mode));
}
inline std::int8_t f16_to_s8(std::uint16_t v, Rounding mode) {
  return integral_to_s8(round_integral(f16_to_f32(v), mode));
}
float s32_to_f32(std::int32_t v, Rounding mode);
float s64_to_f32(std::int64_t v, Rounding mode);
inline std::uint16_t s32_to_f16(std::int32_t v, Rounding mode) {
  // Integers that FP32 does not hold exactly are far beyond FP16's range.
  return f32_to_f16(static_cast<float>(v), mode);
}
inline std::int16_t s32_to_s16(std::int32_t v) {
  return static_cast<std::int16_t>(v > 32767 ? 32767 : v < -32768 ? -32768 : v);
}

// ---- functions ----
// Within 1 unit in the last place; own polynomials, since C libraries differ.
float exp_f32(float x);
float ln_f32(float x);

// MAX and MIN of the vector unit: NaN when an operand is NaN, b when both are equal.
inline float max_f32(float a, float b) {
  return (a > b || is_nan(a)) ? a : b;
}
inline float min_f32(float a, float b) {
  return (a < b || is_nan(a)) ? a : b;
}

}  // namespace cm384::npu
