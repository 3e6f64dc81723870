// Cast between element types (pipe V).
#pragma once

#include "cm384/system.h"
#include "cm384/vector.h"

namespace AscendC {

// The operation that converts Src to Dst; -1: the vector unit has none.
template <typename Dst, typename Src>
inline constexpr int kConvert = -1;
#define CM384_CONVERT(Dst, Src, operation) \
  template <>                              \
  inline constexpr int kConvert<Dst, Src> = operation;
CM384_CONVERT(float, bfloat16_t, CM384_BF16_TO_F32)
CM384_CONVERT(bfloat16_t, float, CM384_F32_TO_BF16)
CM384_CONVERT(float, half, CM384_F16_TO_F32)
CM384_CONVERT(half, float, CM384_F32_TO_F16)
CM384_CONVERT(int32_t, float, CM384_F32_TO_S32)
CM384_CONVERT(float, int32_t, CM384_S32_TO_F32)
CM384_CONVERT(half, int32_t, CM384_S32_TO_F16)
CM384_CONVERT(int8_t, half, CM384_F16_TO_S8)
CM384_CONVERT(half, int8_t, CM384_S8_TO_F16)
CM384_CONVERT(float, float, CM384_F32_TO_F32)
CM384_CONVERT(int32_t, half, CM384_F16_TO_S32)
CM384_CONVERT(int16_t, int32_t, CM384_S32_TO_S16)
CM384_CONVERT(int32_t, int16_t, CM384_S16_TO_S32)
CM384_CONVERT(uint8_t, half, CM384_F16_TO_U8)
CM384_CONVERT(half, uint8_t, CM384_U8_TO_F16)
CM384_CONVERT(int16_t, float, CM384_F32_TO_S16)
CM384_CONVERT(int16_t, half, CM384_F16_TO_S16)
CM384_CONVERT(half, int16_t, CM384_S16_TO_F16)
CM384_CONVERT(int32_t, bfloat16_t, CM384_BF16_TO_S32)
CM384_CONVERT(int64_t, float, CM384_F32_TO_S64)
CM384_CONVERT(float, int64_t, CM384_S64_TO_F32)
CM384_CONVERT(int64_t, int32_t, CM384_S32_TO_S64)
CM384_CONVERT(int32_t, int64_t, CM384_S64_TO_S32)
CM384_CONVERT(float, int16_t, CM384_S16_TO_F32)
#undef CM384_CONVERT

// Elements of a repeat of the machine's instruction; of one of Ascend C, which fills 256 B of the wider type.
template <typename Dst, typename Src>
inline constexpr uint32_t kConvertElements = sizeof(Dst) == 8 || sizeof(Src) == 8 ? 32 : 64;
template <typename Dst, typename Src>
inline constexpr uint32_t kCastElements = 256 / (sizeof(Dst) > sizeof(Src) ? sizeof(Dst) : sizeof(Src));

// The factor of casts from int32_t to half. Each source of a kernel has its own; this project's kernels
// have 1.
#ifdef CM384_MASK_MODES
static uint32_t cm384_deq_scale = 0;  // F32 bits; 0: none
CM384_INLINE void SetDeqScale(half scale) {
  const float factor = scale;
  cm384_deq_scale = scale.bits == half(1).bits ? 0 : __builtin_bit_cast(uint32_t, factor);
}
#else
inline constexpr uint32_t cm384_deq_scale = 0;
CM384_INLINE void SetDeqScale(half scale) {
  if (scale.bits != half(1).bits) Abort("SetDeqScale: the only factor is 1");
}
#endif

template <typename Dst, typename Src, int Rounding>
CM384_INLINE void ConvertRepeats(uint64_t dst, uint64_t src, uint32_t repeats, uint32_t dst_block,
                                 uint32_t src_block, uint32_t dst_repeat, uint32_t src_repeat) {
  constexpr bool kFurther = Rounding > CM384_TRUNC;
  uint64_t operand = kFurther ? Rounding : 0;
  if constexpr (kConvert<Dst, Src> == CM384_S32_TO_F16)
    operand |= static_cast<uint64_t>(cm384_deq_scale) << 32;
  cm384::pipe_instruction<CM384_CLASS_CONVERT, kConvert<Dst, Src>, kFurther ? 0 : Rounding>(
      OffsetPair(dst, src), operand,
      RepeatConfig(repeats, dst_block, src_block, 0, dst_repeat, src_repeat, 0));
}
template <typename Dst, typename Src, int Rounding>
CM384_INLINE void CastRounding(const LocalTensor<Dst>& dst, const LocalTensor<Src>& src, uint32_t count) {
  constexpr int kOperation = kConvert<Dst, Src>;
  constexpr uint32_t kElements = kConvertElements<Dst, Src>;
  ForCount(count, kElements, [&](uint32_t first, uint32_t repeats) {
    constexpr bool kFurther = Rounding > CM384_TRUNC;
    if constexpr (kMaskModes && kOperation == CM384_S32_TO_F16) {
      ConvertRepeats<Dst, Src, Rounding>(dst.GetPhyAddr(first), src.GetPhyAddr(first), repeats, 1, 1,
                                         kElements * sizeof(Dst) / 32, kElements * sizeof(Src) / 32);
    } else {
      cm384::pipe_instruction<CM384_CLASS_CONVERT, kOperation, kFurther ? 0 : Rounding>(
          OffsetPair(dst.GetPhyAddr(first), src.GetPhyAddr(first)), kFurther ? Rounding : 0,
          RepeatConfig(repeats, 1, 1, 0, kElements * sizeof(Dst) / 32, kElements * sizeof(Src) / 32, 0));
    }
  });
}
// Where a repeat is two of the machine's, its halves go one after the other, each over all repeats if it can.
template <typename Dst, typename Src, int Rounding, bool isSetMask, typename Mask>
CM384_INLINE void CastRepeats(const LocalTensor<Dst>& dst, const LocalTensor<Src>& src, Mask mask,
                              uint32_t repeats, const UnaryRepeatParams& p) {
  constexpr uint32_t kElements = kConvertElements<Dst, Src>, kHalves = kCastElements<Dst, Src> / kElements;
  const auto emit = [&](uint32_t half, uint32_t from, uint32_t now) {
    constexpr uint32_t kDst = kElements * sizeof(Dst), kSrc = kElements * sizeof(Src);
    ConvertRepeats<Dst, Src, Rounding>(
        dst.GetPhyAddr() + half * kDst * p.dstBlkStride + from * p.dstRepStride * ONE_BLK_SIZE,
        src.GetPhyAddr() + half * kSrc * p.srcBlkStride + from * p.srcRepStride * ONE_BLK_SIZE, now,
        p.dstBlkStride, p.srcBlkStride, p.dstRepStride, p.srcRepStride);
  };
  if constexpr (kHalves == 1) {
    ForMask<isSetMask>(mask, repeats, kElements, [&](uint32_t from, uint32_t now) { emit(0, from, now); });
  } else {
    static_assert(isSetMask, "Cast: between types of 2 B and less it sets its own mask: docs/ascend-c.md");
    if (cm384_counter_mode)
      Abort("Cast: between types of 2 B and less not in counter mode: docs/ascend-c.md");
    uint64_t words[2];
    if constexpr (ConvertsTo<Mask, uint64_t>) {
      words[0] = mask >= 64 ? ~uint64_t{0} : (uint64_t{1} << mask) - 1;
      words[1] = mask >= 128 ? ~uint64_t{0} : mask > 64 ? (uint64_t{1} << (mask - 64)) - 1 : 0;
    } else {
      words[0] = mask[0];
      words[1] = mask[1];
    }
    // Repeats whose results overlap go one by one.
    const bool apart =
        p.dstRepStride >= kCastElements<Dst, Src> * sizeof(Dst) / ONE_BLK_SIZE * p.dstBlkStride;
    for (uint32_t from = 0; from < repeats; from += apart ? repeats : 1) {
      for (uint32_t half = 0; half < kHalves; ++half) {
        if (words[half] == 0) continue;
        cm384::pipe_instruction<CM384_CLASS_SYNC, CM384_SET_MASK>(words[half], ~uint64_t{0});
        emit(half, from, apart ? repeats : 1);
      }
    }
    ResetMask();
  }
}

#define CM384_ROUNDINGS(Function, ...)           \
  switch (mode) {                                \
    case RoundMode::CAST_FLOOR:                  \
      return Function(CM384_FLOOR, __VA_ARGS__); \
    case RoundMode::CAST_CEIL:                   \
      return Function(CM384_CEIL, __VA_ARGS__);  \
    case RoundMode::CAST_TRUNC:                  \
      return Function(CM384_TRUNC, __VA_ARGS__); \
    case RoundMode::CAST_ROUND:                  \
      return Function(CM384_ROUND, __VA_ARGS__); \
    case RoundMode::CAST_ODD:                    \
      return Function(CM384_ODD, __VA_ARGS__);   \
    default:                                     \
      return Function(CM384_RINT, __VA_ARGS__);  \
  }
#define CM384_CAST_TYPES                 \
  static_assert(kConvert<Dst, Src> >= 0, \
                "Cast: the vector unit has no conversion between these element types: docs/ascend-c.md")
template <typename Dst, typename Src>
CM384_INLINE void Cast(const LocalTensor<Dst>& dst, const LocalTensor<Src>& src, RoundMode mode,
                       uint32_t count) {
  CM384_CAST_TYPES;
#define CM384_CALL(rounding, ...) CastRounding<Dst, Src, rounding>(__VA_ARGS__)
  CM384_ROUNDINGS(CM384_CALL, dst, src, count)
#undef CM384_CALL
}
template <typename Dst, typename Src, bool isSetMask = true>
CM384_INLINE void Cast(const LocalTensor<Dst>& dst, const LocalTensor<Src>& src, RoundMode mode,
                       uint64_t mask, uint8_t repeatTime, const UnaryRepeatParams& p) {
  CM384_CAST_TYPES;
#define CM384_CALL(rounding, ...) CastRepeats<Dst, Src, rounding, isSetMask>(__VA_ARGS__)
  CM384_ROUNDINGS(CM384_CALL, dst, src, mask, repeatTime, p)
}
template <typename Dst, typename Src, bool isSetMask = true>
CM384_INLINE void Cast(const LocalTensor<Dst>& dst, const LocalTensor<Src>& src, RoundMode mode,
                       const uint64_t mask[], uint8_t repeatTime, const UnaryRepeatParams& p) {
  CM384_CAST_TYPES;
  CM384_ROUNDINGS(CM384_CALL, dst, src, mask, repeatTime, p)
#undef CM384_CALL
}
#undef CM384_CAST_TYPES
#undef CM384_ROUNDINGS

// One number on the scalar unit.
template <typename T, typename U, RoundMode mode>
CM384_INLINE U ScalarCast(T value) {
  static_assert(is_same_v<T, float> && (is_same_v<U, half> || is_same_v<U, int32_t>),
                "ScalarCast: float to half and to int32_t: docs/ascend-c.md");
  if constexpr (is_same_v<U, half>) {
    static_assert(mode == RoundMode::CAST_ODD, "ScalarCast: to half with CAST_ODD alone: docs/ascend-c.md");
    half result = value;
    const float back = result;
    // The even neighbour of an odd one that was meant.
    if (back != value && back == back && (result.bits & 1) == 0)
      result.bits = static_cast<uint16_t>((back > value) == (back > 0) ? result.bits - 1 : result.bits + 1);
    return result;
  } else {
    if (!(value >= -2147483648.0f)) return value < 0 ? -2147483647 - 1 : 0;
    if (value >= 2147483648.0f) return 2147483647;
    const auto whole = static_cast<int32_t>(value);
    const float rest = value - static_cast<float>(whole);
    if constexpr (mode == RoundMode::CAST_FLOOR) return rest < 0 ? whole - 1 : whole;
    if constexpr (mode == RoundMode::CAST_CEIL) return rest > 0 ? whole + 1 : whole;
    const bool tie = mode == RoundMode::CAST_ROUND || (whole & 1) != 0;
    if (rest > 0.5f || (rest == 0.5f && tie)) return whole + 1;
    if (rest < -0.5f || (rest == -0.5f && tie)) return whole - 1;
    return whole;
  }
}
// Of a word's bits: the lowest that is `value` (-1: none), how many are, zeros above the highest 1.
template <int value>
CM384_INLINE int64_t ScalarGetSFFValue(uint64_t word) {
  const uint64_t bits = value == 1 ? word : ~word;
  for (int64_t at = 0; at < 64; ++at) {
    if ((bits >> at & 1u) != 0) return at;
  }
  return -1;
}
template <int value>
CM384_INLINE int64_t ScalarGetCountOfValue(uint64_t word) {
  int64_t count = 0;
  for (uint64_t bits = value == 1 ? word : ~word; bits != 0; bits &= bits - 1) ++count;
  return count;
}
CM384_INLINE int64_t ScalarCountLeadingZero(uint64_t word) {
  int64_t count = 64;
  for (; word != 0; word >>= 1) --count;
  return count;
}

}  // namespace AscendC
