// Further functions of Ascend C's library, and further forms of those of elementary.h, quantise.h and
// choose.h: orders of arguments and what they mean are assumed where docs/ascend-c.md says so.
#pragma once

#include "cm384/choose.h"
#include "cm384/elementary.h"
#include "cm384/quantise.h"
#include "cm384/rows.h"

using LogSoftMaxTiling = SoftMaxTiling;

namespace AscendC {

// Name(dst, src0, src1[, tmp][, count]).
#define CM384_FORMS_OF_TWO(Name)                                                                            \
  template <typename T, bool isReuseSource = false>                                                         \
  CM384_INLINE void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1, \
                         const LocalTensor<uint8_t>& tmp) {                                                 \
    Name<T, isReuseSource>(dst, src0, src1, tmp, src0.GetSize());                                           \
  }                                                                                                         \
  template <typename T, bool isReuseSource = false>                                                         \
  CM384_INLINE void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1, \
                         uint32_t calCount) {                                                               \
    Name<T, isReuseSource>(dst, src0, src1, LocalTensor<uint8_t>(), calCount);                              \
  }                                                                                                         \
  template <typename T, bool isReuseSource = false>                                                         \
  CM384_INLINE void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src0,                             \
                         const LocalTensor<T>& src1) {                                                      \
    Name<T, isReuseSource>(dst, src0, src1, LocalTensor<uint8_t>(), src0.GetSize());                        \
  }

// Angle of a tangent in y; x, t0, t1 and t2 are other places. Abramowitz and Stegun 4.4.49, within 2e-8, of
// the smaller of |x| and 1 / |x|.
inline void Cm384Atan(const Cm384VectorSteps& s, const LocalTensor<float>& y, const LocalTensor<float>& x,
                      const LocalTensor<float>& t0, const LocalTensor<float>& t1,
                      const LocalTensor<float>& t2) {
  constexpr float kHalfPi = 1.57079632679f;
  const float c[] = {1.0f,           -0.3333314528f, 0.1999355085f,  -0.1420889944f, 0.1065626393f,
                     -0.0752896400f, 0.0429096138f,  -0.0161657367f, 0.0028662257f};
  s.Abs(t0, x);
  s.Reciprocal(t1, t0);
  s.Min(t1, t1, t0);
  s.Adds(t0, t0, -1.0f);
  s.Sign(t0, t0);
  s.Maxs(t0, t0, 0.0f);  // 1 where |x| is above 1
  s.Mul(y, t1, t1);
  s.Polynomial(t2, y, c);
  s.Mul(t1, t1, t2);
  s.Muls(t2, t1, -2.0f);
  s.Adds(t2, t2, kHalfPi);
  s.Mul(t2, t2, t0);
  s.Add(t1, t1, t2);
}
template <typename T, bool isReuseSource = false>
inline void Atan(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint8_t>& tmp,
                 uint32_t calCount) {
  Cm384Elementary<4>(
      dst, src, tmp, calCount,
      [&](const Cm384VectorSteps& s, const LocalTensor<float>& y, const LocalTensor<float>& x, auto t) {
        s.Sign(t(3), x);
        Cm384Atan(s, y, x, t(0), t(1), t(2));
        s.Mul(y, t(1), t(3));
      });
}
CM384_FORMS(Atan)
template <typename T, bool isReuseSource = false>
inline void Tan(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint8_t>& tmp,
                uint32_t calCount) {
  Cm384Elementary<5>(
      dst, src, tmp, calCount,
      [&](const Cm384VectorSteps& s, const LocalTensor<float>& y, const LocalTensor<float>& x, auto t) {
        Cm384SineSteps(s, t(3), x, t(0), t(1), t(2), 0.0f);
        Cm384SineSteps(s, t(4), x, t(0), t(1), t(2), 0.5f);
        s.Div(y, t(3), t(4));
      });
}
CM384_FORMS(Tan)
// Of x / sqrt(1 - x^2), and what is left of a right angle.
template <bool rest, typename T>
inline void Cm384Asin(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint8_t>& tmp,
                      uint32_t calCount) {
  Cm384Elementary<5>(
      dst, src, tmp, calCount,
      [&](const Cm384VectorSteps& s, const LocalTensor<float>& y, const LocalTensor<float>& x, auto t) {
        s.Sign(t(3), x);
        s.Mul(t(4), x, x);
        s.Muls(t(4), t(4), -1.0f);
        s.Adds(t(4), t(4), 1.0f);
        s.Maxs(t(4), t(4), 0x1p-120f);
        s.Sqrt(t(4), t(4));
        s.Div(t(4), x, t(4));
        Cm384Atan(s, y, t(4), t(0), t(1), t(2));
        s.Mul(y, t(1), t(3));
        if constexpr (rest) {
          s.Muls(y, y, -1.0f);
          s.Adds(y, y, 1.57079632679f);
        }
      });
}
template <typename T, bool isReuseSource = false>
CM384_INLINE void Asin(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint8_t>& tmp,
                       uint32_t calCount) {
  Cm384Asin<false>(dst, src, tmp, calCount);
}
template <typename T, bool isReuseSource = false>
CM384_INLINE void Acos(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint8_t>& tmp,
                       uint32_t calCount) {
  Cm384Asin<true>(dst, src, tmp, calCount);
}
CM384_FORMS(Asin)
CM384_FORMS(Acos)

