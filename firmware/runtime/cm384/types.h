// Element types, pipes and events under Ascend C's names.
#pragma once

#include "cm384/instruction.h"
#include "firmware/abi/memory_map.h"

// Ascend C's qualifiers: GM and UBuffer addresses are plain addresses here.
#define __aicore__
#define __gm__
#define __ubuf__
#define __cbuf__
#define __ca__
#define __cb__
#define __cc__
#define __fbuf__
#define __forceinline__ inline __attribute__((always_inline))
// Kinds of kernels: `kernel build` reads them in the source.
#define __vector__
#define __cube__
#define __mix__(cube, vector)
#define __global__ __attribute__((section(".text.entry"), used))
using GM_ADDR = __gm__ uint8_t*;

// `name<<<blocks, l2, stream>>>(...)` in a macro of the source, where `kernel build` leaves it: the host's,
// not the core's. Kernels are started by a program file.
struct Cm384Launch {
  template <typename... Numbers>
  CM384_INLINE constexpr explicit Cm384Launch(const Numbers&...) {}
  template <typename... Arguments>
  CM384_INLINE constexpr Cm384Launch operator()(const Arguments&...) const {
    return *this;
  }
};
template <typename Kernel>
CM384_INLINE constexpr void operator||(Kernel*, Cm384Launch) {}

// Arithmetic in place: in FP32, rounded.
#define CM384_IN_PLACE(Type)                                                    \
  template <typename Number>                                                    \
  CM384_INLINE constexpr Type& operator+=(Number value) {                       \
    return *this = Type(static_cast<float>(*this) + static_cast<float>(value)); \
  }                                                                             \
  template <typename Number>                                                    \
  CM384_INLINE constexpr Type& operator-=(Number value) {                       \
    return *this = Type(static_cast<float>(*this) - static_cast<float>(value)); \
  }                                                                             \
  template <typename Number>                                                    \
  CM384_INLINE constexpr Type& operator*=(Number value) {                       \
    return *this = Type(static_cast<float>(*this) * static_cast<float>(value)); \
  }                                                                             \
  template <typename Number>                                                    \
  CM384_INLINE constexpr Type& operator/=(Number value) {                       \
    return *this = Type(static_cast<float>(*this) / static_cast<float>(value)); \
  }
// 16-bit floats. The scalar unit has no arithmetic on them: conversions to and from float are code, to
// nearest even.
struct half {
  uint16_t bits;
  half() = default;
  template <typename Number>
  requires(!__is_class(Number)) CM384_INLINE constexpr half(Number value)
      : bits(from_float(static_cast<float>(value))) {}
  CM384_INLINE constexpr operator float() const { return to_float(bits); }
  CM384_IN_PLACE(half)

 private:
  static constexpr uint16_t from_float(float value);
  static constexpr float to_float(uint16_t bits);
};
struct bfloat16_t {
  uint16_t bits;
  bfloat16_t() = default;
  template <typename Number>
  requires(!__is_class(Number)) CM384_INLINE constexpr bfloat16_t(Number value)
      : bits(from_float(static_cast<float>(value))) {}
  CM384_INLINE constexpr operator float() const {
    return __builtin_bit_cast(float, static_cast<uint32_t>(bits) << 16);
  }
  CM384_IN_PLACE(bfloat16_t)

