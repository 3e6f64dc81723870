// Vector calls that do two or three steps in one, and those whose operands have two types: made of the
// instructions of the steps, whose time they take. The part has single instructions for them; each step
// rounds to its element type (assumed).
#pragma once

#include "cm384/elementary.h"

namespace AscendC {

// Parameters of a step on the destination alone, and on two operands of which the destination is the second.
CM384_INLINE UnaryRepeatParams Cm384InPlace(const BinaryRepeatParams& p) {
  return {p.dstBlkStride, p.dstBlkStride, p.dstRepStride, p.dstRepStride};
}
CM384_INLINE BinaryRepeatParams Cm384WithTarget(const BinaryRepeatParams& p) {
  return {p.dstBlkStride, p.src0BlkStride, p.dstBlkStride, p.dstRepStride, p.src0RepStride, p.dstRepStride};
}
CM384_INLINE BinaryRepeatParams Cm384FromTarget(const BinaryRepeatParams& p) {
  return {p.dstBlkStride, p.dstBlkStride, p.src1BlkStride, p.dstRepStride, p.dstRepStride, p.src1RepStride};
}

// The larger of a sum, or a difference, and 0.
#define CM384_FUSED(Name, Step)                                                                             \
  template <typename T, bool isSetMask = true>                                                              \
  CM384_INLINE void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1, \
                         int32_t count) {                                                                   \
    Step<T, isSetMask>(dst, src0, src1, count);                                                             \
    PipeBarrier<PIPE_V>();                                                                                  \
    Relu<T, isSetMask>(dst, dst, count);                                                                    \
  }                                                                                                         \
  template <typename T, bool isSetMask = true, MaskForm Mask>                                               \
  CM384_INLINE void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1, \
                         Mask mask, uint8_t repeatTime, const BinaryRepeatParams& p) {                      \
    Step<T, isSetMask>(dst, src0, src1, mask, repeatTime, p);                                               \
    PipeBarrier<PIPE_V>();                                                                                  \
    Relu<T, isSetMask>(dst, dst, mask, repeatTime, Cm384InPlace(p));                                        \
  }
CM384_FUSED(AddRelu, Add)
CM384_FUSED(SubRelu, Sub)
#undef CM384_FUSED

// dst = src0 * dst + src1, and the larger of that and 0.
#define CM384_FUSED(Name, relu)                                                                             \
  template <typename T, bool isSetMask = true>                                                              \
  CM384_INLINE void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1, \
                         int32_t count) {                                                                   \
    Mul<T, isSetMask>(dst, src0, dst, count);                                                               \
    PipeBarrier<PIPE_V>();                                                                                  \
    Add<T, isSetMask>(dst, dst, src1, count);                                                               \
    if constexpr (relu) {                                                                                   \
      PipeBarrier<PIPE_V>();                                                                                \
      Relu<T, isSetMask>(dst, dst, count);                                                                  \
    }                                                                                                       \
  }                                                                                                         \
  template <typename T, bool isSetMask = true, MaskForm Mask>                                               \
  CM384_INLINE void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1, \
                         Mask mask, uint8_t repeatTime, const BinaryRepeatParams& p) {                      \
    Mul<T, isSetMask>(dst, src0, dst, mask, repeatTime, Cm384WithTarget(p));                                \
    PipeBarrier<PIPE_V>();                                                                                  \
    Add<T, isSetMask>(dst, dst, src1, mask, repeatTime, Cm384FromTarget(p));                                \
    if constexpr (relu) {                                                                                   \
      PipeBarrier<PIPE_V>();                                                                                \
      Relu<T, isSetMask>(dst, dst, mask, repeatTime, Cm384InPlace(p));                                      \
    }                                                                                                       \
  }
CM384_FUSED(FusedMulAdd, false)
CM384_FUSED(FusedMulAddRelu, true)
CM384_FUSED(MulAddRelu, true)
#undef CM384_FUSED

// Pieces of a call by way of a temporary: of `count` elements so many at a time that `arrays` of them with 4
// B an element fit. f(first, elements, temporary).
template <int arrays, typename Function>
inline void Cm384Pieces(uint32_t count, Function f) {
  const LocalTensor<uint8_t> room = Cm384Scratch(LocalTensor<uint8_t>(), arrays * 256);
  const uint32_t most = room.GetSize() / (arrays * 256) * 64;
  for (uint32_t first = 0; first < count; first += most) {
    f(first, count - first < most ? count - first : most, [&](uint32_t n) { return room[n * most * 4]; });
    PipeBarrier<PIPE_V>();
  }
}
// Pieces under a mask: of so many repeats that `arrays` of 256 B a repeat fit.
template <int arrays, typename Function>
inline void Cm384Repeats(uint32_t repeats, Function f) {
  const LocalTensor<uint8_t> room = Cm384Scratch(LocalTensor<uint8_t>(), arrays * 256);
  const uint32_t most = room.GetSize() / (arrays * 256);
  for (uint32_t first = 0; first < repeats; first += most) {
    const auto now = static_cast<uint8_t>(repeats - first < most ? repeats - first : most);
    f(first, now, [&](uint32_t n) { return room[n * most * 256]; });
    PipeBarrier<PIPE_V>();
  }
}
template <typename T>
CM384_INLINE LocalTensor<T> Cm384After(const LocalTensor<T>& tensor, uint32_t repeats, uint32_t stride) {
  return tensor[repeats * stride * (ONE_BLK_SIZE / static_cast<uint32_t>(sizeof(T)))];
}

