// Functions of Ascend C's library on every element: sigmoid, logarithms, roundings, powers and the like. They
// are made of vector instructions in FP32, by formulas of their own: what they cost is not what the vendor's
// do. Temporaries are the tensor that is passed, or the UBuffer behind the kernel's buffers.
#pragma once

#include "cm384/convert.h"
#include "cm384/pipe.h"
#include "cm384/select.h"
#include "cm384/vector.h"

namespace AscendC {

// Room for temporaries: `given`, if it has that many bytes, else what no buffer has.
inline LocalTensor<uint8_t> Cm384Scratch(const LocalTensor<uint8_t>& given, uint32_t least) {
  if (given.GetSize() >= least) return given;
  if (TPipe::current == nullptr)
    Abort("a call without a temporary of its size needs a TPipe: docs/ascend-c.md");
  const uint32_t begin = TPipe::current->UsedBytes();
  if (begin + least > CM384_UBUFFER_BYTES) Abort("a call's temporary does not fit into the UBuffer");
  return LocalTensor<uint8_t>(begin, CM384_UBUFFER_BYTES - begin);
}

// Element-wise steps in order, each on `count` elements; a destination may be a source.
struct Cm384VectorSteps {
  using F = LocalTensor<float>;
  int32_t count;

#define CM384_STEP(Name, Call)                                              \
  template <typename... Operands>                                           \
  CM384_INLINE void Name(const F& dst, const Operands&... operands) const { \
    Call(dst, operands..., count);                                          \
    PipeBarrier<PIPE_V>();                                                  \
  }
  CM384_STEP(Add, AscendC::Add)
  CM384_STEP(Sub, AscendC::Sub)
  CM384_STEP(Mul, AscendC::Mul)
  CM384_STEP(Div, AscendC::Div)
  CM384_STEP(Max, AscendC::Max)
  CM384_STEP(Min, AscendC::Min)
  CM384_STEP(Adds, AscendC::Adds)
  CM384_STEP(Muls, AscendC::Muls)
  CM384_STEP(Maxs, AscendC::Maxs)
  CM384_STEP(Mins, AscendC::Mins)
  CM384_STEP(Exp, AscendC::Exp)
  CM384_STEP(Ln, AscendC::Ln)
  CM384_STEP(Sqrt, AscendC::Sqrt)
  CM384_STEP(Abs, AscendC::Abs)
  CM384_STEP(Reciprocal, AscendC::Reciprocal)
#undef CM384_STEP
  CM384_INLINE void Round(const F& dst, const F& src, RoundMode mode) const {
    AscendC::Cast(dst, src, mode, static_cast<uint32_t>(count));
    PipeBarrier<PIPE_V>();
  }
  // 1 / (1 + exp(-by * x)).
  CM384_INLINE void Sigmoid(const F& dst, const F& x, float by) const {
    Muls(dst, x, -by);
    Exp(dst, dst);
    Adds(dst, dst, 1.0f);
    Reciprocal(dst, dst);
  }
  // -1, 0, 1.
  CM384_INLINE void Sign(const F& dst, const F& x) const {
    Muls(dst, x, 0x1p100f);
    Muls(dst, dst, 0x1p100f);
    Mins(dst, dst, 1.0f);
    Maxs(dst, dst, -1.0f);
  }
  // c0 + c1 * x + c2 * x^2 ...; dst is not x.
  template <int n>
  CM384_INLINE void Polynomial(const F& dst, const F& x, const float (&c)[n]) const {
    Muls(dst, x, c[n - 1]);
    for (int power = n - 2; power > 0; --power) {
      Adds(dst, dst, c[power]);
      Mul(dst, dst, x);
    }
    Adds(dst, dst, c[0]);
  }
};

// f(steps, result, x, temporary(i)) on pieces of the operands in FP32; the result may be x.
template <int temporaries, typename T, typename Function>
inline void Cm384Elementary(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                            const LocalTensor<uint8_t>& tmp, uint32_t count, Function f) {
  static_assert(is_same_v<T, float> || is_same_v<T, half>, "of float and half: docs/ascend-c.md");
  constexpr uint32_t kArrays = temporaries + (is_same_v<T, float> ? 0 : 1);
  const LocalTensor<uint8_t> room = kArrays == 0 ? tmp : Cm384Scratch(tmp, kArrays * 256);
  const uint32_t most = kArrays == 0 ? count : room.GetSize() / (kArrays * 256) * 64;
  const LocalTensor<float> arrays = room.template ReinterpretCast<float>();
  for (uint32_t first = 0; first < count; first += most) {
    const uint32_t now = count - first < most ? count - first : most;
    const Cm384VectorSteps steps{static_cast<int32_t>(now)};
    const auto temporary = [&](uint32_t n) { return arrays[n * most]; };
    if constexpr (is_same_v<T, float>) {
      f(steps, dst[first], src[first], temporary);
    } else {
      const LocalTensor<float> x = temporary(temporaries);
      Cast(x, src[first], RoundMode::CAST_NONE, now);
      PipeBarrier<PIPE_V>();
      f(steps, x, x, temporary);
      Cast(dst[first], x, RoundMode::CAST_RINT, now);
      PipeBarrier<PIPE_V>();
    }
  }
}

// Name(dst, src[, tmp][, count]) of the form with both.
#define CM384_FORMS(Name)                                                                           \
  template <typename T, bool isReuseSource = false>                                                 \
  CM384_INLINE void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src,                      \
                         const LocalTensor<uint8_t>& tmp) {                                         \
    Name<T, isReuseSource>(dst, src, tmp, src.GetSize());                                           \
  }                                                                                                 \
  template <typename T, bool isReuseSource = false>                                                 \
  CM384_INLINE void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint32_t calCount) { \
    Name<T, isReuseSource>(dst, src, LocalTensor<uint8_t>(), calCount);                             \
  }                                                                                                 \
  template <typename T, bool isReuseSource = false>                                                 \
  CM384_INLINE void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src) {                    \
    Name<T, isReuseSource>(dst, src, LocalTensor<uint8_t>(), src.GetSize());                        \
  }
