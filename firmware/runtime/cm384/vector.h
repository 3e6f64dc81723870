// Element-wise vector instructions (pipe V). Each has two forms, as in Ascend C: over `count` contiguous
// elements, and over repeats with strides under a mask, which is a number (the first elements of each repeat)
// or two words of bits, low word first. An instruction may start before the one before it has finished:
// PipeBarrier<PIPE_V>() stands between two where one needs the other's result.
#pragma once

#include "cm384/mask.h"

namespace AscendC {

template <typename T>
inline constexpr uint32_t kRepeatElements = ONE_REPEAT_BYTE_SIZE / sizeof(T);

template <int Operation, int Type, typename T>
CM384_INLINE void BinaryCount(const LocalTensor<T>& dst, const LocalTensor<T>& src0,
                              const LocalTensor<T>& src1, uint32_t count) {
  ForCount(count, kRepeatElements<T>, [&](uint32_t first, uint32_t repeats) {
    cm384::pipe_instruction<CM384_CLASS_VECTOR, Operation, Type>(
        OffsetPair(dst.GetPhyAddr(first), src0.GetPhyAddr(first)), src1.GetPhyAddr(first),
        RepeatConfig(repeats, 1, 1, 1, 8, 8, 8));
  });
}
template <int Operation, int Type, bool isSetMask, typename T, typename Mask>
CM384_INLINE void BinaryRepeat(const LocalTensor<T>& dst, const LocalTensor<T>& src0,
                               const LocalTensor<T>& src1, Mask mask, uint8_t repeats,
                               const BinaryRepeatParams& p) {
  if constexpr (kPlainMask<isSetMask, Mask>) {
    const bool masked = mask < kRepeatElements<T>;
    if (masked) SetMaskFirst(static_cast<uint32_t>(mask));
    cm384::pipe_instruction<CM384_CLASS_VECTOR, Operation, Type>(
        OffsetPair(dst.GetPhyAddr(), src0.GetPhyAddr()), src1.GetPhyAddr(),
        RepeatConfig(repeats, p.dstBlkStride, p.src0BlkStride, p.src1BlkStride, p.dstRepStride,
                     p.src0RepStride, p.src1RepStride));
    if (masked) ResetMask();
    return;
  }
  ForMask<isSetMask>(mask, repeats, kRepeatElements<T>, [&](uint32_t from, uint32_t now) {
    cm384::pipe_instruction<CM384_CLASS_VECTOR, Operation, Type>(
        OffsetPair(dst.GetPhyAddr() + from * p.dstRepStride * ONE_BLK_SIZE,
                   src0.GetPhyAddr() + from * p.src0RepStride * ONE_BLK_SIZE),
        src1.GetPhyAddr() + from * p.src1RepStride * ONE_BLK_SIZE,
        RepeatConfig(now, p.dstBlkStride, p.src0BlkStride, p.src1BlkStride, p.dstRepStride, p.src0RepStride,
                     p.src1RepStride));
  });
}
// `operand`: a scalar's bits for operations that take one.
template <int Operation, int Type, typename T>
CM384_INLINE void UnaryCount(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint64_t operand,
                             uint32_t count) {
  ForCount(count, kRepeatElements<T>, [&](uint32_t first, uint32_t repeats) {
    cm384::pipe_instruction<CM384_CLASS_VECTOR, Operation, Type>(
        OffsetPair(dst.GetPhyAddr(first), src.GetPhyAddr(first)), operand,
        RepeatConfig(repeats, 1, 1, 0, 8, 8, 0));
  });
}
template <int Operation, int Type, bool isSetMask, typename T, typename Mask>
CM384_INLINE void UnaryRepeat(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint64_t operand,
                              Mask mask, uint8_t repeats, const UnaryRepeatParams& p) {
  if constexpr (kPlainMask<isSetMask, Mask>) {
    const bool masked = mask < kRepeatElements<T>;
    if (masked) SetMaskFirst(static_cast<uint32_t>(mask));
    cm384::pipe_instruction<CM384_CLASS_VECTOR, Operation, Type>(
        OffsetPair(dst.GetPhyAddr(), src.GetPhyAddr()), operand,
        RepeatConfig(repeats, p.dstBlkStride, p.srcBlkStride, 0, p.dstRepStride, p.srcRepStride, 0));
    if (masked) ResetMask();
    return;
  }
  ForMask<isSetMask>(mask, repeats, kRepeatElements<T>, [&](uint32_t from, uint32_t now) {
    cm384::pipe_instruction<CM384_CLASS_VECTOR, Operation, Type>(
        OffsetPair(dst.GetPhyAddr() + from * p.dstRepStride * ONE_BLK_SIZE,
                   src.GetPhyAddr() + from * p.srcRepStride * ONE_BLK_SIZE),
        operand, RepeatConfig(now, p.dstBlkStride, p.srcBlkStride, 0, p.dstRepStride, p.srcRepStride, 0));
  });
}

// `type`: kElementType, or kBitsType for what works on bits; `types`: what is said of others.
#define CM384_TYPES(Name, type) \
  static_assert(type<T> >= 0, #Name ": no such form for this element type: docs/ascend-c.md")

#define CM384_BINARY_OF(Name, operation, type)                                                              \
  template <typename T, bool isSetMask = true>                                                              \
  CM384_INLINE void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1, \
                         int32_t count) {                                                                   \
    CM384_TYPES(Name, type);                                                                                \
    BinaryCount<operation, type<T>>(dst, src0, src1, static_cast<uint32_t>(count));                         \
  }                                                                                                         \
  template <typename T, bool isSetMask = true>                                                              \
  CM384_INLINE void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1, \
                         uint64_t mask, uint8_t repeatTime, const BinaryRepeatParams& p) {                  \
    CM384_TYPES(Name, type);                                                                                \
    BinaryRepeat<operation, type<T>, isSetMask>(dst, src0, src1, mask, repeatTime, p);                      \
  }                                                                                                         \
  template <typename T, bool isSetMask = true>                                                              \
  CM384_INLINE void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1, \
                         const uint64_t mask[], uint8_t repeatTime, const BinaryRepeatParams& p) {          \
    CM384_TYPES(Name, type);                                                                                \
    BinaryRepeat<operation, type<T>, isSetMask>(dst, src0, src1, mask, repeatTime, p);                      \
  }