// Operands of half, a destination of float that is added to: the operands in FP32, 64 elements a repeat.
template <typename D, typename S, bool isSetMask = true>
requires(is_same_v<D, float>&& is_same_v<S, half>) inline void MulAddDst(const LocalTensor<D>& dst,
                                                                         const LocalTensor<S>& src0,
                                                                         const LocalTensor<S>& src1,
                                                                         int32_t count) {
  Cm384Pieces<2>(static_cast<uint32_t>(count), [&](uint32_t first, uint32_t now, auto temporary) {
    const LocalTensor<float> a = temporary(0).template ReinterpretCast<float>(),
                             b = temporary(1).template ReinterpretCast<float>();
    Cast(a, src0[first], RoundMode::CAST_NONE, now);
    Cast(b, src1[first], RoundMode::CAST_NONE, now);
    PipeBarrier<PIPE_V>();
    MulAddDst(dst[first], a, b, static_cast<int32_t>(now));
  });
}
template <typename D, typename S, bool isSetMask = true, MaskForm Mask>
requires(is_same_v<D, float>&& is_same_v<S, half>) inline void MulAddDst(const LocalTensor<D>& dst,
                                                                         const LocalTensor<S>& src0,
                                                                         const LocalTensor<S>& src1,
                                                                         Mask mask, uint8_t repeatTime,
                                                                         const BinaryRepeatParams& p) {
  Cm384Repeats<2>(repeatTime, [&](uint32_t first, uint8_t now, auto temporary) {
    const LocalTensor<float> a = temporary(0).template ReinterpretCast<float>(),
                             b = temporary(1).template ReinterpretCast<float>();
    Cast<float, half, isSetMask>(a, Cm384After(src0, first, p.src0RepStride), RoundMode::CAST_NONE, mask, now,
                                 UnaryRepeatParams(1, p.src0BlkStride, 8, p.src0RepStride));
    Cast<float, half, isSetMask>(b, Cm384After(src1, first, p.src1RepStride), RoundMode::CAST_NONE, mask, now,
                                 UnaryRepeatParams(1, p.src1BlkStride, 8, p.src1RepStride));
    PipeBarrier<PIPE_V>();
    MulAddDst<float, isSetMask>(Cm384After(dst, first, p.dstRepStride), a, b, mask, now,
                                BinaryRepeatParams(p.dstBlkStride, 1, 1, p.dstRepStride, 8, 8));
  });
}
template <typename D, typename S, bool isSetMask = true, typename Scalar>
requires(is_same_v<D, float>&& is_same_v<S, half>) inline void Axpy(const LocalTensor<D>& dst,
                                                                    const LocalTensor<S>& src, Scalar scalar,
                                                                    int32_t count) {
  const float by = static_cast<half>(scalar);
  Cm384Pieces<1>(static_cast<uint32_t>(count), [&](uint32_t first, uint32_t now, auto temporary) {
    const LocalTensor<float> a = temporary(0).template ReinterpretCast<float>();
    Cast(a, src[first], RoundMode::CAST_NONE, now);
    PipeBarrier<PIPE_V>();
    Axpy(dst[first], a, by, static_cast<int32_t>(now));
  });
}
template <typename D, typename S, bool isSetMask = true, typename Scalar, MaskForm Mask>
requires(is_same_v<D, float>&& is_same_v<S, half>) inline void Axpy(const LocalTensor<D>& dst,
                                                                    const LocalTensor<S>& src, Scalar scalar,
                                                                    Mask mask, uint8_t repeatTime,
                                                                    const UnaryRepeatParams& p) {
  const float by = static_cast<half>(scalar);
  Cm384Repeats<1>(repeatTime, [&](uint32_t first, uint8_t now, auto temporary) {
    const LocalTensor<float> a = temporary(0).template ReinterpretCast<float>();
    Cast<float, half, isSetMask>(a, Cm384After(src, first, p.srcRepStride), RoundMode::CAST_NONE, mask, now,
                                 UnaryRepeatParams(1, p.srcBlkStride, 8, p.srcRepStride));
    PipeBarrier<PIPE_V>();
    Axpy<float, isSetMask>(Cm384After(dst, first, p.dstRepStride), a, by, mask, now,
                           UnaryRepeatParams(p.dstBlkStride, 1, p.dstRepStride, 8));
  });
}