// Name(dst, src[, tmp][, count]): `y` of `x` with `t(0)`, .., in `s`.
#define CM384_MATH(Name, temporaries, ...)                                                                   \
  template <typename T, bool isReuseSource = false>                                                          \
  inline void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint8_t>& tmp,    \
                   uint32_t calCount) {                                                                      \
    Cm384Elementary<temporaries>(dst, src, tmp, calCount,                                                    \
                                 [&](const Cm384VectorSteps& s, const LocalTensor<float>& y,                 \
                                     const LocalTensor<float>& x, [[maybe_unused]] auto t) { __VA_ARGS__ }); \
  }                                                                                                          \
  CM384_FORMS(Name)
CM384_MATH(Sigmoid, 0, s.Sigmoid(y, x, 1.0f);)
// 1 - 2 / (exp(2 * x) + 1).
CM384_MATH(Tanh, 0, s.Muls(y, x, 2.0f); s.Exp(y, y); s.Adds(y, y, 1.0f); s.Reciprocal(y, y);
           s.Muls(y, y, -2.0f); s.Adds(y, y, 1.0f);)
CM384_MATH(Log, 0, s.Ln(y, x);)
CM384_MATH(Log2, 0, s.Ln(y, x); s.Muls(y, y, 1.44269504f);)
CM384_MATH(Log10, 0, s.Ln(y, x); s.Muls(y, y, 0.434294482f);)
CM384_MATH(Floor, 0, s.Round(y, x, RoundMode::CAST_FLOOR);)
CM384_MATH(Ceil, 0, s.Round(y, x, RoundMode::CAST_CEIL);)
CM384_MATH(Trunc, 0, s.Round(y, x, RoundMode::CAST_TRUNC);)
// Ties go to the even number (assumed).
CM384_MATH(Round, 0, s.Round(y, x, RoundMode::CAST_RINT);)
CM384_MATH(Rint, 0, s.Round(y, x, RoundMode::CAST_RINT);)
CM384_MATH(Frac, 1, s.Round(t(0), x, RoundMode::CAST_TRUNC); s.Sub(y, x, t(0));)
CM384_MATH(Sign, 0, s.Sign(y, x);)
CM384_MATH(Silu, 1, s.Sigmoid(t(0), x, 1.0f); s.Mul(y, x, t(0));)
// x / (1 + exp(-1.59576912 * (x + 0.044715 * x^3))).
CM384_MATH(Gelu, 1, s.Mul(t(0), x, x); s.Muls(t(0), t(0), 0.044715f); s.Adds(t(0), t(0), 1.0f);
           s.Mul(t(0), t(0), x); s.Sigmoid(t(0), t(0), 1.59576912f); s.Mul(y, x, t(0));)