#define CM384_BINARY(Name, operation) CM384_BINARY_OF(Name, operation, kElementType)
CM384_BINARY(Add, CM384_VADD)
CM384_BINARY(Sub, CM384_VSUB)
CM384_BINARY(Mul, CM384_VMUL)
CM384_BINARY(Div, CM384_VDIV)
CM384_BINARY(Max, CM384_VMAX)
CM384_BINARY(Min, CM384_VMIN)
CM384_BINARY_OF(And, CM384_VAND, kBitsType)
CM384_BINARY_OF(Or, CM384_VOR, kBitsType)
CM384_BINARY(MulAddDst, CM384_VMADD)  // dst += src0 * src1
#undef CM384_BINARY
#undef CM384_BINARY_OF

#define CM384_UNARY_OF(Name, operation, type)                                                         \
  template <typename T, bool isSetMask = true>                                                        \
  CM384_INLINE void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, int32_t count) {       \
    CM384_TYPES(Name, type);                                                                          \
    UnaryCount<operation, type<T>>(dst, src, 0, static_cast<uint32_t>(count));                        \
  }                                                                                                   \
  template <typename T, bool isSetMask = true>                                                        \
  CM384_INLINE void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint64_t mask,         \
                         uint8_t repeatTime, const UnaryRepeatParams& p) {                            \
    CM384_TYPES(Name, type);                                                                          \
    UnaryRepeat<operation, type<T>, isSetMask>(dst, src, 0, mask, repeatTime, p);                     \
  }                                                                                                   \
  template <typename T, bool isSetMask = true>                                                        \
  CM384_INLINE void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint64_t mask[], \
                         uint8_t repeatTime, const UnaryRepeatParams& p) {                            \
    CM384_TYPES(Name, type);                                                                          \
    UnaryRepeat<operation, type<T>, isSetMask>(dst, src, 0, mask, repeatTime, p);                     \
  }
#define CM384_UNARY(Name, operation) CM384_UNARY_OF(Name, operation, kElementType)
CM384_UNARY(Abs, CM384_VABS)
CM384_UNARY(Relu, CM384_VRELU)
CM384_UNARY(Exp, CM384_VEXP)
CM384_UNARY(Ln, CM384_VLN)
CM384_UNARY(Sqrt, CM384_VSQRT)
CM384_UNARY(Rsqrt, CM384_VRSQRT)
CM384_UNARY(Reciprocal, CM384_VREC)
CM384_UNARY_OF(Not, CM384_VNOT, kBitsType)
#undef CM384_UNARY
#undef CM384_UNARY_OF

