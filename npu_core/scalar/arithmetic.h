// Integer and single-precision arithmetic of the interpreter's operations.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "npu_core/scalar/float32.h"

namespace cm384::npu::arithmetic {

using S32 = std::int32_t;
using S64 = std::int64_t;
using U32 = std::uint32_t;
using U64 = std::uint64_t;
__extension__ typedef __int128 S128;
__extension__ typedef unsigned __int128 U128;

inline U64 sext(U32 value) {
  return static_cast<U64>(static_cast<S64>(static_cast<S32>(value)));
}
inline S64 s(U64 value) {
  return static_cast<S64>(value);
}
inline U32 low(U64 value) {
  return static_cast<U32>(value);
}

inline U64 divide(U64 a, U64 b) {
  if (b == 0) return ~U64{0};
  if (s(a) == std::numeric_limits<S64>::min() && b == ~U64{0}) return a;
  return static_cast<U64>(s(a) / s(b));
}
inline U64 remainder(U64 a, U64 b) {
  if (b == 0) return a;
  if (b == ~U64{0}) return 0;
  return static_cast<U64>(s(a) % s(b));
}
inline U64 divide_word(U64 a, U64 b) {
  const S64 x = s(sext(low(a))), y = s(sext(low(b)));
  return y == 0 ? ~U64{0} : sext(low(static_cast<U64>(x / y)));
}
inline U64 remainder_word(U64 a, U64 b) {
  const S64 x = s(sext(low(a))), y = s(sext(low(b)));
  return y == 0 ? static_cast<U64>(x) : static_cast<U64>(x % y);
}

inline float to_float(U32 bits) {
  return std::bit_cast<float>(bits);
}
inline U32 to_bits(float value) {
  return value != value ? float32::kCanonicalNan : std::bit_cast<U32>(value);
}

// a * b + c, rounded once to nearest even, from double-precision operations: the product of two floats is
// exact in double; the sum is rounded to odd there, so that rounding it again to float is right.
inline float fused(float a, float b, float c) {
  const double product = static_cast<double>(a) * static_cast<double>(b);
  const double addend = static_cast<double>(c);
  double sum = product + addend;
  if (!std::isfinite(sum)) return static_cast<float>(sum);
  const double part = sum - product;
  const double error = (product - (sum - part)) + (addend - part);
  if (error != 0 && (std::bit_cast<U64>(sum) & 1) == 0) {
    const bool away = (error > 0) == (sum > 0);
    sum = std::bit_cast<double>(std::bit_cast<U64>(sum) + (away ? U64{1} : ~U64{0}));
  }
  return static_cast<float>(sum);
}

}  // namespace cm384::npu::arithmetic