 private:
  static constexpr uint16_t from_float(float value) {
    const auto u = __builtin_bit_cast(uint32_t, value);
    if ((u & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>(u >> 16 | 0x40u);
    return static_cast<uint16_t>((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
  }
};
#undef CM384_IN_PLACE
using float16_t = half;

constexpr uint16_t half::from_float(float value) {
  const auto u = __builtin_bit_cast(uint32_t, value);
  const uint32_t sign = u >> 16 & 0x8000u, a = u & 0x7fffffffu;
  if (a > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);
  if (a >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // 65,520 and more
  const uint32_t exponent = a >> 23;
  if (exponent >= 113)
    return static_cast<uint16_t>(sign | (a - (112u << 23) + 0xfffu + (a >> 13 & 1u)) >> 13);
  if (exponent < 102) return static_cast<uint16_t>(sign);
  const uint32_t shift = 126u - exponent, mantissa = (a & 0x7fffffu) | 0x800000u;
  const uint32_t kept = mantissa >> shift, rest = mantissa & ((1u << shift) - 1u),
                 middle = 1u << (shift - 1u);
  return static_cast<uint16_t>(sign | (kept + (rest > middle || (rest == middle && (kept & 1u)) ? 1u : 0u)));
}
constexpr float half::to_float(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16, magnitude = bits & 0x7fffu;
  if (magnitude >= 0x7c00u) return __builtin_bit_cast(float, sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
  if (magnitude >= 0x400u) return __builtin_bit_cast(float, sign | ((magnitude << 13) + (112u << 23)));
  const float small = static_cast<float>(magnitude) * 0x1p-24f;
  return sign != 0 ? -small : small;
}

// Two in a byte, the first in the low half (assumed).
struct int4b_t {
  uint8_t bits;
};

enum pipe_t {
  PIPE_S = CM384_PIPE_S,
  PIPE_V = CM384_PIPE_V,
  PIPE_MTE1 = CM384_PIPE_MTE1,
  PIPE_MTE2 = CM384_PIPE_MTE2,
  PIPE_MTE3 = CM384_PIPE_MTE3,
  PIPE_M = CM384_PIPE_M,
  PIPE_ALL = CM384_PIPE_ALL,
  PIPE_FIX = CM384_PIPE_FIX
};

using event_t = int32_t;
inline constexpr event_t EVENT_ID0 = 0, EVENT_ID1 = 1, EVENT_ID2 = 2, EVENT_ID3 = 3, EVENT_ID4 = 4,
                         EVENT_ID5 = 5, EVENT_ID6 = 6, EVENT_ID7 = 7;

namespace AscendC {

// A flag's source and destination pipe.
enum class HardEvent {
  MTE2_V = PIPE_MTE2 | PIPE_V << 8,
  V_MTE2 = PIPE_V | PIPE_MTE2 << 8,
  MTE3_V = PIPE_MTE3 | PIPE_V << 8,
  V_MTE3 = PIPE_V | PIPE_MTE3 << 8,
  MTE2_MTE3 = PIPE_MTE2 | PIPE_MTE3 << 8,
  MTE3_MTE2 = PIPE_MTE3 | PIPE_MTE2 << 8,
  S_V = PIPE_S | PIPE_V << 8,
  V_S = PIPE_V | PIPE_S << 8,
  S_MTE2 = PIPE_S | PIPE_MTE2 << 8,
  MTE2_S = PIPE_MTE2 | PIPE_S << 8,
  S_MTE3 = PIPE_S | PIPE_MTE3 << 8,
  MTE3_S = PIPE_MTE3 | PIPE_S << 8,
  MTE2_MTE1 = PIPE_MTE2 | PIPE_MTE1 << 8,
  MTE1_MTE2 = PIPE_MTE1 | PIPE_MTE2 << 8,
  MTE1_M = PIPE_MTE1 | PIPE_M << 8,
  M_MTE1 = PIPE_M | PIPE_MTE1 << 8,
  M_MTE2 = PIPE_M | PIPE_MTE2 << 8,
  M_FIX = PIPE_M | PIPE_FIX << 8,
  FIX_M = PIPE_FIX | PIPE_M << 8,
  FIX_S = PIPE_FIX | PIPE_S << 8,
  FIX_MTE2 = PIPE_FIX | PIPE_MTE2 << 8,
  MTE2_FIX = PIPE_MTE2 | PIPE_FIX << 8,
  FIX_MTE3 = PIPE_FIX | PIPE_MTE3 << 8,
  FIX_MTE1 = PIPE_FIX | PIPE_MTE1 << 8,
  MTE1_FIX = PIPE_MTE1 | PIPE_FIX << 8,
  MTE3_MTE1 = PIPE_MTE3 | PIPE_MTE1 << 8,
  MTE1_MTE3 = PIPE_MTE1 | PIPE_MTE3 << 8,
  MTE1_V = PIPE_MTE1 | PIPE_V << 8,
  V_MTE1 = PIPE_V | PIPE_MTE1 << 8,
  M_V = PIPE_M | PIPE_V << 8,
  V_M = PIPE_V | PIPE_M << 8,
  MTE2_M = PIPE_MTE2 | PIPE_M << 8,
  M_S = PIPE_M | PIPE_S << 8,
  V_V = PIPE_V | PIPE_V << 8,
  S_M = PIPE_S | PIPE_M << 8,
  S_MTE1 = PIPE_S | PIPE_MTE1 << 8,
  MTE1_S = PIPE_MTE1 | PIPE_S << 8,
  S_FIX = PIPE_S | PIPE_FIX << 8,
  MTE3_FIX = PIPE_MTE3 | PIPE_FIX << 8,
  FIX_V = PIPE_FIX | PIPE_V << 8,
  V_FIX = PIPE_V | PIPE_FIX << 8
};

enum class TPosition : uint8_t {
  GM,
  A1,
  A2,
  B1,
  B2,
  C1,
  C2,
  CO1,
  CO2,
  VECIN,
  VECOUT,
  VECCALC,
  LCM = VECCALC,
  SPM,
  SHM = SPM,
  TSCM,
  C2PIPE2GM,
  C2PIPE2LOCAL,
  MAX
};
using QuePosition = TPosition;

enum class RoundMode { CAST_NONE, CAST_RINT, CAST_FLOOR, CAST_CEIL, CAST_ROUND, CAST_TRUNC, CAST_ODD };
enum class CMPMODE { LT, GT, EQ, LE, GE, NE };
enum class SELMODE { VSEL_CMPMASK_SPR, VSEL_TENSOR_SCALAR_MODE, VSEL_TENSOR_TENSOR_MODE };
enum class MaskMode : uint8_t { NORMAL, COUNTER };
enum class ReduceOrder { ORDER_VALUE_INDEX, ORDER_INDEX_VALUE, ORDER_ONLY_VALUE, ORDER_ONLY_INDEX };
enum class CacheRwMode { READ = 1, WRITE = 2, RW = 3 };
enum class CacheMode { CACHE_MODE_DISABLE = 0, CACHE_MODE_NORMAL = 1 };

inline constexpr uint32_t ONE_BLK_SIZE = 32;           // bytes of a DataBlock
inline constexpr uint32_t ONE_REPEAT_BYTE_SIZE = 256;  // bytes of a repeat
inline constexpr uint32_t MAX_REPEAT_TIMES = 255;
inline constexpr uint32_t kUBufferBytes = CM384_UBUFFER_BYTES;

// Elements of a byte, of types that are less.
template <typename T>
inline constexpr uint32_t kPacked = 1;
template <>
inline constexpr uint32_t kPacked<int4b_t> = 2;

template <typename T, typename U>
inline constexpr bool is_same_v = false;
template <typename T>
inline constexpr bool is_same_v<T, T> = true;

template <typename From, typename To>
concept ConvertsTo = requires(From from, void (*take)(To)) {
  take(from);
};

// funct2 of vector instructions.
template <typename T>
inline constexpr int kElementType = -1;
template <>
inline constexpr int kElementType<float> = CM384_F32;
template <>
inline constexpr int kElementType<half> = CM384_F16;
template <>
inline constexpr int kElementType<int32_t> = CM384_S32;
template <>
inline constexpr int kElementType<uint32_t> = CM384_S32;
template <>
inline constexpr int kElementType<int16_t> = CM384_S16;
template <>
inline constexpr int kElementType<uint16_t> = CM384_S16;

// The same for operations that move bits alone: any type of 2 or 4 B.
template <typename T>
inline constexpr int kBitsType = kElementType<T> >= 0 ? kElementType<T>
                                 : sizeof(T) == 2     ? CM384_S16
                                                      : -1;

// The bits of an element, as scalar operands carry them.
CM384_INLINE uint64_t scalar_bits(float value) {
  uint32_t bits;
  asm("fmv.x.w %0, %1" : "=r"(bits) : "f"(value));
  return bits;
}
CM384_INLINE uint64_t scalar_bits(int32_t value) {
  return static_cast<uint32_t>(value);
}
CM384_INLINE uint64_t scalar_bits(uint32_t value) {
  return value;
}
CM384_INLINE uint64_t scalar_bits(int16_t value) {
  return static_cast<uint16_t>(value);
}
CM384_INLINE uint64_t scalar_bits(uint16_t value) {
  return value;
}
CM384_INLINE uint64_t scalar_bits(half value) {
  return value.bits;
}
CM384_INLINE uint64_t scalar_bits(bfloat16_t value) {
  return value.bits;
}

}  // namespace AscendC