// UBuffer to UBuffer, strides in the order of the unary ones.
struct CopyRepeatParams {
  uint16_t dstStride = 1;
  uint16_t srcStride = 1;
  uint16_t dstRepeatSize = 8;
  uint16_t srcRepeatSize = 8;
  CM384_INLINE constexpr operator UnaryRepeatParams() const {
    return {dstStride, srcStride, static_cast<uint8_t>(FitsInstruction(dstRepeatSize)),
            static_cast<uint8_t>(FitsInstruction(srcRepeatSize))};
  }
};
template <typename T, bool isSetMask = true>
CM384_INLINE void Copy(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint64_t mask,
                       uint8_t repeatTime, const CopyRepeatParams& p) {
  CM384_TYPES(Copy, kBitsType);
  UnaryRepeat<CM384_VCOPY, kBitsType<T>, isSetMask>(dst, src, 0, mask, repeatTime, p);
}
template <typename T, bool isSetMask = true>
CM384_INLINE void Copy(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint64_t mask[],
                       uint8_t repeatTime, const CopyRepeatParams& p) {
  CM384_TYPES(Copy, kBitsType);
  UnaryRepeat<CM384_VCOPY, kBitsType<T>, isSetMask>(dst, src, 0, mask, repeatTime, p);
}
// On A2 and A3 there is no such form; newer chips have it.
template <typename T>
CM384_INLINE void Copy(const LocalTensor<T>& dst, const LocalTensor<T>& src, int32_t count) {
  CM384_TYPES(Copy, kBitsType);
  UnaryCount<CM384_VCOPY, kBitsType<T>>(dst, src, 0, static_cast<uint32_t>(count));
}

// The scalar is converted to the element type. A float that came from tensor payload may be passed: it is
// data here, not an address or a condition.
#define CM384_SCALAR_OF(Name, operation)                                                                    \
  template <typename T, bool isSetMask = true, typename S>                                                  \
  CM384_INLINE void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, S scalar, int32_t count) {   \
    CM384_TYPES(Name, kElementType);                                                                        \
    UnaryCount<operation, kElementType<T>>(dst, src, scalar_bits(static_cast<T>(scalar)),                   \
                                           static_cast<uint32_t>(count));                                   \
  }                                                                                                         \
  template <typename T, bool isSetMask = true, typename S>                                                  \
  CM384_INLINE void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, S scalar, uint64_t mask,     \
                         uint8_t repeatTime, const UnaryRepeatParams& p) {                                  \
    CM384_TYPES(Name, kElementType);                                                                        \
    UnaryRepeat<operation, kElementType<T>, isSetMask>(dst, src, scalar_bits(static_cast<T>(scalar)), mask, \
                                                       repeatTime, p);                                      \
  }                                                                                                         \
  template <typename T, bool isSetMask = true, typename S>                                                  \
  CM384_INLINE void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, S scalar,                    \
                         const uint64_t mask[], uint8_t repeatTime, const UnaryRepeatParams& p) {           \
    CM384_TYPES(Name, kElementType);                                                                        \
    UnaryRepeat<operation, kElementType<T>, isSetMask>(dst, src, scalar_bits(static_cast<T>(scalar)), mask, \
                                                       repeatTime, p);                                      \
  }
CM384_SCALAR_OF(Adds, CM384_VADDS)
CM384_SCALAR_OF(Muls, CM384_VMULS)
CM384_SCALAR_OF(Maxs, CM384_VMAXS)
CM384_SCALAR_OF(Mins, CM384_VMINS)
CM384_SCALAR_OF(Axpy, CM384_VAXPY)  // dst += src * scalar
CM384_SCALAR_OF(ShiftLeft, CM384_VSHLS)
// Unsigned integers get zeros, signed ones their sign.
CM384_SCALAR_OF(ShiftRight, (T(-1) < T(0) ? CM384_VSHRS : CM384_VSHRU))
#undef CM384_SCALAR_OF
// With roundEn the last bit that goes is added: half of it is shifted, then 1 added, then the rest shifted.
template <typename T, bool isSetMask = true, typename S, MaskForm Mask>
CM384_INLINE void ShiftRight(const LocalTensor<T>& dst, const LocalTensor<T>& src, S scalar, Mask mask,
                             uint8_t repeatTime, const UnaryRepeatParams& p, bool roundEn) {
  if (!roundEn || scalar == 0) return ShiftRight<T, isSetMask>(dst, src, scalar, mask, repeatTime, p);
  const UnaryRepeatParams again(p.dstBlkStride, p.dstBlkStride, p.dstRepStride, p.dstRepStride);
  ShiftRight<T, isSetMask>(dst, src, static_cast<T>(scalar - 1), mask, repeatTime, p);
  PipeBarrier<PIPE_V>();
  Adds<T, isSetMask>(dst, dst, static_cast<T>(1), mask, repeatTime, again);
  PipeBarrier<PIPE_V>();
  ShiftRight<T, isSetMask>(dst, dst, static_cast<T>(1), mask, repeatTime, again);
}

