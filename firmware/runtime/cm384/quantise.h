// Calls of Ascend C's library between numbers and 8 bit: quantise, dequantise. In FP32 on the vector unit;
// what they cost is not the vendor's.
#pragma once

#include "cm384/cube_forms.h"
#include "cm384/rows.h"

namespace AscendC {

// int8_t of src * scale + offset, by way of half, to nearest even; what does not fit becomes the nearest that
// does.
template <typename T, bool isReuseSource = false>
inline void AscendQuant(const LocalTensor<int8_t>& dst, const LocalTensor<T>& src,
                        const LocalTensor<uint8_t>& tmp, const float scale, const float offset,
                        const uint32_t calCount) {
  constexpr uint32_t kEach = 512;
  const LocalTensor<uint8_t> room = Cm384Scratch(tmp, kEach * 6);
  const LocalTensor<float> x = room.template ReinterpretCast<float>();
  const LocalTensor<half> h = room[kEach * 4].template ReinterpretCast<half>();
  for (uint32_t first = 0; first < calCount; first += kEach) {
    const uint32_t now = calCount - first < kEach ? calCount - first : kEach;
    const auto count = static_cast<int32_t>(now);
    Cm384RowIn(x, src[first], now);
    Muls(x, x, scale, count);
    PipeBarrier<PIPE_V>();
    Adds(x, x, offset, count);
    PipeBarrier<PIPE_V>();
    Mins(x, x, 127.0f, count);
    PipeBarrier<PIPE_V>();
    Maxs(x, x, -128.0f, count);
    PipeBarrier<PIPE_V>();
    Cast(h, x, RoundMode::CAST_RINT, now);
    PipeBarrier<PIPE_V>();
    Cast(dst[first], h, RoundMode::CAST_RINT, now);
    PipeBarrier<PIPE_V>();
  }
}
template <typename T, bool isReuseSource = false>
CM384_INLINE void AscendQuant(const LocalTensor<int8_t>& dst, const LocalTensor<T>& src, const float scale,
                              const float offset, const uint32_t calCount) {
  AscendQuant<T, isReuseSource>(dst, src, LocalTensor<uint8_t>(), scale, offset, calCount);
}
template <typename T, bool isReuseSource = false>
CM384_INLINE void AscendQuant(const LocalTensor<int8_t>& dst, const LocalTensor<T>& src,
                              const LocalTensor<uint8_t>& tmp, const float scale, const float offset) {
  AscendQuant<T, isReuseSource>(dst, src, tmp, scale, offset, src.GetSize());
}
template <typename T, bool isReuseSource = false>
CM384_INLINE void AscendQuant(const LocalTensor<int8_t>& dst, const LocalTensor<T>& src, const float scale,
                              const float offset) {
  AscendQuant<T, isReuseSource>(dst, src, LocalTensor<uint8_t>(), scale, offset, src.GetSize());
}

// Rows of n int32_t, of which the first calCount are multiplied by a scale each, or by one. Rows of dst stand
// a multiple of 32 B apart. Order of arguments assumed.
struct DequantParams {
  uint32_t m = 0;
  uint32_t n = 0;
  uint32_t calCount = 0;
};
template <typename D, typename Scale>
inline void Cm384DequantRows(const LocalTensor<D>& dst, const LocalTensor<int32_t>& src,
                             const LocalTensor<uint8_t>& tmp, const DequantParams& p, Scale scale) {
  constexpr uint32_t kBlock = ONE_BLK_SIZE / sizeof(D);
  const uint32_t pitch = (p.calCount + kBlock - 1) / kBlock * kBlock;
  const LocalTensor<float> x = Cm384Scratch(tmp, p.calCount * 8 + 512).template ReinterpretCast<float>();
  const LocalTensor<float> s = x[(p.calCount + 7) / 8 * 8];
  for (uint32_t row = 0; row < p.m; ++row) {
    Cast(x, src[row * p.n], RoundMode::CAST_RINT, p.calCount);
    PipeBarrier<PIPE_V>();
    scale(x, s);
    PipeBarrier<PIPE_V>();
    Cm384RowOut(dst[row * pitch], x, p.calCount);
  }
}
template <typename D, typename S, DeqScale... mode>
inline void AscendDequant(const LocalTensor<D>& dst, const LocalTensor<int32_t>& src,
                          const LocalTensor<S>& deqScale, const LocalTensor<uint8_t>& tmp,
                          const DequantParams& p) {
  Cm384DequantRows(dst, src, tmp, p, [&](const LocalTensor<float>& x, const LocalTensor<float>& s) {
    Cm384RowIn(s, deqScale, p.calCount);
    Mul(x, x, s, static_cast<int32_t>(p.calCount));
  });
}
template <typename D, typename S>
CM384_INLINE void AscendDequant(const LocalTensor<D>& dst, const LocalTensor<int32_t>& src,
                                const LocalTensor<S>& deqScale, const DequantParams& p) {
  AscendDequant(dst, src, deqScale, LocalTensor<uint8_t>(), p);
}
template <typename D, typename S>
requires(ConvertsTo<S, float>) inline void AscendDequant(const LocalTensor<D>& dst,
                                                         const LocalTensor<int32_t>& src, const S deqScale,
                                                         const LocalTensor<uint8_t>& tmp,
                                                         const DequantParams& p) {
  const auto scalar = static_cast<float>(deqScale);
  Cm384DequantRows(dst, src, tmp, p, [&](const LocalTensor<float>& x, const LocalTensor<float>&) {
    Muls(x, x, scalar, static_cast<int32_t>(p.calCount));
  });
}

// Rows of x - max - ln(sum(exp(x - max))).
template <typename T, bool isReuseSource = false, bool isDataFormatNZ = false, typename S>
inline void LogSoftMax(const LocalTensor<T>& dst, const LocalTensor<S>& sum, const LocalTensor<S>& max,
                       const LocalTensor<T>& src, const LocalTensor<uint8_t>& tmp,
                       const SoftMaxTiling& tiling, const SoftMaxShapeInfo& shape = {}) {
  static_assert(!isDataFormatNZ, "LogSoftMax: NZ not there: docs/ascend-c.md");
  const Cm384RowShape r = Cm384RowsOf(tiling, shape, src.GetSize());
  const auto n = static_cast<int32_t>(r.width);
  const LocalTensor<float> one = Cm384Scratch(tmp, r.width * 8 + 544).template ReinterpretCast<float>(),
                           x = one[8], e = x[(r.width + 7) / 8 * 8];
  for (uint32_t row = 0; row < r.rows; ++row) {
    Cm384RowIn(x, src[row * r.pitch], r.width);
    const float most = Cm384RowMax(x, one, r.width);
    Adds(x, x, -most, n);
    PipeBarrier<PIPE_V>();
    Exp(e, x, n);
    PipeBarrier<PIPE_V>();
    const float all = Cm384RowSum(e, one, r.width);
    Cm384FillBlock(one, 0, all);
    PipeBarrier<PIPE_V>();
    Ln(one, one, 8);
    Adds(x, x, -Cm384ReadBack(one), n);
    PipeBarrier<PIPE_V>();
    Cm384RowOut(dst[row * r.pitch], x, r.width);
    if (sum.GetSize() != 0) Cm384FillBlock(sum, row, all);
    if (max.GetSize() != 0) Cm384FillBlock(max, row, most);
    PipeBarrier<PIPE_V>();
  }
}
template <typename T, bool isReuseSource = false, bool isDataFormatNZ = false, typename S>
CM384_INLINE void LogSoftMax(const LocalTensor<T>& dst, const LocalTensor<S>& sum, const LocalTensor<S>& max,
                             const LocalTensor<T>& src, const SoftMaxTiling& tiling,
                             const SoftMaxShapeInfo& shape = {}) {
  LogSoftMax<T>(dst, sum, max, src, LocalTensor<uint8_t>(), tiling, shape);
}

}  // namespace AscendC