// A step in the sources' type, then the conversion, to nearest even.
#define CM384_FUSED_CAST(Name, Step)                                                                       \
  template <typename D, typename S, bool isSetMask = true>                                                 \
  inline void Name(const LocalTensor<D>& dst, const LocalTensor<S>& src0, const LocalTensor<S>& src1,      \
                   uint32_t count) {                                                                       \
    Cm384Pieces<1>(count, [&](uint32_t first, uint32_t now, auto temporary) {                              \
      const LocalTensor<S> made = temporary(0).template ReinterpretCast<S>();                              \
      Step(made, src0[first], src1[first], static_cast<int32_t>(now));                                     \
      PipeBarrier<PIPE_V>();                                                                               \
      Cast(dst[first], made, RoundMode::CAST_RINT, now);                                                   \
    });                                                                                                    \
  }                                                                                                        \
  template <typename D, typename S, bool isSetMask = true, MaskForm Mask>                                  \
  inline void Name(const LocalTensor<D>& dst, const LocalTensor<S>& src0, const LocalTensor<S>& src1,      \
                   Mask mask, uint8_t repeatTime, const BinaryRepeatParams& p) {                           \
    Cm384Repeats<1>(repeatTime, [&](uint32_t first, uint8_t now, auto temporary) {                         \
      const LocalTensor<S> made = temporary(0).template ReinterpretCast<S>();                              \
      Step<S, isSetMask>(                                                                                  \
          made, Cm384After(src0, first, p.src0RepStride), Cm384After(src1, first, p.src1RepStride), mask,  \
          now,                                                                                             \
          BinaryRepeatParams(1, p.src0BlkStride, p.src1BlkStride, 8, p.src0RepStride, p.src1RepStride));   \
      PipeBarrier<PIPE_V>();                                                                               \
      Cast<D, S, isSetMask>(Cm384After(dst, first, p.dstRepStride), made, RoundMode::CAST_RINT, mask, now, \
                            UnaryRepeatParams(p.dstBlkStride, 1, p.dstRepStride, 8));                      \
    });                                                                                                    \
  }
CM384_FUSED_CAST(AddReluCast, AddRelu)
CM384_FUSED_CAST(SubReluCast, SubRelu)
CM384_FUSED_CAST(MulCast, Mul)
#undef CM384_FUSED_CAST
// half of the sum of int32_t times what SetDeqScale has set, and the larger of that and 0.
template <typename D, typename S, bool isSetMask = true>
inline void AddDeqRelu(const LocalTensor<D>& dst, const LocalTensor<S>& src0, const LocalTensor<S>& src1,
                       int32_t count) {
  static_assert(is_same_v<D, half> && is_same_v<S, int32_t>,
                "AddDeqRelu: of int32_t to half: docs/ascend-c.md");
  Cm384Pieces<1>(static_cast<uint32_t>(count), [&](uint32_t first, uint32_t now, auto temporary) {
    const LocalTensor<int32_t> sum = temporary(0).template ReinterpretCast<int32_t>();
    Add(sum, src0[first], src1[first], static_cast<int32_t>(now));
    PipeBarrier<PIPE_V>();
    Cast(dst[first], sum, RoundMode::CAST_NONE, now);
    PipeBarrier<PIPE_V>();
    Relu(dst[first], dst[first], static_cast<int32_t>(now));
  });
}
template <typename D, typename S, bool isSetMask = true, MaskForm Mask>
inline void AddDeqRelu(const LocalTensor<D>& dst, const LocalTensor<S>& src0, const LocalTensor<S>& src1,
                       Mask mask, uint8_t repeatTime, const BinaryRepeatParams& p) {
  static_assert(is_same_v<D, half> && is_same_v<S, int32_t>,
                "AddDeqRelu: of int32_t to half: docs/ascend-c.md");
  Cm384Repeats<1>(repeatTime, [&](uint32_t first, uint8_t now, auto temporary) {
    const LocalTensor<int32_t> sum = temporary(0).template ReinterpretCast<int32_t>();
    const LocalTensor<half> to = Cm384After(dst, first, p.dstRepStride);
    Add<int32_t, isSetMask>(
        sum, Cm384After(src0, first, p.src0RepStride), Cm384After(src1, first, p.src1RepStride), mask, now,
        BinaryRepeatParams(1, p.src0BlkStride, p.src1BlkStride, 8, p.src0RepStride, p.src1RepStride));
    PipeBarrier<PIPE_V>();
    Cast<half, int32_t, isSetMask>(to, sum, RoundMode::CAST_NONE, mask, now,
                                   UnaryRepeatParams(p.dstBlkStride, 1, p.dstRepStride, 8));
    PipeBarrier<PIPE_V>();
    // The mask counts 64 elements a repeat here, as that of int32_t does.
    Relu<half, isSetMask>(to, to, mask, now,
                          UnaryRepeatParams(p.dstBlkStride, p.dstBlkStride, p.dstRepStride, p.dstRepStride));
  });
}

}  // namespace AscendC