CM384_MATH(FasterGelu, 1, s.Sigmoid(t(0), x, 1.702f); s.Mul(y, x, t(0));)
CM384_MATH(FasterGeluV2, 1, s.Sigmoid(t(0), x, 1.702f); s.Mul(y, x, t(0));)
// (exp(x) - exp(-x)) / 2 and the sum.
CM384_MATH(Sinh, 1, s.Exp(t(0), x); s.Reciprocal(y, t(0)); s.Sub(y, t(0), y); s.Muls(y, y, 0.5f);)
CM384_MATH(Cosh, 1, s.Exp(t(0), x); s.Reciprocal(y, t(0)); s.Add(y, t(0), y); s.Muls(y, y, 0.5f);)
// sign * ln(|x| + sqrt(x^2 + 1)).
CM384_MATH(Asinh, 2, s.Sign(t(0), x); s.Abs(t(1), x); s.Mul(y, t(1), t(1)); s.Adds(y, y, 1.0f); s.Sqrt(y, y);
           s.Add(y, y, t(1)); s.Ln(y, y); s.Mul(y, y, t(0));)
CM384_MATH(Acosh, 1, s.Mul(t(0), x, x); s.Adds(t(0), t(0), -1.0f); s.Sqrt(t(0), t(0)); s.Add(y, x, t(0));
           s.Ln(y, y);)
// ln((1 + x) / (1 - x)) / 2.
CM384_MATH(Atanh, 1, s.Muls(t(0), x, -1.0f); s.Adds(t(0), t(0), 1.0f); s.Adds(y, x, 1.0f); s.Div(y, y, t(0));
           s.Ln(y, y); s.Muls(y, y, 0.5f);)
// Within 1.5e-7 (Abramowitz and Stegun 7.1.26).
CM384_MATH(Erf, 3,
           const float c[] = {0.0f, 0.254829592f, -0.284496736f, 1.421413741f, -1.453152027f, 1.061405429f};
           s.Sign(t(2), x); s.Abs(t(0), x); s.Muls(t(1), t(0), 0.3275911f); s.Adds(t(1), t(1), 1.0f);
           s.Reciprocal(t(1), t(1)); s.Mul(t(0), t(0), t(0)); s.Muls(t(0), t(0), -1.0f); s.Exp(t(0), t(0));
           s.Polynomial(y, t(1), c); s.Mul(y, y, t(0)); s.Muls(y, y, -1.0f); s.Adds(y, y, 1.0f);
           s.Mul(y, y, t(2));)
CM384_MATH(Erfc, 3,
           const float c[] = {0.0f, 0.254829592f, -0.284496736f, 1.421413741f, -1.453152027f, 1.061405429f};
           s.Sign(t(2), x); s.Abs(t(0), x); s.Muls(t(1), t(0), 0.3275911f); s.Adds(t(1), t(1), 1.0f);
           s.Reciprocal(t(1), t(1)); s.Mul(t(0), t(0), t(0)); s.Muls(t(0), t(0), -1.0f); s.Exp(t(0), t(0));
           s.Polynomial(y, t(1), c); s.Mul(y, y, t(0)); s.Muls(y, y, -1.0f); s.Adds(y, y, 1.0f);
           s.Mul(y, y, t(2)); s.Muls(y, y, -1.0f); s.Adds(y, y, 1.0f);)

// sin(x + shift) for shifts of 0 and pi / 2: x less multiples of pi in three parts, odd polynomial, sign of
// the multiple.
CM384_INLINE void Cm384SineSteps(const Cm384VectorSteps& s, const LocalTensor<float>& y,
                                 const LocalTensor<float>& x, const LocalTensor<float>& k,
                                 const LocalTensor<float>& r, const LocalTensor<float>& q, float turns) {
  const float c[] = {1.0f, -1.66666667e-1f, 8.33333333e-3f, -1.98412698e-4f, 2.75573192e-6f, -2.50521084e-8f};
  s.Muls(k, x, 0.318309886f);
  s.Adds(k, k, turns);
  s.Round(k, k, RoundMode::CAST_RINT);
  s.Adds(r, k, -turns);
  s.Muls(q, r, -3.140625f);
  s.Add(q, q, x);
  s.Muls(y, r, -9.67653589793e-4f);
  s.Add(r, q, y);
  s.Mul(q, r, r);
  // (-1)^k = 4 * floor(k / 2) - 2 * k + 1.
  s.Muls(y, k, 0.5f);
  s.Round(y, y, RoundMode::CAST_FLOOR);
  s.Muls(y, y, 2.0f);
  s.Sub(y, y, k);
  s.Muls(y, y, 2.0f);
  s.Adds(y, y, 1.0f);
  s.Mul(r, r, y);
  s.Polynomial(k, q, c);
  s.Mul(y, k, r);
}
CM384_MATH(Sin, 4, Cm384SineSteps(s, t(3), x, t(0), t(1), t(2), 0.0f); s.Adds(y, t(3), 0.0f);)
CM384_MATH(Cos, 4, Cm384SineSteps(s, t(3), x, t(0), t(1), t(2), 0.5f); s.Adds(y, t(3), 0.0f);)
#undef CM384_MATH

