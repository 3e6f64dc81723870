// Calls of Ascend C's library that choose or gather from rows: the k largest, reductions along an axis, drop
// out, numbers out of 8 bit. In FP32 on the vector unit; what they cost is not the vendor's.
#pragma once

#include "cm384/rows.h"
#include "cm384/sort.h"

namespace AscendC {

// Rows of `inner` elements, a multiple of 32, of which the first n count.
struct TopKInfo {
  int32_t outter = 1;
  int32_t inner = 0;
  int32_t n = 0;
};
enum class TopKMode { TOPK_NORMAL, TOPK_NSMALL };

// Rows of values and of indices are k rounded up to whole blocks long. Of equal values the first one comes
// first. Both assumed.
template <typename T, bool isInitIndex = false, bool isHasfinish = false, bool isReuseSrc = false,
          TopKMode topkMode = TopKMode::TOPK_NORMAL>
inline void TopK(const LocalTensor<T>& dstValue, const LocalTensor<int32_t>& dstIndex,
                 const LocalTensor<T>& src, const LocalTensor<int32_t>& srcIndex,
                 const LocalTensor<bool>& finish, const LocalTensor<uint8_t>& tmp, const int32_t k,
                 const TopkTiling& /*tiling*/, const TopKInfo& info, const bool isLargest = true) {
  const auto inner = static_cast<uint32_t>(info.inner), n = static_cast<uint32_t>(info.n),
             most = static_cast<uint32_t>(k);
  if (inner % 32 != 0 || n > inner || most > n)
    Abort("TopK: inner is a multiple of 32, k is at most n and that at most inner: docs/ascend-c.md");
  constexpr uint32_t kBlock = ONE_BLK_SIZE / sizeof(T);
  const uint32_t values = (most + kBlock - 1) / kBlock * kBlock, indices = (most + 7) / 8 * 8;
  const LocalTensor<float> x = Cm384Scratch(tmp, inner * 32).template ReinterpretCast<float>(),
                           sorted = x[2 * inner], other = x[4 * inner], top = x[6 * inner];
  const LocalTensor<uint32_t> at = x[inner].template ReinterpretCast<uint32_t>(),
                              chosen = x[7 * inner].template ReinterpretCast<uint32_t>();
  const auto repeats = static_cast<int32_t>(inner / 32);
  for (uint32_t row = 0; row < static_cast<uint32_t>(info.outter); ++row) {
    Duplicate(x, -__builtin_inff(), static_cast<int32_t>(inner));
    PipeBarrier<PIPE_V>();
    Cm384RowIn(x, src[row * inner], n);
    if (!isLargest) {
      Muls(x, x, -1.0f, static_cast<int32_t>(n));
      PipeBarrier<PIPE_V>();
    }
    const LocalTensor<int32_t> index = at.template ReinterpretCast<int32_t>();
    if constexpr (isInitIndex) {
      Adds(index, srcIndex[row * inner], int32_t{0}, static_cast<int32_t>(inner));
    } else {
      CreateVecIndex(index, int32_t{0}, inner);
    }
    PipeBarrier<PIPE_V>();
    Sort<float, true>(sorted, x, at, other, repeats);
    PipeBarrier<PIPE_V>();
    Extract(top, chosen, sorted, repeats);
    PipeBarrier<PIPE_V>();
    if (!isLargest) {
      Muls(top, top, -1.0f, static_cast<int32_t>(inner));
      PipeBarrier<PIPE_V>();
    }
    Cm384RowOut(dstValue[row * values], top, most);
    // A row that has ended gets an index behind its end.
    bool ended = false;
    if constexpr (isHasfinish) {
      SetFlag<HardEvent::V_S>(EVENT_ID7);
      WaitFlag<HardEvent::V_S>(EVENT_ID7);
      ended = finish.GetValue(row);
    }
    if (ended) {
      Duplicate(dstIndex[row * indices], static_cast<int32_t>(n), k);
    } else {
      Adds(dstIndex[row * indices], chosen.template ReinterpretCast<int32_t>(), int32_t{0}, k);
    }
    PipeBarrier<PIPE_V>();
  }
}
template <typename T, bool isInitIndex = false, bool isHasfinish = false, bool isReuseSrc = false,
          TopKMode topkMode = TopKMode::TOPK_NORMAL>
CM384_INLINE void TopK(const LocalTensor<T>& dstValue, const LocalTensor<int32_t>& dstIndex,
                       const LocalTensor<T>& src, const LocalTensor<int32_t>& srcIndex,
                       const LocalTensor<bool>& finish, const int32_t k, const TopkTiling& tiling,
                       const TopKInfo& info, const bool isLargest = true) {
  TopK<T, isInitIndex, isHasfinish, isReuseSrc, topkMode>(dstValue, dstIndex, src, srcIndex, finish,
                                                          LocalTensor<uint8_t>(), k, tiling, info, isLargest);
}

// (src + offset) * scale in FP32, k rows with an offset and a scale for each of their columns, or with one of
// each. The order of arguments is assumed.
template <typename D>
inline void Cm384AntiQuantPiece(const LocalTensor<D>& dst, const LocalTensor<int8_t>& src,
                                const LocalTensor<float>& x, const LocalTensor<half>& h, uint32_t n) {
  Cast(h, src, RoundMode::CAST_NONE, n);
  PipeBarrier<PIPE_V>();
  Cast(x, h, RoundMode::CAST_NONE, n);
  PipeBarrier<PIPE_V>();
}
struct AntiQuantShapeInfo {
  uint32_t offsetHeight = 0, offsetWidth = 0, scaleHeight = 0, scaleWidth = 0;
};
template <typename D, bool isTranspose = false>
inline void AscendAntiQuant(const LocalTensor<D>& dst, const LocalTensor<int8_t>& src,
                            const LocalTensor<D>& offset, const LocalTensor<D>& scale,
                            const LocalTensor<uint8_t>& tmp, const uint32_t k,
                            const AntiQuantShapeInfo& shape = {}) {
  static_assert(!isTranspose, "AscendAntiQuant: transposed weights are not there: docs/ascend-c.md");
  const uint32_t n = shape.scaleWidth != 0 ? shape.scaleWidth : scale.GetSize();
  const uint32_t each = (n + 31) / 32 * 32;
  const LocalTensor<float> x = Cm384Scratch(tmp, each * 14).template ReinterpretCast<float>(), o = x[each],
                           s = x[2 * each];
  const LocalTensor<half> h = x[3 * each].template ReinterpretCast<half>();
  const auto count = static_cast<int32_t>(n);
  Cm384RowIn(o, offset, n);
  Cm384RowIn(s, scale, n);
  for (uint32_t row = 0; row < k; ++row) {
    Cm384AntiQuantPiece(dst, src[row * n], x, h, n);
    Add(x, x, o, count);
    PipeBarrier<PIPE_V>();
    Mul(x, x, s, count);
    PipeBarrier<PIPE_V>();
    Cm384RowOut(dst[row * n], x, n);
  }
}
template <typename D, bool isTranspose = false>
CM384_INLINE void AscendAntiQuant(const LocalTensor<D>& dst, const LocalTensor<int8_t>& src,
                                  const LocalTensor<D>& offset, const LocalTensor<D>& scale, const uint32_t k,
                                  const AntiQuantShapeInfo& shape = {}) {
  AscendAntiQuant<D, isTranspose>(dst, src, offset, scale, LocalTensor<uint8_t>(), k, shape);
}
template <typename D, bool isTranspose = false>
inline void AscendAntiQuant(const LocalTensor<D>& dst, const LocalTensor<int8_t>& src, const D offset,
                            const D scale, const LocalTensor<uint8_t>& tmp, const uint32_t k,
                            const AntiQuantShapeInfo& = {}) {
  static_assert(!isTranspose, "AscendAntiQuant: transposed weights are not there: docs/ascend-c.md");
  constexpr uint32_t kEach = 512;
  const LocalTensor<float> x = Cm384Scratch(tmp, kEach * 6).template ReinterpretCast<float>();
  const LocalTensor<half> h = x[kEach].template ReinterpretCast<half>();
  const uint32_t all = src.GetSize() == 0 ? k : src.GetSize();
  for (uint32_t first = 0; first < all; first += kEach) {
    const uint32_t now = all - first < kEach ? all - first : kEach;
    Cm384AntiQuantPiece(dst, src[first], x, h, now);
    Adds(x, x, static_cast<float>(offset), static_cast<int32_t>(now));
    PipeBarrier<PIPE_V>();
    Muls(x, x, static_cast<float>(scale), static_cast<int32_t>(now));
    PipeBarrier<PIPE_V>();
    Cm384RowOut(dst[first], x, now);
  }
}
template <typename D, bool isTranspose = false>
CM384_INLINE void AscendAntiQuant(const LocalTensor<D>& dst, const LocalTensor<int8_t>& src, const D offset,
                                  const D scale, const uint32_t k, const AntiQuantShapeInfo& shape = {}) {
  AscendAntiQuant<D, isTranspose>(dst, src, offset, scale, LocalTensor<uint8_t>(), k, shape);
}

// Two axes: AR takes the last one together, RA the first. Rows stand a multiple of 32 B apart where
// srcInnerPad says so. Sums in FP32.
namespace Pattern {
struct Reduce {
  struct AR {};
  struct RA {};
};
}  // namespace Pattern

template <typename P, typename T, typename Join, typename Row>
inline void Cm384ReduceAxis(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                            const LocalTensor<uint8_t>& tmp, const uint32_t* shape, bool pad,
                            const Join& join, const Row& of_row) {
  constexpr uint32_t kBlock = ONE_BLK_SIZE / sizeof(T);
  const uint32_t rows = shape[0], n = shape[1], pitch = pad ? (n + kBlock - 1) / kBlock * kBlock : n;
  if (pitch % kBlock != 0) Abort("reduction along an axis: rows that are not padded are whole blocks");
  const uint32_t each = (n + 63) / 64 * 64;
  const LocalTensor<float> one = Cm384Scratch(tmp, each * 8 + 288).template ReinterpretCast<float>(),
                           x = one[8], sum = x[each];
  for (uint32_t row = 0; row < rows; ++row) {
    const bool first = row == 0 && is_same_v<P, Pattern::Reduce::RA>;
    Cm384RowIn(first ? sum : x, src[row * pitch], n);
    if constexpr (is_same_v<P, Pattern::Reduce::AR>) {
      dst.SetValue(row, static_cast<T>(of_row(x, one, n)));
    } else if (!first) {
      join(sum, sum, x, static_cast<int32_t>(n));
      PipeBarrier<PIPE_V>();
    }
  }
  if constexpr (is_same_v<P, Pattern::Reduce::AR>) {
    Cm384AfterScalarTurn();
  } else {
    Cm384RowOut(dst, sum, n);
  }
}
#define CM384_REDUCE_AXIS(Name, Join, of_row)                                                             \
  template <typename T, typename P, bool isReuseSource = false>                                           \
  inline void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint8_t>& tmp, \
                   const uint32_t* srcShape, bool srcInnerPad) {                                          \
    Cm384ReduceAxis<P>(                                                                                   \
        dst, src, tmp, srcShape, srcInnerPad,                                                             \
        [](const auto& d, const auto& a, const auto& b, int32_t n) { Join(d, a, b, n); }, of_row);        \
  }                                                                                                       \
  template <typename T, typename P, bool isReuseSource = false>                                           \
  CM384_INLINE void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint32_t* srcShape,  \
                         bool srcInnerPad) {                                                              \
    Name<T, P, isReuseSource>(dst, src, LocalTensor<uint8_t>(), srcShape, srcInnerPad);                   \
  }
