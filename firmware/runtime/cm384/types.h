// Element types, pipes and events under Ascend C's names.
#pragma once

#include "cm384/instruction.h"

// Ascend C's qualifiers: GM and UBuffer addresses are plain addresses here.
#define __aicore__
#define __gm__
#define __ubuf__
#define __global__
using GM_ADDR = __gm__ uint8_t*;

// Storage of 16-bit floats; the scalar unit has no arithmetic on them.
struct half {
  uint16_t bits;
};
struct bfloat16_t {
  uint16_t bits;
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
  FIX_MTE2 = PIPE_FIX | PIPE_MTE2 << 8
};

enum class TPosition { GM, VECIN, VECOUT, VECCALC };
using QuePosition = TPosition;

enum class RoundMode {
  CAST_NONE = CM384_RINT,
  CAST_RINT = CM384_RINT,
  CAST_FLOOR = CM384_FLOOR,
  CAST_CEIL = CM384_CEIL,
  CAST_TRUNC = CM384_TRUNC
};
enum class CMPMODE { LT, GT, EQ, LE, GE, NE };
enum class SELMODE { VSEL_CMPMASK_SPR, VSEL_TENSOR_SCALAR_MODE, VSEL_TENSOR_TENSOR_MODE };
enum class MaskMode : uint8_t { NORMAL, COUNTER };
enum class ReduceOrder { ORDER_VALUE_INDEX, ORDER_INDEX_VALUE, ORDER_ONLY_VALUE, ORDER_ONLY_INDEX };
enum class CacheMode { CACHE_MODE_DISABLE = 0, CACHE_MODE_NORMAL = 1 };

inline constexpr uint32_t ONE_BLK_SIZE = 32;           // bytes of a DataBlock
inline constexpr uint32_t ONE_REPEAT_BYTE_SIZE = 256;  // bytes of a repeat
inline constexpr uint32_t MAX_REPEAT_TIMES = 255;
inline constexpr uint32_t kUBufferBytes = 192 * 1024;

template <typename T, typename U>
inline constexpr bool is_same_v = false;
template <typename T>
inline constexpr bool is_same_v<T, T> = true;

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

}  // namespace AscendC