// x * sigmoid(beta * x).
template <typename T, bool isReuseSource = false>
inline void Swish(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint32_t dataSize,
                  const T scalarValue) {
  const float beta = static_cast<float>(scalarValue);
  Cm384Elementary<1>(
      dst, src, LocalTensor<uint8_t>(), dataSize,
      [&](const Cm384VectorSteps& s, const LocalTensor<float>& y, const LocalTensor<float>& x, auto t) {
        s.Sigmoid(t(0), x, beta);
        s.Mul(y, x, t(0));
      });
}

// The limit of every element; the vector unit's own instructions do it.
#define CM384_CLAMP(Name, Call)                                                                             \
  template <typename T, bool isReuseSource = false>                                                         \
  CM384_INLINE void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint8_t>&, \
                         const T scalar, uint32_t calCount) {                                               \
    Call(dst, src, scalar, static_cast<int32_t>(calCount));                                                 \
  }                                                                                                         \
  template <typename T, bool isReuseSource = false>                                                         \
  CM384_INLINE void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T scalar,              \
                         uint32_t calCount) {                                                               \
    Call(dst, src, scalar, static_cast<int32_t>(calCount));                                                 \
  }
CM384_CLAMP(ClampMax, Mins)
CM384_CLAMP(ClampMin, Maxs)
#undef CM384_CLAMP

// f(steps, result, a, b, temporary(i)) of two operands, as Cm384Elementary(): b stands in the last temporary.
template <int temporaries, typename T, typename Function>
inline void Cm384ElementaryOfTwo(const LocalTensor<T>& dst, const LocalTensor<T>& a, const LocalTensor<T>& b,
                                 const LocalTensor<uint8_t>& tmp, uint32_t count, Function f) {
  constexpr uint32_t kEach = 512;
  const LocalTensor<uint8_t> room = Cm384Scratch(tmp, (temporaries + 2) * kEach * 4);
  // Pieces of which Cm384Elementary() takes the same temporaries.
  for (uint32_t first = 0; first < count; first += kEach) {
    const uint32_t now = count - first < kEach ? count - first : kEach;
    const LocalTensor<float> second = room.template ReinterpretCast<float>();
    const LocalTensor<uint8_t> rest = room[kEach * 4];
    if constexpr (is_same_v<T, float>) {
      Adds(second, b[first], 0.0f, static_cast<int32_t>(now));
    } else {
      Cast(second, b[first], RoundMode::CAST_NONE, now);
    }
    PipeBarrier<PIPE_V>();
    Cm384Elementary<temporaries>(dst[first], a[first], rest, now,
                                 [&](const Cm384VectorSteps& s, const LocalTensor<float>& y,
                                     const LocalTensor<float>& x, auto t) { f(s, y, x, second, t); });
  }
}
#define CM384_OF_TWO(Name, temporaries, ...)                                                                \
  template <typename T, bool isReuseSource = false>                                                         \
  inline void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,       \
                   const LocalTensor<uint8_t>& tmp, uint32_t calCount) {                                    \
    Cm384ElementaryOfTwo<temporaries>(                                                                      \
        dst, src0, src1, tmp, calCount,                                                                     \
        [&](const Cm384VectorSteps& s, const LocalTensor<float>& y, const LocalTensor<float>& a,            \
            const LocalTensor<float>& b, auto t) { __VA_ARGS__ });                                          \
  }                                                                                                         \
  template <typename T, bool isReuseSource = false>                                                         \
  CM384_INLINE void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1, \
                         uint32_t calCount) {                                                               \
    Name<T, isReuseSource>(dst, src0, src1, LocalTensor<uint8_t>(), calCount);                              \
  }                                                                                                         \
  template <typename T, bool isReuseSource = false>                                                         \
  CM384_INLINE void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1, \
                         const LocalTensor<uint8_t>& tmp) {                                                 \
    Name<T, isReuseSource>(dst, src0, src1, tmp, src0.GetSize());                                           \
  }                                                                                                         \
  template <typename T, bool isReuseSource = false>                                                         \
  CM384_INLINE void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src0,                             \
                         const LocalTensor<T>& src1) {                                                      \
    Name<T, isReuseSource>(dst, src0, src1, LocalTensor<uint8_t>(), src0.GetSize());                        \
  }
