// Calls that few kernels make, by the scalar unit or by copies of blocks (costs assumed): rows padded and
// cut, transpositions of axes, casts to 8 bit with scales of their own, what the last reduction has found.
#pragma once

#include "cm384/layout.h"
#include "cm384/reduce.h"

// What hosts compute for these calls; order of fields assumed.
struct PadTiling {
  uint32_t srcHeight, srcWidth, srcOriWidth, srcSize, dstHeight, dstWidth, dstSize, rest[13];
};
struct UnPadTiling {
  uint32_t srcHeight, srcWidth, srcSize, dstHeight, dstWidth, dstSize, rest[8];
};
struct ConfusionTransposeTiling {
  uint32_t param0, param1, param2, param3, rest[14];
};

namespace AscendC {
namespace tiling {
using ::ConfusionTransposeTiling;
using ::PadTiling;
using ::UnPadTiling;
}  // namespace tiling

// A 2 B or 4 B element: what Pad and UnPad move.
template <typename T>
inline constexpr bool kPads = sizeof(T) == 2 || sizeof(T) == 4;

struct PadParams {
  uint16_t leftPad = 0, rightPad = 0;  // elements of a row
  int32_t padValue = 0;
};
struct UnPadParams {
  uint16_t leftPad = 0, rightPad = 0;
};
// Rows of srcOriWidth elements, srcWidth apart, become rows of leftPad + srcOriWidth + rightPad, a multiple
// of 32 B.
template <typename T>
inline void Pad(const LocalTensor<T>& dst, const LocalTensor<T>& src, const PadParams& p,
                const PadTiling& tiling) {
  static_assert(kPads<T>, "Pad: of elements of 2 B and 4 B: docs/ascend-c.md");
  const uint32_t width = p.leftPad + tiling.srcOriWidth + p.rightPad;
  Cm384Ensure(width * sizeof(T) % ONE_BLK_SIZE == 0, "Pad: a padded row is a multiple of 32 B");
  const T value = static_cast<T>(p.padValue);
  Cm384ScalarTurn();
  for (uint32_t row = tiling.srcHeight; row-- > 0;) {  // from behind: dst may be src where rows grow
    for (uint32_t n = width; n-- > 0;) {
      const bool inside = n >= p.leftPad && n < p.leftPad + tiling.srcOriWidth;
      dst.SetValue(row * width + n, inside ? src.GetValue(row * tiling.srcWidth + n - p.leftPad) : value);
    }
  }
  Cm384AfterScalarTurn();
}
template <typename T>
CM384_INLINE void Pad(const LocalTensor<T>& dst, const LocalTensor<T>& src, const PadParams& p,
                      const LocalTensor<uint8_t>&, const PadTiling& tiling) {
  Pad(dst, src, p, tiling);
}
// Rows of srcWidth elements without leftPad of them before and rightPad behind, one behind the other.
template <typename T>
inline void UnPad(const LocalTensor<T>& dst, const LocalTensor<T>& src, const UnPadParams& p,
                  const UnPadTiling& tiling) {
  static_assert(kPads<T>, "UnPad: of elements of 2 B and 4 B: docs/ascend-c.md");
  Cm384Ensure(p.leftPad + p.rightPad <= tiling.srcWidth, "UnPad: more is cut than a row has");
  const uint32_t width = tiling.srcWidth - p.leftPad - p.rightPad;
  Cm384ScalarTurn();
  for (uint32_t row = 0; row < tiling.srcHeight; ++row) {
    for (uint32_t n = 0; n < width; ++n)
      dst.SetValue(row * width + n, src.GetValue(row * tiling.srcWidth + p.leftPad + n));
  }
  Cm384AfterScalarTurn();
}
template <typename T>
CM384_INLINE void UnPad(const LocalTensor<T>& dst, const LocalTensor<T>& src, const UnPadParams& p,
                        const LocalTensor<uint8_t>&, const UnPadTiling& tiling) {
  UnPad(dst, src, p, tiling);
}

// Numbers assumed. What the tiling's shape means: [B, N, S, D] of all but the last, which is of [H, W]. NZ of
// [.., R, C] is [.., C / 16, R, 16].
enum class TransposeType : uint8_t {
  TRANSPOSE_TYPE_NONE,
  TRANSPOSE_NZ2ND_0213,           // NZ of [B, N, S, D] to [B, S, N, D]
  TRANSPOSE_NZ2NZ_0213,           // the same to NZ of it
  TRANSPOSE_NZ2NZ_012_WITH_N,     // NZ of [B, S, N * D] to NZ of [B, N, S, D]
  TRANSPOSE_NZ2ND_012_WITH_N,     // the same to [B, N, S, D]
  TRANSPOSE_NZ2ND_012_WITHOUT_N,  // NZ of [B, N, S, D] to [B, S, N * D]
  TRANSPOSE_NZ2NZ_012_WITHOUT_N,  // the same to NZ of it
  TRANSPOSE_ND2ND_ONLY,           // [H, W] to [W, H]
  TRANSPOSE_ND_UB_GM,
  TRANSPOSE_GRAD_ND_UB_GM,
  TRANSPOSE_ND2ND_B16,  // ND2ND_ONLY of 16 x 16 elements of 2 B
  TRANSPOSE_NCHW2NHWC,
  TRANSPOSE_NHWC2NCHW
};
// Pieces of 16 elements, S of them from one place of N and D on, by one copy; ND2ND by the scalar unit.
template <typename T>
inline void ConfusionTranspose(const LocalTensor<T>& dst, const LocalTensor<T>& src, TransposeType type,
                               const ConfusionTransposeTiling& t) {
  static_assert(kPads<T>, "ConfusionTranspose: of elements of 2 B and 4 B: docs/ascend-c.md");
  if (type == TransposeType::TRANSPOSE_ND2ND_ONLY || type == TransposeType::TRANSPOSE_ND2ND_B16) {
    const uint32_t height = t.param0, width = t.param1;
    Cm384ScalarTurn();
    for (uint32_t row = 0; row < height; ++row) {
      for (uint32_t n = 0; n < width; ++n) dst.SetValue(n * height + row, src.GetValue(row * width + n));
    }
    return Cm384AfterScalarTurn();
  }
  const uint32_t b = t.param0, n = t.param1, s = t.param2, d = t.param3;
  Cm384Ensure(s % 16 == 0 && d % 16 == 0, "ConfusionTranspose: axes of NZ are multiples of 16");
  const bool rows =
      type == TransposeType::TRANSPOSE_NZ2ND_0213 || type == TransposeType::TRANSPOSE_NZ2ND_012_WITHOUT_N;
  const bool rows_of_n = type == TransposeType::TRANSPOSE_NZ2ND_012_WITH_N;
  const bool turned = type == TransposeType::TRANSPOSE_NZ2NZ_0213;
  if (!rows && !rows_of_n && !turned && type != TransposeType::TRANSPOSE_NZ2NZ_012_WITH_N &&
      type != TransposeType::TRANSPOSE_NZ2NZ_012_WITHOUT_N)
    Abort("ConfusionTranspose: no such transposition: docs/ascend-c.md");
  constexpr uint32_t kBlocks = 16 * sizeof(T) / ONE_BLK_SIZE;
  for (uint32_t piece = 0; piece < b * n * (d / 16); ++piece) {
    const uint32_t column = piece % (d / 16), of_n = piece / (d / 16) % n, of_b = piece / (d / 16) / n;
    // From one place of S to the next in dst, and where the first one stands.
    const uint32_t step = rows || turned ? n * d : rows_of_n ? d : 16;
    const uint32_t to = rows        ? of_b * s * n * d + of_n * d + column * 16
                        : turned    ? of_b * s * n * d + column * n * 16 + of_n * 16
                        : rows_of_n ? (of_b * n + of_n) * s * d + column * 16
                                    : piece * s * 16;
    DataCopy(dst[to], src[piece * s * 16],
             DataCopyParams{static_cast<uint16_t>(s), kBlocks, 0,
                            static_cast<uint16_t>(step * sizeof(T) / ONE_BLK_SIZE - kBlocks)});
  }
  PipeBarrier<PIPE_V>();
}
template <typename T>
CM384_INLINE void ConfusionTranspose(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                                     const LocalTensor<uint8_t>&, TransposeType type,
                                     const ConfusionTransposeTiling& tiling) {
  ConfusionTranspose(dst, src, type, tiling);
}

// What CastDeq multiplies with and adds: one of each, or 16, which SetDeqScale has written to 128 B of the
// UBuffer: 8 B an element of a block, a float, the offset from bit 37 on, the sign in bit 46 (assumed).
struct VdeqInfo {
  float vdeqScale[16] = {};
  int16_t vdeqOffset[16] = {};
  bool vdeqSignMode[16] = {};
};
struct Cm384Deq {
  float scale = 1;
  int32_t offset = 0;
  bool sign = true;
};
static Cm384Deq cm384_deq{};
static uint32_t cm384_deq_table = 0;
CM384_INLINE void SetDeqScale(float scale, int16_t offset, bool signMode) {
  cm384_deq = {scale, offset, signMode};
}
template <typename T>
inline void SetDeqScale(const LocalTensor<T>& table, const VdeqInfo& info) {
  static_assert(sizeof(T) == 8, "SetDeqScale: a tensor of uint64_t: docs/ascend-c.md");
  Cm384ScalarTurn();
  for (uint32_t n = 0; n < 16; ++n)
    table.SetValue(n, __builtin_bit_cast(uint32_t, info.vdeqScale[n]) |
                          static_cast<uint64_t>(info.vdeqOffset[n] & 511) << 37 |
                          static_cast<uint64_t>(info.vdeqSignMode[n]) << 46);
  cm384_deq_table = static_cast<uint32_t>(table.GetPhyAddr());
}
CM384_INLINE Cm384Deq Cm384DeqOf(bool vector, uint32_t element) {
  if (!vector) return cm384_deq;
  const uint64_t bits = LocalTensor<uint64_t>(cm384_deq_table).GetValue(element % 16);
  const auto offset = static_cast<int32_t>(bits >> 37 & 511);
  return {__builtin_bit_cast(float, static_cast<uint32_t>(bits)), offset < 256 ? offset : offset - 512,
          (bits >> 46 & 1) != 0};
}
// int16_t to 8 bit: the product in FP32 to nearest even, then the offset, saturating (assumed). Each block of
// 16 gives half a block of results, the other half stays: with halfBlock the lower one (by the page of
// CastDeq; that of UnaryRepeatParams says the upper one).
template <typename D, bool isVecDeq, bool halfBlock>
CM384_INLINE void Cm384CastDeq(uint32_t to, int32_t value, uint32_t element) {
  const Cm384Deq by = Cm384DeqOf(isVecDeq, element);
  const int32_t low = by.sign ? -128 : 0, high = by.sign ? 127 : 255;
  const float product = static_cast<float>(value) * by.scale;
  int32_t made = product >= 65536.0f ? 65536
                 : product <= -65536.0f
                     ? -65536
                     : static_cast<int32_t>(ScalarCast<float, int32_t, RoundMode::CAST_RINT>(product));
  made += by.offset;
  made = made < low ? low : made > high ? high : made;
  LocalTensor<uint8_t>(to).SetValue(element % 16 + (halfBlock ? 0u : 16u), static_cast<uint8_t>(made));
}
template <typename D, typename S>
CM384_INLINE constexpr void Cm384CastsDeq() {
  static_assert(is_same_v<S, int16_t> && sizeof(D) == 1,
                "CastDeq: of int16_t to int8_t or uint8_t: docs/ascend-c.md");
}
template <typename D, typename S, bool isVecDeq = true, bool halfBlock = true>
inline void CastDeq(const LocalTensor<D>& dst, const LocalTensor<S>& src, const uint32_t count) {
  Cm384CastsDeq<D, S>();
  Cm384ScalarTurn();
  for (uint32_t n = 0; n < count; ++n)
    Cm384CastDeq<D, isVecDeq, halfBlock>(static_cast<uint32_t>(dst.GetPhyAddr()) + n / 16 * ONE_BLK_SIZE,
                                         src.GetValue(n), n);
  Cm384AfterScalarTurn();
}
// Of a mask of 128 elements, blocks as far apart as the strides say.
template <typename D, typename S, bool isSetMask = true, bool isVecDeq = true, bool halfBlock = true,
          MaskForm Mask>
inline void CastDeq(const LocalTensor<D>& dst, const LocalTensor<S>& src, Mask mask, uint8_t repeatTime,
                    const UnaryRepeatParams& p) {
  Cm384CastsDeq<D, S>();
  static_assert(isSetMask, "CastDeq: it sets its own mask: docs/ascend-c.md");
  uint64_t words[2];
  if constexpr (ConvertsTo<Mask, uint64_t>) {
    words[0] = mask >= 64 ? ~uint64_t{0} : (uint64_t{1} << mask) - 1;
    words[1] = mask >= 128 ? ~uint64_t{0} : mask > 64 ? (uint64_t{1} << (mask - 64)) - 1 : 0;
  } else {
    words[0] = mask[0];
    words[1] = mask[1];
  }
  Cm384ScalarTurn();
  for (uint32_t r = 0; r < repeatTime; ++r) {
    for (uint32_t n = 0; n < 128; ++n) {
      if ((words[n / 64] >> n % 64 & 1) == 0) continue;
      const auto block = [&](uint64_t base, uint32_t stride, uint32_t repeat) {
        return static_cast<uint32_t>(base) + (n / 16 * stride + r * repeat) * ONE_BLK_SIZE;
      };
      const LocalTensor<int16_t> from(block(src.GetPhyAddr(), p.srcBlkStride, p.srcRepStride));
      Cm384CastDeq<D, isVecDeq, halfBlock>(block(dst.GetPhyAddr(), p.dstBlkStride, p.dstRepStride),
                                           from.GetValue(n % 16), n);
    }
  }
  Cm384AfterScalarTurn();
}

// What the last ReduceMax or ReduceMin with an index has put into its destination, which must not have been
// overwritten (the part keeps it in a register).
template <typename T>
inline void GetReduceMaxMinCount(T& value, T& index) {
  if (cm384_extreme_bytes != sizeof(T))
    Abort("GetReduceMaxMinCount: behind ReduceMax or ReduceMin of this type with calIndex: docs/ascend-c.md");
  SetFlag<HardEvent::V_S>(EVENT_ID7);
  WaitFlag<HardEvent::V_S>(EVENT_ID7);
  const LocalTensor<T> from(cm384_extreme);
  value = from.GetValue(0);
  index = from.GetValue(1);
}
template <typename T>
CM384_INLINE void GetReduceMaxMinCount(T& value) {
  T index;
  GetReduceMaxMinCount(value, index);
}

// Hints, and what few kernels ask of the machine.
CM384_INLINE void PreLoad(int64_t) {}
enum class MemDsbT { ALL, DDR, UB, SEQ };
template <MemDsbT of>
CM384_INLINE void DataSyncBarrier() {
  dsb(DSB_ALL);
}
CM384_INLINE constexpr uint32_t GetUBSizeInBytes() {
  return TOTAL_UB_SIZE;
}
CM384_INLINE constexpr uint32_t GetDataBlockSizeInBytes() {
  return ONE_BLK_SIZE;
}

}  // namespace AscendC
#define PRELOAD(bytes) AscendC::PreLoad(bytes)