CM384_INLINE float Cm384RowMin(const LocalTensor<float>& x, const LocalTensor<float>& one, uint32_t n) {
  ReduceMin(one, x, one, static_cast<int32_t>(n));
  return Cm384ReadBack(one);
}
CM384_REDUCE_AXIS(ReduceSum, Add, Cm384RowSum)
CM384_REDUCE_AXIS(ReduceMax, Max, Cm384RowMax)
CM384_REDUCE_AXIS(ReduceMin, Min, Cm384RowMin)
#undef CM384_REDUCE_AXIS

// What a mask drops is 0, the rest is divided by keepProb. The mask has a byte an element, or a bit where its
// rows are shorter than those of src; dropOutMode 1 and 2 mean bytes, 3 and 4 bits (assumed).
struct DropOutShapeInfo {
  uint32_t firstAxis = 0;
  uint32_t srcLastAxis = 0;
  uint32_t maskLastAxis = 0;
};
template <typename T, bool isInitBitMode = false, uint32_t dropOutMode = 0>
inline void DropOut(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint8_t>& mask,
                    const LocalTensor<uint8_t>& tmp, const float keepProb, const DropOutShapeInfo& p) {
  const bool bytes = dropOutMode == 0 ? p.maskLastAxis >= p.srcLastAxis : dropOutMode < 3;
  const uint32_t n = p.srcLastAxis, each = (n + 63) / 64 * 64;
  const LocalTensor<float> x = Cm384Scratch(tmp, each * 10 + 64).template ReinterpretCast<float>(),
                           m = x[each];
  const LocalTensor<half> h = m[each].template ReinterpretCast<half>();
  const auto count = static_cast<int32_t>(n);
  for (uint32_t row = 0; row < p.firstAxis; ++row) {
    Cm384RowIn(x, src[row * n], n);
    Muls(x, x, 1.0f / keepProb, count);
    const LocalTensor<uint8_t> of_row = mask[row * p.maskLastAxis];
    if (bytes) {
      Cast(h, of_row, RoundMode::CAST_NONE, n);
      PipeBarrier<PIPE_V>();
      Cast(m, h, RoundMode::CAST_NONE, n);
      PipeBarrier<PIPE_V>();
      // Any number but 0 keeps.
      Mins(m, m, 1.0f, count);
    } else {
      SetFlag<HardEvent::V_S>(EVENT_ID7);
      WaitFlag<HardEvent::V_S>(EVENT_ID7);
      for (uint32_t i = 0; i < n; ++i) m.SetValue(i, static_cast<float>(of_row.GetValue(i / 8) >> i % 8 & 1));
      SetFlag<HardEvent::S_V>(EVENT_ID7);
      WaitFlag<HardEvent::S_V>(EVENT_ID7);
    }
    PipeBarrier<PIPE_V>();
    Mul(x, x, m, count);
    PipeBarrier<PIPE_V>();
    Cm384RowOut(dst[row * n], x, n);
  }
}
template <typename T, bool isInitBitMode = false, uint32_t dropOutMode = 0>
CM384_INLINE void DropOut(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                          const LocalTensor<uint8_t>& mask, const float keepProb, const DropOutShapeInfo& p) {
  DropOut<T, isInitBitMode, dropOutMode>(dst, src, mask, LocalTensor<uint8_t>(), keepProb, p);
}

}  // namespace AscendC