// a * gelu(b), a * relu(b).
CM384_OF_TWO(GeGLU, 1, s.Mul(t(0), b, b); s.Muls(t(0), t(0), 0.044715f); s.Adds(t(0), t(0), 1.0f);
             s.Mul(t(0), t(0), b); s.Sigmoid(t(0), t(0), 1.59576912f); s.Mul(t(0), t(0), b);
             s.Mul(y, a, t(0));)
CM384_OF_TWO(ReGlu, 1, s.Maxs(t(0), b, 0.0f); s.Mul(y, a, t(0));)
// exp(b * ln |a|), with the sign of a for odd b; 0 to the power of 0 is 1.
CM384_OF_TWO(Power, 3, s.Abs(t(0), a); s.Maxs(t(0), t(0), 0x1p-126f); s.Ln(t(0), t(0)); s.Mul(t(0), t(0), b);
             s.Exp(t(0), t(0)); s.Muls(t(1), b, 0.5f); s.Round(t(2), t(1), RoundMode::CAST_FLOOR);
             s.Sub(t(1), t(1), t(2)); s.Muls(t(1), t(1), -4.0f); s.Adds(t(1), t(1), 1.0f); s.Sign(t(2), a);
             s.Mins(t(2), t(2), 0.0f); s.Muls(t(2), t(2), -1.0f); s.Adds(t(1), t(1), -1.0f);
             s.Mul(t(1), t(1), t(2)); s.Adds(t(1), t(1), 1.0f); s.Mul(y, t(0), t(1));)
#undef CM384_OF_TWO
template <typename T, bool isReuseSource = false>
inline void Power(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const T& src1, uint32_t calCount) {
  const LocalTensor<uint8_t> room = Cm384Scratch(LocalTensor<uint8_t>(), calCount * sizeof(T) + 8192);
  const LocalTensor<T> second = room.template ReinterpretCast<T>();
  Duplicate(second, src1, static_cast<int32_t>(calCount));
  PipeBarrier<PIPE_V>();
  Power<T, isReuseSource>(dst, src0, second, room[(calCount * sizeof(T) + 31) / 32 * 32], calCount);
}
// a * b * sigmoid(beta * b).
template <typename T, bool isReuseSource = false>
inline void SwiGLU(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
                   const float& scalar, const LocalTensor<uint8_t>& tmp, uint32_t calCount) {
  Cm384ElementaryOfTwo<1>(dst, src0, src1, tmp, calCount,
                          [&](const Cm384VectorSteps& s, const LocalTensor<float>& y,
                              const LocalTensor<float>& a, const LocalTensor<float>& b, auto t) {
                            s.Sigmoid(t(0), b, scalar);
                            s.Mul(t(0), t(0), b);
                            s.Mul(y, a, t(0));
                          });
}
template <typename T, bool isReuseSource = false>
CM384_INLINE void SwiGLU(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
                         const float& scalar, uint32_t calCount) {
  SwiGLU<T, isReuseSource>(dst, src0, src1, scalar, LocalTensor<uint8_t>(), calCount);
}
template <typename T, bool isReuseSource = false>
CM384_INLINE void SwiGLU(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
                         const float& scalar, const LocalTensor<uint8_t>& tmp) {
  SwiGLU<T, isReuseSource>(dst, src0, src1, scalar, tmp, src0.GetSize());
}