// a - trunc(a / b) * b, and sqrt(a^2 + b^2).
template <typename T, bool isReuseSource = false>
inline void Fmod(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
                 const LocalTensor<uint8_t>& tmp, uint32_t calCount) {
  Cm384ElementaryOfTwo<1>(dst, src0, src1, tmp, calCount,
                          [&](const Cm384VectorSteps& s, const LocalTensor<float>& y,
                              const LocalTensor<float>& a, const LocalTensor<float>& b, auto t) {
                            s.Div(t(0), a, b);
                            s.Round(t(0), t(0), RoundMode::CAST_TRUNC);
                            s.Mul(t(0), t(0), b);
                            s.Sub(y, a, t(0));
                          });
}
CM384_FORMS_OF_TWO(Fmod)
template <typename T, bool isReuseSource = false>
inline void Hypot(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
                  const LocalTensor<uint8_t>& tmp, uint32_t calCount) {
  Cm384ElementaryOfTwo<2>(dst, src0, src1, tmp, calCount,
                          [&](const Cm384VectorSteps& s, const LocalTensor<float>& y,
                              const LocalTensor<float>& a, const LocalTensor<float>& b, auto t) {
                            s.Mul(t(0), a, a);
                            s.Mul(t(1), b, b);
                            s.Add(t(0), t(0), t(1));
                            s.Sqrt(y, t(0));
                          });
}
CM384_FORMS_OF_TWO(Hypot)
// Bits that one has and the other has not.
template <typename T, bool isReuseSource = false>
inline void Xor(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
                const LocalTensor<uint8_t>& tmp, uint32_t calCount) {
  static_assert(sizeof(T) == 2, "Xor: of int16_t and uint16_t: docs/ascend-c.md");
  const auto count = static_cast<int32_t>(calCount);
  const LocalTensor<T> both =
      Cm384Scratch(tmp, calCount * static_cast<uint32_t>(sizeof(T))).template ReinterpretCast<T>();
  And(both, src0, src1, count);
  PipeBarrier<PIPE_V>();
  Not(both, both, count);
  Or(dst, src0, src1, count);
  PipeBarrier<PIPE_V>();
  And(dst, dst, both, count);
  PipeBarrier<PIPE_V>();
}
CM384_FORMS_OF_TWO(Xor)
#undef CM384_FORMS
#undef CM384_FORMS_OF_TWO

