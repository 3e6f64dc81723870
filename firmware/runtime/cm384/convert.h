// Cast between element types (pipe V).
#pragma once

#include "cm384/system.h"
#include "cm384/vector.h"

namespace AscendC {

// The operation that converts Src to Dst; -1: the vector unit has none.
template <typename Dst, typename Src>
inline constexpr int kConvert = -1;
template <>
inline constexpr int kConvert<float, bfloat16_t> = CM384_BF16_TO_F32;
template <>
inline constexpr int kConvert<bfloat16_t, float> = CM384_F32_TO_BF16;
template <>
inline constexpr int kConvert<float, half> = CM384_F16_TO_F32;
template <>
inline constexpr int kConvert<half, float> = CM384_F32_TO_F16;
template <>
inline constexpr int kConvert<int32_t, float> = CM384_F32_TO_S32;
template <>
inline constexpr int kConvert<float, int32_t> = CM384_S32_TO_F32;
template <>
inline constexpr int kConvert<half, int32_t> = CM384_S32_TO_F16;
template <>
inline constexpr int kConvert<int8_t, half> = CM384_F16_TO_S8;
template <>
inline constexpr int kConvert<half, int8_t> = CM384_S8_TO_F16;
template <>
inline constexpr int kConvert<float, float> = CM384_F32_TO_F32;
template <>
inline constexpr int kConvert<int32_t, half> = CM384_F16_TO_S32;
template <>
inline constexpr int kConvert<int16_t, int32_t> = CM384_S32_TO_S16;
template <>
inline constexpr int kConvert<int32_t, int16_t> = CM384_S16_TO_S32;

template <typename Dst, typename Src, int Rounding>
CM384_INLINE void CastRounding(const LocalTensor<Dst>& dst, const LocalTensor<Src>& src, uint32_t count) {
  constexpr int kOperation = kConvert<Dst, Src>;
  static_assert(kOperation >= 0, "the vector unit has no conversion between these types");
  constexpr uint32_t kElements = 64;  // of a repeat, whatever the types
  ForCount(count, kElements, [&](uint32_t first, uint32_t repeats) {
    constexpr bool kFurther = Rounding > CM384_TRUNC;
    cm384::pipe_instruction<CM384_CLASS_CONVERT, kOperation, kFurther ? 0 : Rounding>(
        OffsetPair(dst.GetPhyAddr(first), src.GetPhyAddr(first)), kFurther ? Rounding : 0,
        RepeatConfig(repeats, 1, 1, 0, kElements * sizeof(Dst) / 32, kElements * sizeof(Src) / 32, 0));
  });
}
template <typename Dst, typename Src>
CM384_INLINE void Cast(const LocalTensor<Dst>& dst, const LocalTensor<Src>& src, RoundMode mode,
                       uint32_t count) {
  switch (mode) {
    case RoundMode::CAST_FLOOR:
      return CastRounding<Dst, Src, CM384_FLOOR>(dst, src, count);
    case RoundMode::CAST_CEIL:
      return CastRounding<Dst, Src, CM384_CEIL>(dst, src, count);
    case RoundMode::CAST_TRUNC:
      return CastRounding<Dst, Src, CM384_TRUNC>(dst, src, count);
    case RoundMode::CAST_ROUND:
      return CastRounding<Dst, Src, CM384_ROUND>(dst, src, count);
    case RoundMode::CAST_ODD:
      return CastRounding<Dst, Src, CM384_ODD>(dst, src, count);
    default:
      return CastRounding<Dst, Src, CM384_RINT>(dst, src, count);
  }
}

// The factor of casts from int32_t to half. 1 is the only one there is: the machine has no scaling cast.
CM384_INLINE void SetDeqScale(half scale) {
  if (scale.bits != half(1).bits) Abort("SetDeqScale: casts are not scaled; the only factor is 1");
}

}  // namespace AscendC