// x >= 0 ? x : slope * x, as the larger or smaller of x and slope * x.
template <bool isSetMask, typename T, typename... Form>
inline void Cm384LeakyReluSteps(const LocalTensor<T>& dst, const LocalTensor<T>& src, T slope, uint32_t bytes,
                                const Form&... form) {
  const bool same = dst.GetPhyAddr() == src.GetPhyAddr();
  const LocalTensor<T> product =
      same ? Cm384Scratch(LocalTensor<uint8_t>(), bytes).template ReinterpretCast<T>() : dst;
  Muls<T, isSetMask>(product, src, slope, form...);
  PipeBarrier<PIPE_V>();
  const auto strides = [](const UnaryRepeatParams& p) {
    return BinaryRepeatParams(static_cast<uint8_t>(p.dstBlkStride), static_cast<uint8_t>(p.srcBlkStride),
                              static_cast<uint8_t>(p.dstBlkStride), p.dstRepStride, p.srcRepStride,
                              p.dstRepStride);
  };
  const auto with = [&](const auto& call) {
    if constexpr (sizeof...(Form) == 1) {
      call(form...);
    } else {
      [&](auto mask, uint8_t repeat, const UnaryRepeatParams& p) { call(mask, repeat, strides(p)); }(form...);
    }
  };
  if (static_cast<float>(slope) <= 1.0f) {
    with([&](auto... f) { Max<T, isSetMask>(dst, src, product, f...); });
  } else {
    with([&](auto... f) { Min<T, isSetMask>(dst, src, product, f...); });
  }
}
template <typename T, bool isSetMask = true>
CM384_INLINE void LeakyRelu(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& scalarValue,
                            int32_t count) {
  Cm384LeakyReluSteps<isSetMask>(dst, src, scalarValue, static_cast<uint32_t>(count * sizeof(T)), count);
}
template <typename T, bool isSetMask = true>
CM384_INLINE void LeakyRelu(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& scalarValue,
                            uint64_t mask, uint8_t repeatTime, const UnaryRepeatParams& p) {
  Cm384LeakyReluSteps<isSetMask>(
      dst, src, scalarValue, (repeatTime * p.dstRepStride + 8u * p.dstBlkStride) * 32u, mask, repeatTime, p);
}
template <typename T, bool isSetMask = true>
CM384_INLINE void LeakyRelu(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& scalarValue,
                            const uint64_t mask[], uint8_t repeatTime, const UnaryRepeatParams& p) {
  Cm384LeakyReluSteps<isSetMask>(
      dst, src, scalarValue, (repeatTime * p.dstRepStride + 8u * p.dstBlkStride) * 32u, mask, repeatTime, p);
}

// dst = a + b and the like, on whole tensors: an expression is computed into what it is assigned to.
template <typename T, typename Call>
struct Cm384TensorExpression {
  LocalTensor<T> a, b;
  CM384_INLINE void To(const LocalTensor<T>& dst) const { Call::Run(dst, a, b); }
};
template <typename T, CMPMODE mode>
struct Cm384TensorComparison {
  LocalTensor<T> a, b;
  template <typename U>
  CM384_INLINE void To(const LocalTensor<U>& dst) const {
    Compare(dst, a, b, mode, a.GetSize());
  }
};
#define CM384_OPERATOR(op, Name)                                                                    \
  struct Cm384Operator##Name {                                                                      \
    template <typename T>                                                                           \
    CM384_INLINE static void Run(const LocalTensor<T>& d, const LocalTensor<T>& a,                  \
                                 const LocalTensor<T>& b) {                                         \
      Name(d, a, b, static_cast<int32_t>(a.GetSize()));                                             \
    }                                                                                               \
  };                                                                                                \
  template <typename T>                                                                             \
  CM384_INLINE Cm384TensorExpression<T, Cm384Operator##Name> operator op(const LocalTensor<T>& a,   \
                                                                         const LocalTensor<T>& b) { \
    return {a, b};                                                                                  \
  }
CM384_OPERATOR(+, Add)
CM384_OPERATOR(-, Sub)
CM384_OPERATOR(*, Mul)
CM384_OPERATOR(/, Div)
CM384_OPERATOR(|, Or)
CM384_OPERATOR(&, And)
#undef CM384_OPERATOR
#define CM384_OPERATOR(op, mode)                                                              \
  template <typename T>                                                                       \
  CM384_INLINE Cm384TensorComparison<T, CMPMODE::mode> operator op(const LocalTensor<T>& a,   \
                                                                   const LocalTensor<T>& b) { \
    return {a, b};                                                                            \
  }
CM384_OPERATOR(<, LT)
CM384_OPERATOR(>, GT)
CM384_OPERATOR(<=, LE)
CM384_OPERATOR(>=, GE)
CM384_OPERATOR(==, EQ)
CM384_OPERATOR(!=, NE)
#undef CM384_OPERATOR

}  // namespace AscendC