// A number as the exponent, or as the base.
template <typename T, bool isReuseSource = false>
CM384_INLINE void Power(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const T& src1,
                        const LocalTensor<uint8_t>&, uint32_t calCount) {
  Power<T, isReuseSource>(dst, src0, src1, calCount);
}
template <typename T, bool isReuseSource = false>
CM384_INLINE void Power(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const T& src1,
                        const LocalTensor<uint8_t>&) {
  Power<T, isReuseSource>(dst, src0, src1, src0.GetSize());
}
template <typename T, bool isReuseSource = false>
CM384_INLINE void Power(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const T& src1) {
  Power<T, isReuseSource>(dst, src0, src1, src0.GetSize());
}
template <typename T, bool isReuseSource = false>
inline void Power(const LocalTensor<T>& dst, const T& src0, const LocalTensor<T>& src1, uint32_t calCount) {
  const LocalTensor<uint8_t> room = Cm384Scratch(LocalTensor<uint8_t>(), calCount * sizeof(T) + 8192);
  const LocalTensor<T> first = room.template ReinterpretCast<T>();
  Duplicate(first, src0, static_cast<int32_t>(calCount));
  PipeBarrier<PIPE_V>();
  Power<T, isReuseSource>(dst, first, src1, room[(calCount * sizeof(T) + 31) / 32 * 32], calCount);
}
template <typename T, bool isReuseSource = false>
CM384_INLINE void Power(const LocalTensor<T>& dst, const T& src0, const LocalTensor<T>& src1,
                        const LocalTensor<uint8_t>&, uint32_t calCount) {
  Power<T, isReuseSource>(dst, src0, src1, calCount);
}
template <typename T, bool isReuseSource = false>
CM384_INLINE void Power(const LocalTensor<T>& dst, const T& src0, const LocalTensor<T>& src1,
                        const LocalTensor<uint8_t>&) {
  Power<T, isReuseSource>(dst, src0, src1, src1.GetSize());
}
template <typename T, bool isReuseSource = false>
CM384_INLINE void Power(const LocalTensor<T>& dst, const T& src0, const LocalTensor<T>& src1) {
  Power<T, isReuseSource>(dst, src0, src1, src1.GetSize());
}
template <typename T, bool isReuseSource = false>
CM384_INLINE void SwiGLU(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
                         const float& scalar) {
  SwiGLU<T, isReuseSource>(dst, src0, src1, scalar, LocalTensor<uint8_t>(), src0.GetSize());
}
// With choices of precision, which have no effect.
#define CM384_CHOICES(Name)                                                                           \
  template <typename T, bool highPrecision, bool highPerformance, typename... Rest>                   \
  CM384_INLINE void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const Rest&... rest) { \
    Name<T>(dst, src, rest...);                                                                       \
  }
CM384_CHOICES(Gelu)
CM384_CHOICES(FasterGelu)
CM384_CHOICES(FasterGeluV2)
#undef CM384_CHOICES
template <typename T, uint8_t taylorExpandLevel, bool isReuseSource = false>
CM384_INLINE void Exp(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint8_t>&,
                      uint32_t calCount) {
  Exp(dst, src, static_cast<int32_t>(calCount));
}
template <typename T, uint8_t taylorExpandLevel, bool isReuseSource = false>
requires(taylorExpandLevel > 1) CM384_INLINE
    void Exp(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint32_t calCount) {
  Exp(dst, src, static_cast<int32_t>(calCount));
}

// Scales of the elements of a row, offsets too or one of them: rows of as many as there are scales.
template <typename T, typename Offset>
inline void Cm384QuantRows(const LocalTensor<int8_t>& dst, const LocalTensor<T>& src,
                           const LocalTensor<uint8_t>& tmp, const LocalTensor<T>& scale, Offset offset,
                           uint32_t n, uint32_t calCount) {
  const uint32_t each = (n + 31) / 32 * 32;
  const LocalTensor<float> x = Cm384Scratch(tmp, each * 14).template ReinterpretCast<float>(), s = x[each],
                           o = x[2 * each];
  const LocalTensor<half> h = x[3 * each].template ReinterpretCast<half>();
  const auto count = static_cast<int32_t>(n);
  Cm384RowIn(s, scale, n);
  if constexpr (is_same_v<Offset, LocalTensor<T>>) {
    Cm384RowIn(o, offset, n);
  } else {
    Duplicate(o, static_cast<float>(offset), count);
    PipeBarrier<PIPE_V>();
  }
  const Cm384VectorSteps steps{count};
  for (uint32_t first = 0; first + n <= calCount; first += n) {
    Cm384RowIn(x, src[first], n);
    steps.Mul(x, x, s);
    steps.Add(x, x, o);
    steps.Mins(x, x, 127.0f);
    steps.Maxs(x, x, -128.0f);
    Cast(h, x, RoundMode::CAST_RINT, n);
    PipeBarrier<PIPE_V>();
    Cast(dst[first], h, RoundMode::CAST_RINT, n);
    PipeBarrier<PIPE_V>();
  }
}
template <typename T, bool isReuseSource = false>
CM384_INLINE void AscendQuant(const LocalTensor<int8_t>& dst, const LocalTensor<T>& src,
                              const LocalTensor<uint8_t>& tmp, const LocalTensor<T>& scale,
                              const LocalTensor<T>& offset, uint32_t scaleCount, uint32_t,
                              uint32_t calCount) {
  Cm384QuantRows(dst, src, tmp, scale, offset, scaleCount, calCount);
}
template <typename T, bool isReuseSource = false>
CM384_INLINE void AscendQuant(const LocalTensor<int8_t>& dst, const LocalTensor<T>& src,
                              const LocalTensor<T>& scale, const LocalTensor<T>& offset, uint32_t scaleCount,
                              uint32_t, uint32_t calCount) {
  Cm384QuantRows(dst, src, LocalTensor<uint8_t>(), scale, offset, scaleCount, calCount);
}
template <typename T, bool isReuseSource = false>
CM384_INLINE void AscendQuant(const LocalTensor<int8_t>& dst, const LocalTensor<T>& src,
                              const LocalTensor<uint8_t>& tmp, const LocalTensor<T>& scale,
                              const LocalTensor<T>& offset) {
  Cm384QuantRows(dst, src, tmp, scale, offset, scale.GetSize(), src.GetSize());
}
template <typename T, bool isReuseSource = false>
CM384_INLINE void AscendQuant(const LocalTensor<int8_t>& dst, const LocalTensor<T>& src,
                              const LocalTensor<uint8_t>& tmp, const LocalTensor<T>& scale, const T offset) {
  Cm384QuantRows(dst, src, tmp, scale, offset, scale.GetSize(), src.GetSize());
}
template <typename T, bool isReuseSource = false>
CM384_INLINE void AscendQuant(const LocalTensor<int8_t>& dst, const LocalTensor<T>& src,
                              const LocalTensor<T>& scale, const T offset) {
  Cm384QuantRows(dst, src, LocalTensor<uint8_t>(), scale, offset, scale.GetSize(), src.GetSize());
}
template <typename D, typename S, DeqScale mode>
CM384_INLINE void AscendDequant(const LocalTensor<D>& dst, const LocalTensor<int32_t>& src,
                                const LocalTensor<S>& deqScale, const DequantParams& p) {
  AscendDequant<D, S>(dst, src, deqScale, LocalTensor<uint8_t>(), p);
}
// Rows of as many as there are scales.
template <typename D, typename S>
CM384_INLINE void AscendDequant(const LocalTensor<D>& dst, const LocalTensor<int32_t>& src,
                                const LocalTensor<S>& deqScale, const LocalTensor<uint8_t>& tmp) {
  const uint32_t n = deqScale.GetSize();
  AscendDequant<D, S>(dst, src, deqScale, tmp, DequantParams{src.GetSize() / n, n, n});
}