template <typename T, bool isSetMask = true, typename S>
CM384_INLINE void Duplicate(const LocalTensor<T>& dst, S scalar, int32_t count) {
  CM384_TYPES(Duplicate, kBitsType);
  UnaryCount<CM384_VDUP, kBitsType<T>>(dst, dst, scalar_bits(static_cast<T>(scalar)),
                                       static_cast<uint32_t>(count));
}
template <typename T, bool isSetMask = true, typename S>
CM384_INLINE void Duplicate(const LocalTensor<T>& dst, S scalar, uint64_t mask, uint8_t repeatTime,
                            uint16_t dstBlockStride, uint8_t dstRepeatStride) {
  CM384_TYPES(Duplicate, kBitsType);
  UnaryRepeat<CM384_VDUP, kBitsType<T>, isSetMask>(
      dst, dst, scalar_bits(static_cast<T>(scalar)), mask, repeatTime,
      UnaryRepeatParams{dstBlockStride, dstBlockStride, dstRepeatStride, dstRepeatStride});
}
template <typename T, bool isSetMask = true, typename S>
CM384_INLINE void Duplicate(const LocalTensor<T>& dst, S scalar, const uint64_t mask[], uint8_t repeatTime,
                            uint16_t dstBlockStride, uint8_t dstRepeatStride) {
  CM384_TYPES(Duplicate, kBitsType);
  UnaryRepeat<CM384_VDUP, kBitsType<T>, isSetMask>(
      dst, dst, scalar_bits(static_cast<T>(scalar)), mask, repeatTime,
      UnaryRepeatParams{dstBlockStride, dstBlockStride, dstRepeatStride, dstRepeatStride});
}

// dst[i] = first + i, element i of all repeats one after another.
template <typename T, typename S>
CM384_INLINE void CreateVecIndex(const LocalTensor<T>& dst, S first, uint32_t count) {
  CM384_TYPES(CreateVecIndex, kElementType);
  ForCount(count, kRepeatElements<T>, [&](uint32_t from, uint32_t repeats) {
    const T begin = static_cast<T>(static_cast<T>(first) + static_cast<T>(from));
    cm384::pipe_instruction<CM384_CLASS_VECTOR, CM384_VINDEX, kElementType<T>>(
        dst.GetPhyAddr(from), scalar_bits(begin), RepeatConfig(repeats, 1, 1, 0, 8, 8, 0));
  });
}
template <typename T, bool isSetMask = true, typename S, MaskForm Mask>
CM384_INLINE void CreateVecIndex(const LocalTensor<T>& dst, S first, Mask mask, uint8_t repeatTime,
                                 uint16_t dstBlkStride, uint8_t dstRepStride) {
  CM384_TYPES(CreateVecIndex, kElementType);
  ForMask<isSetMask>(mask, repeatTime, kRepeatElements<T>, [&](uint32_t from, uint32_t now) {
    const T begin = static_cast<T>(static_cast<T>(first) + static_cast<T>(from * kRepeatElements<T>));
    cm384::pipe_instruction<CM384_CLASS_VECTOR, CM384_VINDEX, kElementType<T>>(
        dst.GetPhyAddr() + from * dstRepStride * ONE_BLK_SIZE, scalar_bits(begin),
        RepeatConfig(now, dstBlkStride, 1, 0, dstRepStride, 8, 0));
  });
}

// UBuffer to UBuffer, on pipe V; whole 32 B blocks.
template <typename T>
CM384_INLINE void DataCopy(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint32_t count) {
  const uint32_t halves = static_cast<uint32_t>((count * sizeof(T) + ONE_BLK_SIZE - 1) / ONE_BLK_SIZE * 16);
  Copy(dst.template ReinterpretCast<uint16_t>(), src.template ReinterpretCast<uint16_t>(),
       static_cast<int32_t>(halves));
}

}  // namespace AscendC
