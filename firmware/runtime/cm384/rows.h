// Calls of Ascend C's library on rows: softmax, norms, means, the largest. Each row goes through the vector
// unit in FP32, and its sums and maxima through the scalar unit: their cost is not the vendor's.
#pragma once

#include "cm384/layout.h"
#include "cm384/reduce.h"
#include "standard/cmath"

// What hosts compute for these calls; only sizes are looked at. Order of fields assumed.
struct SoftMaxTiling {
  uint32_t srcM, srcK, srcSize, outMaxM, outMaxK, outMaxSize, splitM, splitK, splitSize, reduceM, reduceK,
      reduceSize, rangeM, tailM, tailSplitSize, tailReduceSize;
};
struct RmsNormTiling {
  uint32_t bLength, sLength, hLength, originalHLength, reciprocalOfHLength, mainBshLength, mainBsLength,
      mainBsLengthAlign, loopRound, inputTailPos, tailBshLength, tailBsLength;
};
struct LayerNormTiling {
  uint32_t bLength, sLength, hLength, originalHLength, inputXSize, meanVarSize, numberOfTmpBuf,
      meanTmpTensorPos, meanTmpTensorSize, varianceTmpTensorPos, varianceTmpTensorSize, tmpBufSize,
      oneTmpSize, firstTmpStartPos, secondTmpStartPos, thirdTmpStartPos, loopRound, inputRoundSize,
      inputTailSize, inputTailPos, meanVarRoundSize, meanVarTailSize, meanVarTailPos, bshCurLength,
      bsCurLength;
  float lastDimValueBack;
};
struct TopkTiling {
  uint32_t reserved[24];
};

