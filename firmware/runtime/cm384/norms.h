// More calls of Ascend C's library on rows: softmax with results that are updated, the layer norm with its
// reciprocal deviation and its gradients, running means and variances. Orders of arguments and of fields that
// public pages do not show are assumed; costs are those of the instructions they are made of.
#pragma once

#include "cm384/quantise.h"
#include "cm384/rows.h"

// What hosts compute for these calls; only the first four sizes are looked at.
struct LayerNormGradTiling {
  uint32_t bLength, sLength, hLength, originalHLength, reserved[28];
};
struct LayerNormGradBetaTiling {
  uint32_t bLength, sLength, hLength, originalHLength, reserved[12];
};
struct LayerNormSeparateTiling {
  uint32_t aLength, rLength, reserved[30];
};

namespace AscendC {
namespace tiling {
using ::LayerNormGradBetaTiling;
using ::LayerNormGradTiling;
using ::LayerNormSeparateTiling;
}  // namespace tiling

// Rows of softmax, divided by their sums; with isUpdate of what was seen before, too: the sum is of both, and
// expMax = exp(inMax - max) * inSum / sum, by which the earlier result is multiplied.
template <typename T, bool isReuseSource = false, bool isBasicBlock = false, typename S>
inline void SoftmaxFlash(const LocalTensor<T>& dst, const LocalTensor<S>& sum, const LocalTensor<S>& max,
                         const LocalTensor<T>& src, const LocalTensor<T>& expMax, const LocalTensor<S>& inSum,
                         const LocalTensor<S>& inMax, const LocalTensor<uint8_t>& tmp,
                         const SoftMaxTiling& tiling, bool isUpdate = false,
                         const SoftMaxShapeInfo& shape = {}) {
  const Cm384RowShape r = Cm384RowsOf(tiling, shape, src.GetSize());
  const auto n = static_cast<int32_t>(r.width);
  constexpr uint32_t kBlock = ONE_BLK_SIZE / sizeof(S);
  const LocalTensor<float> one = Cm384Scratch(tmp, r.width * 4 + 288).template ReinterpretCast<float>(),
                           x = one[8];
  Cm384ScalarTurn();
  for (uint32_t row = 0; row < r.rows; ++row) {
    Cm384RowIn(x, src[row * r.pitch], r.width);
    float most = Cm384RowMax(x, one, r.width), before = 0;
    if (isUpdate) {
      const auto seen = static_cast<float>(inMax.GetValue(row * kBlock));
      most = seen > most ? seen : most;
      Cm384FillBlock(one, 0, seen - most);
      PipeBarrier<PIPE_V>();
      Exp(one, one, 8);
      before = Cm384ReadBack(one) * static_cast<float>(inSum.GetValue(row * kBlock));
    }
    Adds(x, x, -most, n);
    PipeBarrier<PIPE_V>();
    Exp(x, x, n);
    PipeBarrier<PIPE_V>();
    const float all = before + Cm384RowSum(x, one, r.width);
    Muls(x, x, 1.0f / all, n);
    PipeBarrier<PIPE_V>();
    Cm384RowOut(dst[row * r.pitch], x, r.width);
    Cm384FillBlock(sum, row, all);
    Cm384FillBlock(max, row, most);
    if (isUpdate) Cm384FillBlock(expMax, row, before / all);
    PipeBarrier<PIPE_V>();
  }
}
template <typename T, bool isReuseSource = false, bool isBasicBlock = false, typename S>
CM384_INLINE void SoftmaxFlash(const LocalTensor<T>& dst, const LocalTensor<S>& sum,
                               const LocalTensor<S>& max, const LocalTensor<T>& src,
                               const LocalTensor<T>& expMax, const LocalTensor<S>& inSum,
                               const LocalTensor<S>& inMax, const SoftMaxTiling& tiling,
                               bool isUpdate = false, const SoftMaxShapeInfo& shape = {}) {
  SoftmaxFlash<T>(dst, sum, max, src, expMax, inSum, inMax, LocalTensor<uint8_t>(), tiling, isUpdate, shape);
}
// Rows whose maximum has the bits `from` become `to`; whether there was one.
template <typename T, typename S, bool isDataFormatNZ = false, uint8_t stepSizeMode = 0>
inline bool AdjustSoftMaxRes(const LocalTensor<T>& res, const LocalTensor<S>& max, uint32_t from, T to,
                             const SoftMaxShapeInfo& shape) {
  static_assert(!isDataFormatNZ, "AdjustSoftMaxRes: NZ not there: docs/ascend-c.md");
  constexpr uint32_t kStep = stepSizeMode == 0 ? ONE_BLK_SIZE / sizeof(S) : stepSizeMode;
  bool found = false;
  Cm384ScalarTurn();
  for (uint32_t row = 0; row < shape.srcM; ++row) {
    const S most = max.GetValue(row * kStep);
    if (static_cast<uint32_t>(scalar_bits(most)) != from) continue;
    found = true;
    Duplicate(res[row * shape.srcK], to, static_cast<int32_t>(shape.srcK));
  }
  PipeBarrier<PIPE_V>();
  return found;
}

// Rows of rLength elements, rLengthWithPadding apart; statistics one after another, in FP32.
struct LayerNormPara {
  uint32_t aLength = 0;
  uint32_t rLength = 0;
  uint32_t rLengthWithPadding = 0;
};
using NormalizePara = LayerNormPara;
struct LayerNormConfig {
  bool isNoBeta = false, isNoGamma = false, isOnlyOutput = false;
};
struct NormalizeConfig {
  bool isNoBeta = false, isNoGamma = false, isOnlyOutput = false;
};
inline constexpr LayerNormConfig LNCFG_NORM{};
inline constexpr NormalizeConfig NLCFG_NORM{};

// (x - mean) * rstd * gamma + beta, of statistics that `of` says: of a row in FP32 mean and 1 / deviation.
template <bool no_gamma, bool no_beta, typename U, typename T, typename Statistics>
inline void Cm384NormRows(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<U>& gamma,
                          const LocalTensor<U>& beta, const LocalTensor<uint8_t>& tmp, const LayerNormPara& p,
                          Statistics of) {
  const uint32_t n = p.rLength, part = (n + 7) / 8 * 8, pitch = p.rLengthWithPadding;
  const auto count = static_cast<int32_t>(n);
  const LocalTensor<float> one = Cm384Scratch(tmp, part * 16 + 32).template ReinterpretCast<float>(),
                           x = one[8], y = x[part], g = y[part], b = g[part];
  if (!no_gamma) Cm384RowIn(g, gamma, n);
  if (!no_beta) Cm384RowIn(b, beta, n);
  for (uint32_t row = 0; row < p.aLength; ++row) {
    Cm384RowIn(x, src[row * pitch], n);
    float mean = 0, rstd = 0;
    of(row, x, y, one, mean, rstd);
    Adds(x, x, -mean, count);
    PipeBarrier<PIPE_V>();
    Muls(x, x, rstd, count);
    PipeBarrier<PIPE_V>();
    if (!no_gamma) Mul(x, x, g, count);
    PipeBarrier<PIPE_V>();
    if (!no_beta) Add(x, x, b, count);
    PipeBarrier<PIPE_V>();
    Cm384RowOut(dst[row * pitch], x, n);
  }
  Cm384AfterScalarTurn();
}
template <typename U, typename T, bool isReuseSource = false, const LayerNormConfig& config = LNCFG_NORM>
inline void LayerNorm(const LocalTensor<T>& output, const LocalTensor<float>& outputMean,
                      const LocalTensor<float>& outputRstd, const LocalTensor<T>& inputX,
                      const LocalTensor<U>& gamma, const LocalTensor<U>& beta, const float epsilon,
                      const LocalTensor<uint8_t>& tmp, const LayerNormPara& p,
                      const LayerNormSeparateTiling&) {
  const auto count = static_cast<int32_t>(p.rLength);
  const float each = 1.0f / static_cast<float>(p.rLength);
  Cm384NormRows<config.isNoGamma, config.isNoBeta>(
      output, inputX, gamma, beta, tmp, p,
      [&](uint32_t row, const LocalTensor<float>& x, const LocalTensor<float>& y,
          const LocalTensor<float>& one, float& mean, float& rstd) {
        mean = Cm384RowSum(x, one, p.rLength) * each;
        Adds(y, x, -mean, count);
        PipeBarrier<PIPE_V>();
        Mul(y, y, y, count);
        PipeBarrier<PIPE_V>();
        rstd = 1.0f / std::sqrt(Cm384RowSum(y, one, p.rLength) * each + epsilon);
        outputMean.SetValue(row, mean);
        outputRstd.SetValue(row, rstd);
      });
}
template <typename U, typename T, bool isReuseSource = false, const LayerNormConfig& config = LNCFG_NORM>
CM384_INLINE void LayerNorm(const LocalTensor<T>& output, const LocalTensor<float>& outputMean,
                            const LocalTensor<float>& outputRstd, const LocalTensor<T>& inputX,
                            const LocalTensor<U>& gamma, const LocalTensor<U>& beta, const float epsilon,
                            const LayerNormPara& p, const LayerNormSeparateTiling& tiling) {
  LayerNorm<U, T, isReuseSource, config>(output, outputMean, outputRstd, inputX, gamma, beta, epsilon,
                                         LocalTensor<uint8_t>(), p, tiling);
}
// The same of statistics that are given; the reciprocal deviation comes out.
template <typename U, typename T, bool isReuseSource = false, const NormalizeConfig& config = NLCFG_NORM>
inline void Normalize(const LocalTensor<T>& output, const LocalTensor<float>& outputRstd,
                      const LocalTensor<float>& inputMean, const LocalTensor<float>& inputVariance,
                      const LocalTensor<T>& inputX, const LocalTensor<U>& gamma, const LocalTensor<U>& beta,
                      const LocalTensor<uint8_t>& tmp, const float epsilon, const NormalizePara& p) {
  Cm384ScalarTurn();
  Cm384NormRows<config.isNoGamma, config.isNoBeta>(
      output, inputX, gamma, beta, tmp, p,
      [&](uint32_t row, const LocalTensor<float>&, const LocalTensor<float>&, const LocalTensor<float>&,
          float& mean, float& rstd) {
        mean = inputMean.GetValue(row);
        rstd = 1.0f / std::sqrt(inputVariance.GetValue(row) + epsilon);
        outputRstd.SetValue(row, rstd);
      });
}
template <typename U, typename T, bool isReuseSource = false, const NormalizeConfig& config = NLCFG_NORM>
CM384_INLINE void Normalize(const LocalTensor<T>& output, const LocalTensor<float>& outputRstd,
                            const LocalTensor<float>& inputMean, const LocalTensor<float>& inputVariance,
                            const LocalTensor<T>& inputX, const LocalTensor<U>& gamma,
                            const LocalTensor<U>& beta, const float epsilon, const NormalizePara& p) {
  Normalize<U, T, isReuseSource, config>(output, outputRstd, inputMean, inputVariance, inputX, gamma, beta,
                                         LocalTensor<uint8_t>(), epsilon, p);
}

struct LayerNormGradShapeInfo {
  DataFormat dataFormat = DataFormat::ND;
};
// The gradient before a layer norm, of rows with their variance and mean: with d = dy * gamma, r = 1 /
// sqrt(variance + epsilon) and c = x - mean it is
//   d * r + (2 c / n) * sum(-d * c * r^3 / 2) + (sum(-d * r) + sum(-d * c * r^3 / 2) * sum(-2 c) / n) / n,
// and c * r, of which the gradient of gamma is made.
template <typename T, bool isReuseSource = false>
inline void LayerNormGrad(const LocalTensor<T>& outputPdX, const LocalTensor<T>& resForGamma,
                          const LocalTensor<T>& inputDy, const LocalTensor<T>& inputX,
                          const LocalTensor<T>& inputVariance, const LocalTensor<T>& inputMean,
                          const LocalTensor<T>& inputGamma, const LocalTensor<uint8_t>& tmp, T epsilon,
                          const LayerNormGradTiling& tiling, const LayerNormGradShapeInfo& = {}) {
  const uint32_t pitch = tiling.hLength, n = tiling.originalHLength != 0 ? tiling.originalHLength : pitch,
                 part = (n + 7) / 8 * 8;
  const auto count = static_cast<int32_t>(n);
  const LocalTensor<float> one = Cm384Scratch(tmp, part * 16 + 32).template ReinterpretCast<float>(),
                           d = one[8], c = d[part], y = c[part], g = y[part];
  const Cm384VectorSteps s{count};
  const float each = 1.0f / static_cast<float>(n);
  Cm384ScalarTurn();
  Cm384RowIn(g, inputGamma, n);
  for (uint32_t row = 0; row < tiling.bLength * tiling.sLength; ++row) {
    const auto mean = static_cast<float>(inputMean.GetValue(row));
    const float r =
        1.0f / std::sqrt(static_cast<float>(inputVariance.GetValue(row)) + static_cast<float>(epsilon));
    Cm384RowIn(d, inputDy[row * pitch], n);
    Cm384RowIn(c, inputX[row * pitch], n);
    s.Mul(d, d, g);
    s.Adds(c, c, -mean);
    s.Mul(y, d, c);
    const float variance = -0.5f * r * r * r * Cm384RowSum(y, one, n);
    const float middle = -r * Cm384RowSum(d, one, n) - 2.0f * each * variance * Cm384RowSum(c, one, n);
    s.Muls(d, d, r);
    s.Muls(y, c, 2.0f * each * variance);
    s.Add(d, d, y);
    s.Adds(d, d, middle * each);
    Cm384RowOut(outputPdX[row * pitch], d, n);
    s.Muls(c, c, r);
    Cm384RowOut(resForGamma[row * pitch], c, n);
  }
}
template <typename T, bool isReuseSource = false>
CM384_INLINE void LayerNormGrad(const LocalTensor<T>& outputPdX, const LocalTensor<T>& resForGamma,
                                const LocalTensor<T>& inputDy, const LocalTensor<T>& inputX,
                                const LocalTensor<T>& inputVariance, const LocalTensor<T>& inputMean,
                                const LocalTensor<T>& inputGamma, T epsilon,
                                const LayerNormGradTiling& tiling, const LayerNormGradShapeInfo& shape = {}) {
  LayerNormGrad<T, isReuseSource>(outputPdX, resForGamma, inputDy, inputX, inputVariance, inputMean,
                                  inputGamma, LocalTensor<uint8_t>(), epsilon, tiling, shape);
}
// Gradients of gamma and beta: sums over all rows of resForGamma * dy, and of dy.
template <typename T, bool isReuseSource = false>
inline void LayerNormGradBeta(const LocalTensor<T>& outputPdGamma, const LocalTensor<T>& outputPdBeta,
                              const LocalTensor<T>& resForGamma, const LocalTensor<T>& inputDy,
                              const LocalTensor<uint8_t>& tmp, const LayerNormGradBetaTiling& tiling) {
  const uint32_t pitch = tiling.hLength, n = tiling.originalHLength != 0 ? tiling.originalHLength : pitch,
                 part = (n + 7) / 8 * 8;
  const LocalTensor<float> gamma = Cm384Scratch(tmp, part * 16).template ReinterpretCast<float>(),
                           beta = gamma[part], d = beta[part], y = d[part];
  const Cm384VectorSteps s{static_cast<int32_t>(n)};
  Duplicate(gamma, 0.0f, static_cast<int32_t>(n));
  Duplicate(beta, 0.0f, static_cast<int32_t>(n));
  PipeBarrier<PIPE_V>();
  for (uint32_t row = 0; row < tiling.bLength * tiling.sLength; ++row) {
    Cm384RowIn(d, inputDy[row * pitch], n);
    Cm384RowIn(y, resForGamma[row * pitch], n);
    s.Mul(y, y, d);
    s.Add(gamma, gamma, y);
    s.Add(beta, beta, d);
  }
  Cm384RowOut(outputPdGamma, gamma, n);
  Cm384RowOut(outputPdBeta, beta, n);
}
template <typename T, bool isReuseSource = false>
CM384_INLINE void LayerNormGradBeta(const LocalTensor<T>& outputPdGamma, const LocalTensor<T>& outputPdBeta,
                                    const LocalTensor<T>& resForGamma, const LocalTensor<T>& inputDy,
                                    const LayerNormGradBetaTiling& tiling) {
  LayerNormGradBeta<T, isReuseSource>(outputPdGamma, outputPdBeta, resForGamma, inputDy,
                                      LocalTensor<uint8_t>(), tiling);
}

// Welford's update of means and variances (sums of squares), element by element, by one more row:
//   mean' = mean + (x - mean) * nRec, variance' = variance + (x - mean) * (x - mean').
struct WelfordUpdateParam {
  uint32_t rnLength = 1;
  uint32_t abLength = 0;
  uint32_t abComputeLength = 0;
  float nRec = 1;
};
struct WelfordUpdateConfig {
  bool isInplace = false;
};
inline constexpr WelfordUpdateConfig WFUPDATE_DEFAULT_CFG{};
template <typename T, typename U, bool isReuseSource = false,
          const WelfordUpdateConfig& config = WFUPDATE_DEFAULT_CFG>
inline void WelfordUpdate(const LocalTensor<U>& outputMean, const LocalTensor<U>& outputVariance,
                          const LocalTensor<U>& inputMean, const LocalTensor<U>& inputVariance,
                          const LocalTensor<T>& inputX, const LocalTensor<uint8_t>& tmp,
                          const WelfordUpdateParam& p) {
  static_assert(is_same_v<U, float>, "WelfordUpdate: means and variances of float: docs/ascend-c.md");
  if (p.rnLength != 1) Abort("WelfordUpdate: one row at a time: docs/ascend-c.md");
  const uint32_t n = p.abComputeLength, part = (n + 7) / 8 * 8;
  const LocalTensor<float> x = Cm384Scratch(tmp, part * 12).template ReinterpretCast<float>(), y = x[part],
                           before = y[part];
  const Cm384VectorSteps s{static_cast<int32_t>(n)};
  Cm384RowIn(x, inputX, n);
  s.Sub(before, x, inputMean);
  s.Muls(y, before, p.nRec);
  s.Add(outputMean, inputMean, y);
  s.Sub(y, x, outputMean);
  s.Mul(y, y, before);
  s.Add(outputVariance, inputVariance, y);
}
template <typename T, typename U, bool isReuseSource = false,
          const WelfordUpdateConfig& config = WFUPDATE_DEFAULT_CFG>
CM384_INLINE void WelfordUpdate(const LocalTensor<U>& outputMean, const LocalTensor<U>& outputVariance,
                                const LocalTensor<U>& inputMean, const LocalTensor<U>& inputVariance,
                                const LocalTensor<T>& inputX, const WelfordUpdateParam& p) {
  WelfordUpdate<T, U, isReuseSource, config>(outputMean, outputVariance, inputMean, inputVariance, inputX,
                                             LocalTensor<uint8_t>(), p);
}
// Of abLength means and sums of squares one: the mean of means, weighed by how many each is of, and the
// variance of all. Without counts the first headCountLength are of headCount, the last tailCountLength of
// tailCount; without a tail all weigh the same.
struct WelfordFinalizePara {
  uint32_t rnLength = 1;
  uint32_t abLength = 0;
  uint32_t headCount = 0;
  uint32_t headCountLength = 0;
  uint32_t tailCount = 0;
  uint32_t tailCountLength = 0;
  float abRec = 1;
  float rRec = 1;
};
template <typename Weight>
inline void Cm384WelfordFinalize(const LocalTensor<float>& outputMean,
                                 const LocalTensor<float>& outputVariance,
                                 const LocalTensor<float>& inputMean, const LocalTensor<float>& inputVariance,
                                 const LocalTensor<uint8_t>& tmp, const WelfordFinalizePara& p,
                                 Weight weight) {
  const uint32_t n = p.abLength, part = (n + 7) / 8 * 8;
  const LocalTensor<float> one = Cm384Scratch(tmp, part * 8 + 32).template ReinterpretCast<float>(),
                           w = one[8], y = w[part];
  const Cm384VectorSteps s{static_cast<int32_t>(n)};
  weight(w);
  s.Mul(y, inputMean, w);
  const float mean = Cm384RowSum(y, one, n) * p.rRec;
  s.Adds(y, inputMean, -mean);
  s.Mul(y, y, y);
  s.Mul(y, y, w);
  s.Add(y, y, inputVariance);
  const float variance = Cm384RowSum(y, one, n) * p.rRec;
  outputMean.SetValue(0, mean);
  outputVariance.SetValue(0, variance);
  Cm384AfterScalarTurn();
}
template <bool isReuseSource = false>
inline void WelfordFinalize(const LocalTensor<float>& outputMean, const LocalTensor<float>& outputVariance,
                            const LocalTensor<float>& inputMean, const LocalTensor<float>& inputVariance,
                            const LocalTensor<uint8_t>& tmp, const WelfordFinalizePara& p) {
  Cm384WelfordFinalize(
      outputMean, outputVariance, inputMean, inputVariance, tmp, p, [&](const LocalTensor<float>& w) {
        const float each = p.abRec / p.rRec;  // how many elements each of them is of
        const bool tail = p.tailCountLength != 0;
        Duplicate(w, tail ? static_cast<float>(p.tailCount) : each, static_cast<int32_t>(p.abLength));
        PipeBarrier<PIPE_V>();
        if (tail) Duplicate(w, static_cast<float>(p.headCount), static_cast<int32_t>(p.headCountLength));
        PipeBarrier<PIPE_V>();
      });
}
template <bool isReuseSource = false>
inline void WelfordFinalize(const LocalTensor<float>& outputMean, const LocalTensor<float>& outputVariance,
                            const LocalTensor<float>& inputMean, const LocalTensor<float>& inputVariance,
                            const LocalTensor<int32_t>& counts, const LocalTensor<uint8_t>& tmp,
                            const WelfordFinalizePara& p) {
  Cm384WelfordFinalize(outputMean, outputVariance, inputMean, inputVariance, tmp, p,
                       [&](const LocalTensor<float>& w) {
                         Cast(w, counts, RoundMode::CAST_RINT, p.abLength);
                         PipeBarrier<PIPE_V>();
                       });
}

}  // namespace AscendC