// Whether any, or all, of two axes' elements are not 0, as 1 or 0: by the scalar unit.
template <bool all, class Along, typename T>
inline void Cm384Truths(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint32_t shape[],
                        bool innerPad) {
  constexpr uint32_t kBlock = ONE_BLK_SIZE / sizeof(T);
  const uint32_t rows = shape[0], n = shape[1], pitch = innerPad ? (n + kBlock - 1) / kBlock * kBlock : n;
  constexpr bool kLast = is_same_v<Along, Pattern::Reduce::AR>;
  Cm384ScalarTurn();
  for (uint32_t i = 0; i < (kLast ? rows : n); ++i) {
    bool truth = all;
    for (uint32_t j = 0; j < (kLast ? n : rows); ++j) {
      const bool one = src.GetValue(kLast ? i * pitch + j : j * pitch + i) != T(0);
      truth = all ? truth && one : truth || one;
    }
    dst.SetValue(i, truth ? T(1) : T(0));
  }
  Cm384AfterScalarTurn();
}
#define CM384_TRUTHS(Name, all)                                                                             \
  template <typename T, class pattern, bool isReuseSource = false>                                          \
  CM384_INLINE void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint8_t>&, \
                         const uint32_t srcShape[], bool srcInnerPad) {                                     \
    Cm384Truths<all, pattern>(dst, src, srcShape, srcInnerPad);                                             \
  }                                                                                                         \
  template <typename T, class pattern, bool isReuseSource = false>                                          \
  CM384_INLINE void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint32_t srcShape[],   \
                         bool srcInnerPad) {                                                                \
    Cm384Truths<all, pattern>(dst, src, srcShape, srcInnerPad);                                             \
  }
CM384_TRUTHS(ReduceAny, false)
CM384_TRUTHS(ReduceAll, true)
#undef CM384_TRUTHS

// Elements of a sorted list of so many values with their indices: 8 B each.
template <typename T>
CM384_INLINE constexpr uint32_t GetSortLen(uint32_t count) {
  return count * (8 / static_cast<uint32_t>(sizeof(T)));
}
template <typename T>
CM384_INLINE constexpr uint32_t GetSortOffset(uint32_t count) {
  return GetSortLen<T>(count);
}

[[noreturn]] CM384_INLINE void Trap() {
  Abort("Trap");
}

}  // namespace AscendC