namespace AscendC {
namespace tiling {
using ::LayerNormTiling;
using ::RmsNormTiling;
using ::SoftMaxTiling;
using ::TopkTiling;
}  // namespace tiling

// Rows of srcK elements, of which the first oriSrcK count; zeros: as the tiling has it.
struct SoftMaxShapeInfo {
  uint32_t srcM = 0;
  uint32_t srcK = 0;
  uint32_t oriSrcM = 0;
  uint32_t oriSrcK = 0;
};
struct SoftmaxConfig {
  bool isCheckTiling = true;
  uint32_t oriSrcM = 0;
  uint32_t oriSrcK = 0;
};
inline constexpr SoftmaxConfig SOFTMAX_DEFAULT_CFG{};

// A row in FP32: f(x, n) on `n` elements of the temporary `x`, then to dst.
template <typename T>
CM384_INLINE void Cm384RowIn(const LocalTensor<float>& x, const LocalTensor<T>& src, uint32_t n) {
  if constexpr (is_same_v<T, float>) {
    Adds(x, src, 0.0f, static_cast<int32_t>(n));
  } else {
    Cast(x, src, RoundMode::CAST_NONE, n);
  }
  PipeBarrier<PIPE_V>();
}
template <typename T>
CM384_INLINE void Cm384RowOut(const LocalTensor<T>& dst, const LocalTensor<float>& x, uint32_t n) {
  if constexpr (is_same_v<T, float>) {
    Adds(dst, x, 0.0f, static_cast<int32_t>(n));
  } else {
    Cast(dst, x, RoundMode::CAST_RINT, n);
  }
  PipeBarrier<PIPE_V>();
}
// The vector unit's result, as the scalar unit reads it.
CM384_INLINE float Cm384ReadBack(const LocalTensor<float>& value) {
  SetFlag<HardEvent::V_S>(EVENT_ID7);
  WaitFlag<HardEvent::V_S>(EVENT_ID7);
  return value.GetValue(0);
}
CM384_INLINE float Cm384RowSum(const LocalTensor<float>& x, const LocalTensor<float>& one, uint32_t n) {
  ReduceSum(one, x, one, static_cast<int32_t>(n));
  return Cm384ReadBack(one);
}
CM384_INLINE float Cm384RowMax(const LocalTensor<float>& x, const LocalTensor<float>& one, uint32_t n) {
  ReduceMax(one, x, one, static_cast<int32_t>(n));
  return Cm384ReadBack(one);
}

struct Cm384RowShape {
  uint32_t rows, pitch, width;
};
CM384_INLINE Cm384RowShape Cm384RowsOf(const SoftMaxTiling& t, const SoftMaxShapeInfo& shape, uint32_t size) {
  const uint32_t pitch = shape.srcK != 0 ? shape.srcK : t.srcK;
  if (pitch == 0) Abort("softmax: neither its tiling nor its shape says how long rows are: docs/ascend-c.md");
  const uint32_t rows = shape.oriSrcM != 0 ? shape.oriSrcM : shape.srcM != 0 ? shape.srcM : size / pitch;
  return {rows, pitch, shape.oriSrcK != 0 ? shape.oriSrcK : pitch};
}
template <typename S>
CM384_INLINE void Cm384FillBlock(const LocalTensor<S>& blocks, uint32_t row, float value) {
  Duplicate(blocks[row * (ONE_BLK_SIZE / sizeof(S))], static_cast<S>(value),
            static_cast<int32_t>(ONE_BLK_SIZE / sizeof(S)));
}

// Rows of exp(x - max) / sum; sum and max hold a block a row, the value repeated.
template <typename T, bool isReuseSource = false, bool isBasicBlock = false, bool isDataFormatNZ = false,
          const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG, typename S>
inline void SoftMax(const LocalTensor<T>& dst, const LocalTensor<S>& sum, const LocalTensor<S>& max,
                    const LocalTensor<T>& src, const LocalTensor<uint8_t>& tmp, const SoftMaxTiling& tiling,
                    const SoftMaxShapeInfo& shape = {}) {
  static_assert(!isDataFormatNZ, "SoftMax: NZ not there: docs/ascend-c.md");
  const Cm384RowShape r = Cm384RowsOf(tiling, shape, src.GetSize());
  const LocalTensor<float> one = Cm384Scratch(tmp, r.width * 4 + 288).template ReinterpretCast<float>(),
                           x = one[8];
  for (uint32_t row = 0; row < r.rows; ++row) {
    Cm384RowIn(x, src[row * r.pitch], r.width);
    const float most = Cm384RowMax(x, one, r.width);
    Adds(x, x, -most, static_cast<int32_t>(r.width));
    PipeBarrier<PIPE_V>();
    Exp(x, x, static_cast<int32_t>(r.width));
    PipeBarrier<PIPE_V>();
    const float all = Cm384RowSum(x, one, r.width);
    Muls(x, x, 1.0f / all, static_cast<int32_t>(r.width));
    PipeBarrier<PIPE_V>();
    Cm384RowOut(dst[row * r.pitch], x, r.width);
    if (sum.GetSize() != 0) Cm384FillBlock(sum, row, all);
    if (max.GetSize() != 0) Cm384FillBlock(max, row, most);
    PipeBarrier<PIPE_V>();
  }
}
template <typename T, bool isReuseSource = false, bool isBasicBlock = false, bool isDataFormatNZ = false,
          const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG, typename S>
CM384_INLINE void SoftMax(const LocalTensor<T>& dst, const LocalTensor<S>& sum, const LocalTensor<S>& max,
                          const LocalTensor<T>& src, const SoftMaxTiling& tiling,
                          const SoftMaxShapeInfo& shape = {}) {
  SoftMax<T, isReuseSource, isBasicBlock, isDataFormatNZ, config>(dst, sum, max, src, LocalTensor<uint8_t>(),
                                                                  tiling, shape);
}
// Without sum and max.
template <typename T, bool isReuseSource = false, bool isBasicBlock = false,
          const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG>
CM384_INLINE void SoftMax(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                          const LocalTensor<uint8_t>& tmp, const SoftMaxTiling& tiling,
                          const SoftMaxShapeInfo& shape = {}) {
  SoftMax<T>(dst, LocalTensor<float>(), LocalTensor<float>(), src, tmp, tiling, shape);
}
template <typename T, bool isReuseSource = false, bool isBasicBlock = false,
          const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG>
CM384_INLINE void SoftMax(const LocalTensor<T>& dst, const LocalTensor<T>& src, const SoftMaxTiling& tiling,
                          const SoftMaxShapeInfo& shape = {}) {
  SoftMax<T>(dst, LocalTensor<float>(), LocalTensor<float>(), src, LocalTensor<uint8_t>(), tiling, shape);
}
// With sum and max that are given.
template <typename T, bool isReuseSource = false, bool isBasicBlock = false, bool isDataFormatNZ = false,
          const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG, typename S>
inline void SimpleSoftMax(const LocalTensor<T>& dst, const LocalTensor<S>& sum, const LocalTensor<S>& max,
                          const LocalTensor<T>& src, const LocalTensor<uint8_t>& tmp,
                          const SoftMaxTiling& tiling, const SoftMaxShapeInfo& shape = {}) {
  const Cm384RowShape r = Cm384RowsOf(tiling, shape, src.GetSize());
  const LocalTensor<float> x = Cm384Scratch(tmp, r.width * 4 + 256).template ReinterpretCast<float>();
  Cm384ScalarTurn();
  for (uint32_t row = 0; row < r.rows; ++row) {
    const float all = sum.GetValue(row * (ONE_BLK_SIZE / sizeof(S))),
                most = max.GetValue(row * (ONE_BLK_SIZE / sizeof(S)));
    Cm384RowIn(x, src[row * r.pitch], r.width);
    Adds(x, x, -most, static_cast<int32_t>(r.width));
    PipeBarrier<PIPE_V>();
    Exp(x, x, static_cast<int32_t>(r.width));
    PipeBarrier<PIPE_V>();
    Muls(x, x, 1.0f / all, static_cast<int32_t>(r.width));
    PipeBarrier<PIPE_V>();
    Cm384RowOut(dst[row * r.pitch], x, r.width);
  }
}
template <typename T, bool isReuseSource = false, bool isBasicBlock = false, bool isDataFormatNZ = false,
          const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG, typename S>
CM384_INLINE void SimpleSoftMax(const LocalTensor<T>& dst, const LocalTensor<S>& sum,
                                const LocalTensor<S>& max, const LocalTensor<T>& src,
                                const SoftMaxTiling& tiling, const SoftMaxShapeInfo& shape = {}) {
  SimpleSoftMax<T>(dst, sum, max, src, LocalTensor<uint8_t>(), tiling, shape);
}

// Rows of exp(x - max), their sums and maxima. With isUpdate of what has been seen before, too: the maximum
// is of both, expMax = exp(inMax - max), the sum expMax * inSum and this one. Nothing is divided.
template <typename T, bool isUpdate = false, bool isReuseSource = false, bool isBasicBlock = false,
          bool isDataFormatNZ = false, const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG, typename S>
inline void SoftmaxFlashV2(const LocalTensor<T>& dst, const LocalTensor<S>& expSum, const LocalTensor<S>& max,
                           const LocalTensor<T>& src, const LocalTensor<T>& expMax,
                           const LocalTensor<S>& inExpSum, const LocalTensor<S>& inMax,
                           const LocalTensor<uint8_t>& tmp, const SoftMaxTiling& tiling,
                           const SoftMaxShapeInfo& shape = {}) {
  static_assert(!isDataFormatNZ, "SoftmaxFlashV2: NZ not there: docs/ascend-c.md");
  const Cm384RowShape r = Cm384RowsOf(tiling, shape, src.GetSize());
  const auto n = static_cast<int32_t>(r.width);
  constexpr uint32_t kBlock = ONE_BLK_SIZE / sizeof(S);
  const LocalTensor<float> one = Cm384Scratch(tmp, r.width * 4 + 288).template ReinterpretCast<float>(),
                           x = one[8];
  Cm384ScalarTurn();
  for (uint32_t row = 0; row < r.rows; ++row) {
    const float before = isUpdate ? static_cast<float>(inMax.GetValue(row * kBlock)) : 0.0f;
    const float sum_before = isUpdate ? static_cast<float>(inExpSum.GetValue(row * kBlock)) : 0.0f;
    Cm384RowIn(x, src[row * r.pitch], r.width);
    float most = Cm384RowMax(x, one, r.width), factor = 0.0f;
    if (isUpdate) {
      most = before > most ? before : most;
      Cm384FillBlock(one, 0, before - most);
      PipeBarrier<PIPE_V>();
      Exp(one, one, 8);
      factor = Cm384ReadBack(one);
      Cm384FillBlock(expMax, row, factor);
    }
    Adds(x, x, -most, n);
    PipeBarrier<PIPE_V>();
    Exp(x, x, n);
    PipeBarrier<PIPE_V>();
    const float all = factor * sum_before + Cm384RowSum(x, one, r.width);
    Cm384RowOut(dst[row * r.pitch], x, r.width);
    Cm384FillBlock(expSum, row, all);
    Cm384FillBlock(max, row, most);
    PipeBarrier<PIPE_V>();
  }
}
template <typename T, bool isUpdate = false, bool isReuseSource = false, bool isBasicBlock = false,
          bool isDataFormatNZ = false, const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG, typename S>
CM384_INLINE void SoftmaxFlashV2(const LocalTensor<T>& dst, const LocalTensor<S>& expSum,
                                 const LocalTensor<S>& max, const LocalTensor<T>& src,
                                 const LocalTensor<T>& expMax, const LocalTensor<S>& inExpSum,
                                 const LocalTensor<S>& inMax, const SoftMaxTiling& tiling,
                                 const SoftMaxShapeInfo& shape = {}) {
  SoftmaxFlashV2<T, isUpdate>(dst, expSum, max, src, expMax, inExpSum, inMax, LocalTensor<uint8_t>(), tiling,
                              shape);
}

// Of rows of a softmax's results and gradients: their products summed up, a block a row; and with all of it
// the gradient before the softmax, src * (grad - that). Order of arguments assumed.
template <bool front, typename T>
inline void Cm384SoftmaxGrad(const LocalTensor<T>& dst, const LocalTensor<T>& grad, const LocalTensor<T>& src,
                             const LocalTensor<uint8_t>& tmp, const Cm384RowShape& r) {
  const auto n = static_cast<int32_t>(r.width);
  const uint32_t part = (r.width + 7) / 8 * 8;
  const LocalTensor<float> one = Cm384Scratch(tmp, part * 12 + 32).template ReinterpretCast<float>(),
                           x = one[8], g = x[part], product = g[part];
  for (uint32_t row = 0; row < r.rows; ++row) {
    Cm384RowIn(x, src[row * r.pitch], r.width);
    Cm384RowIn(g, grad[row * r.pitch], r.width);
    Mul(product, x, g, n);
    PipeBarrier<PIPE_V>();
    const float sum = Cm384RowSum(product, one, r.width);
    if constexpr (front) {
      Cm384FillBlock(dst, row, sum);
      PipeBarrier<PIPE_V>();
    } else {
      Adds(g, g, -sum, n);
      PipeBarrier<PIPE_V>();
      Mul(x, x, g, n);
      PipeBarrier<PIPE_V>();
      Cm384RowOut(dst[row * r.pitch], x, r.width);
    }
  }
}
template <typename T, bool isReuseSource = false, bool isDataFormatNZ = false>
inline void SoftmaxGrad(const LocalTensor<T>& dst, const LocalTensor<T>& grad, const LocalTensor<T>& src,
                        const LocalTensor<uint8_t>& tmp, const SoftMaxTiling& tiling, bool isFront = false,
                        const SoftMaxShapeInfo& shape = {}) {
  static_assert(!isDataFormatNZ, "SoftmaxGrad: NZ not there: docs/ascend-c.md");
  const Cm384RowShape r = Cm384RowsOf(tiling, shape, src.GetSize());
  if (isFront) return Cm384SoftmaxGrad<true>(dst, grad, src, tmp, r);
  Cm384SoftmaxGrad<false>(dst, grad, src, tmp, r);
}
template <typename T, bool isReuseSource = false, bool isDataFormatNZ = false>
CM384_INLINE void SoftmaxGrad(const LocalTensor<T>& dst, const LocalTensor<T>& grad,
                              const LocalTensor<T>& src, const SoftMaxTiling& tiling, bool isFront = false,
                              const SoftMaxShapeInfo& shape = {}) {
  SoftmaxGrad<T, isReuseSource, isDataFormatNZ>(dst, grad, src, LocalTensor<uint8_t>(), tiling, isFront,
                                                shape);
}
template <typename T, bool isBasicBlock = false, bool isDataFormatNZ = false>
CM384_INLINE void SoftmaxGradFront(const LocalTensor<T>& dst, const LocalTensor<T>& grad,
                                   const LocalTensor<T>& src, const LocalTensor<uint8_t>& tmp,
                                   const SoftMaxTiling& tiling, const SoftMaxShapeInfo& shape = {}) {
  SoftmaxGrad<T, false, isDataFormatNZ>(dst, grad, src, tmp, tiling, true, shape);
}
template <typename T, bool isBasicBlock = false, bool isDataFormatNZ = false>
CM384_INLINE void SoftmaxGradFront(const LocalTensor<T>& dst, const LocalTensor<T>& grad,
                                   const LocalTensor<T>& src, const SoftMaxTiling& tiling,
                                   const SoftMaxShapeInfo& shape = {}) {
  SoftmaxGrad<T, false, isDataFormatNZ>(dst, grad, src, LocalTensor<uint8_t>(), tiling, true, shape);
}

// x / sqrt(mean(x^2) + epsilon) * gamma, rows of hLength of which originalHLength count.
template <typename T, bool isBasicBlock = false>
inline void RmsNorm(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>& gamma,
                    const LocalTensor<uint8_t>& tmp, const T epsilon, const RmsNormTiling& tiling) {
  const uint32_t pitch = tiling.hLength, n = tiling.originalHLength != 0 ? tiling.originalHLength : pitch,
                 part = (n + 7) / 8 * 8;
  const auto count = static_cast<int32_t>(n);
  const LocalTensor<float> one = Cm384Scratch(tmp, part * 12 + 32).template ReinterpretCast<float>(),
                           x = one[8], y = x[part], g = y[part];
  Cm384RowIn(g, gamma, n);
  for (uint32_t row = 0; row < tiling.bLength * tiling.sLength; ++row) {
    Cm384RowIn(x, src[row * pitch], n);
    Mul(y, x, x, count);
    PipeBarrier<PIPE_V>();
    const float mean = Cm384RowSum(y, one, n) / static_cast<float>(n);
    Muls(x, x, 1.0f / std::sqrt(mean + static_cast<float>(epsilon)), count);
    PipeBarrier<PIPE_V>();
    Mul(x, x, g, count);
    PipeBarrier<PIPE_V>();
    Cm384RowOut(dst[row * pitch], x, n);
  }
}
template <typename T, bool isBasicBlock = false>
CM384_INLINE void RmsNorm(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>& gamma,
                          const T epsilon, const RmsNormTiling& tiling) {
  RmsNorm<T, isBasicBlock>(dst, src, gamma, LocalTensor<uint8_t>(), epsilon, tiling);
}
// (x - mean) / sqrt(variance + epsilon) * gamma + beta; mean and variance of each row, too.
template <typename T, bool isReuseSource = false>
inline void LayerNorm(const LocalTensor<T>& dst, const LocalTensor<T>& mean, const LocalTensor<T>& variance,
                      const LocalTensor<T>& src, const LocalTensor<T>& gamma, const LocalTensor<T>& beta,
                      const LocalTensor<uint8_t>& tmp, const T epsilon, const LayerNormTiling& tiling) {
  const uint32_t pitch = tiling.hLength, n = tiling.originalHLength != 0 ? tiling.originalHLength : pitch,
                 part = (n + 7) / 8 * 8;
  const auto count = static_cast<int32_t>(n);
  const LocalTensor<float> one = Cm384Scratch(tmp, part * 16 + 32).template ReinterpretCast<float>(),
                           x = one[8], y = x[part], g = y[part], b = g[part];
  Cm384RowIn(g, gamma, n);
  Cm384RowIn(b, beta, n);
  for (uint32_t row = 0; row < tiling.bLength * tiling.sLength; ++row) {
    Cm384RowIn(x, src[row * pitch], n);
    const float middle = Cm384RowSum(x, one, n) / static_cast<float>(n);
    Adds(x, x, -middle, count);
    PipeBarrier<PIPE_V>();
    Mul(y, x, x, count);
    PipeBarrier<PIPE_V>();
    const float spread = Cm384RowSum(y, one, n) / static_cast<float>(n);
    Muls(x, x, 1.0f / std::sqrt(spread + static_cast<float>(epsilon)), count);
    PipeBarrier<PIPE_V>();
    Mul(x, x, g, count);
    PipeBarrier<PIPE_V>();
    Add(x, x, b, count);
    PipeBarrier<PIPE_V>();
    Cm384RowOut(dst[row * pitch], x, n);
    mean.SetValue(row, static_cast<T>(middle));
    variance.SetValue(row, static_cast<T>(spread));
  }
  Cm384AfterScalarTurn();
}
template <typename T, bool isReuseSource = false>
CM384_INLINE void LayerNorm(const LocalTensor<T>& dst, const LocalTensor<T>& mean,
                            const LocalTensor<T>& variance, const LocalTensor<T>& src,
                            const LocalTensor<T>& gamma, const LocalTensor<T>& beta, const T epsilon,
                            const LayerNormTiling& tiling) {
  LayerNorm<T, isReuseSource>(dst, mean, variance, src, gamma, beta, LocalTensor<uint8_t>(), epsilon, tiling);
}

// The mean of the first n of each row of `inner`.
struct MeanParams {
  uint32_t outter = 1;
  uint32_t inner = 0;
  uint32_t n = 0;
};
template <typename T, typename accType = T, bool isReuseSource = false, bool isBasicBlock = false,
          int32_t reduceDim = -1>
inline void Mean(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint8_t>& tmp,
                 const MeanParams& p) {
  const LocalTensor<float> one = Cm384Scratch(tmp, p.n * 4 + 288).template ReinterpretCast<float>(),
                           x = one[8];
  for (uint32_t row = 0; row < p.outter; ++row) {
    Cm384RowIn(x, src[row * p.inner], p.n);
    dst.SetValue(row, static_cast<T>(Cm384RowSum(x, one, p.n) / static_cast<float>(p.n)));
  }
  Cm384AfterScalarTurn();
}
template <typename T, typename accType = T, bool isReuseSource = false, bool isBasicBlock = false,
          int32_t reduceDim = -1>
CM384_INLINE void Mean(const LocalTensor<T>& dst, const LocalTensor<T>& src, const MeanParams& p) {
  Mean<T, accType, isReuseSource, isBasicBlock, reduceDim>(dst, src, LocalTensor<uint8_t>(), p);
}

}  // namespace AscendC
