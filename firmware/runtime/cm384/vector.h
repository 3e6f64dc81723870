// Element-wise vector instructions (pipe V). Each has two forms, as in Ascend C: over `count` contiguous
// elements, and over repeats with a mask (number of elements of each repeat) and strides. An instruction may
// start before the one before it has finished: PipeBarrier<PIPE_V>() stands between two where one needs the
// other's result.
#pragma once

#include "cm384/mask.h"

namespace AscendC {

template <typename T>
inline constexpr uint32_t kRepeatElements = ONE_REPEAT_BYTE_SIZE / sizeof(T);

template <int Operation, typename T>
CM384_INLINE void BinaryCount(const LocalTensor<T>& dst, const LocalTensor<T>& src0,
                              const LocalTensor<T>& src1, uint32_t count) {
  ForCount(count, kRepeatElements<T>, [&](uint32_t first, uint32_t repeats) {
    cm384::pipe_instruction<CM384_CLASS_VECTOR, Operation, kElementType<T>>(
        OffsetPair(dst.GetPhyAddr(first), src0.GetPhyAddr(first)), src1.GetPhyAddr(first),
        RepeatConfig(repeats, 1, 1, 1, 8, 8, 8));
  });
}
template <int Operation, typename T>
CM384_INLINE void BinaryRepeat(const LocalTensor<T>& dst, const LocalTensor<T>& src0,
                               const LocalTensor<T>& src1, uint64_t mask, uint8_t repeats,
                               const BinaryRepeatParams& p) {
  const bool masked = mask < kRepeatElements<T>;
  if (masked) SetMaskCount(static_cast<uint32_t>(mask));
  cm384::pipe_instruction<CM384_CLASS_VECTOR, Operation, kElementType<T>>(
      OffsetPair(dst.GetPhyAddr(), src0.GetPhyAddr()), src1.GetPhyAddr(),
      RepeatConfig(repeats, p.dstBlkStride, p.src0BlkStride, p.src1BlkStride, p.dstRepStride, p.src0RepStride,
                   p.src1RepStride));
  if (masked) ResetMask();
}
// `operand`: a scalar's bits for operations that take one.
template <int Operation, typename T>
CM384_INLINE void UnaryCount(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint64_t operand,
                             uint32_t count) {
  ForCount(count, kRepeatElements<T>, [&](uint32_t first, uint32_t repeats) {
    cm384::pipe_instruction<CM384_CLASS_VECTOR, Operation, kElementType<T>>(
        OffsetPair(dst.GetPhyAddr(first), src.GetPhyAddr(first)), operand,
        RepeatConfig(repeats, 1, 1, 0, 8, 8, 0));
  });
}
template <int Operation, typename T>
CM384_INLINE void UnaryRepeat(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint64_t operand,
                              uint64_t mask, uint8_t repeats, const UnaryRepeatParams& p) {
  const bool masked = mask < kRepeatElements<T>;
  if (masked) SetMaskCount(static_cast<uint32_t>(mask));
  cm384::pipe_instruction<CM384_CLASS_VECTOR, Operation, kElementType<T>>(
      OffsetPair(dst.GetPhyAddr(), src.GetPhyAddr()), operand,
      RepeatConfig(repeats, p.dstBlkStride, p.srcBlkStride, 0, p.dstRepStride, p.srcRepStride, 0));
  if (masked) ResetMask();
}

#define CM384_BINARY(Name, operation)                                                                       \
  template <typename T>                                                                                     \
  CM384_INLINE void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1, \
                         int32_t count) {                                                                   \
    BinaryCount<operation>(dst, src0, src1, static_cast<uint32_t>(count));                                  \
  }                                                                                                         \
  template <typename T>                                                                                     \
  CM384_INLINE void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1, \
                         uint64_t mask, uint8_t repeatTime, const BinaryRepeatParams& p) {                  \
    BinaryRepeat<operation>(dst, src0, src1, mask, repeatTime, p);                                          \
  }
CM384_BINARY(Add, CM384_VADD)
CM384_BINARY(Sub, CM384_VSUB)
CM384_BINARY(Mul, CM384_VMUL)
CM384_BINARY(Div, CM384_VDIV)
CM384_BINARY(Max, CM384_VMAX)
CM384_BINARY(Min, CM384_VMIN)
CM384_BINARY(And, CM384_VAND)
CM384_BINARY(Or, CM384_VOR)
CM384_BINARY(MulAddDst, CM384_VMADD)  // dst += src0 * src1
#undef CM384_BINARY

#define CM384_UNARY(Name, operation)                                                            \
  template <typename T>                                                                         \
  CM384_INLINE void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, int32_t count) { \
    UnaryCount<operation>(dst, src, 0, static_cast<uint32_t>(count));                           \
  }                                                                                             \
  template <typename T>                                                                         \
  CM384_INLINE void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint64_t mask,   \
                         uint8_t repeatTime, const UnaryRepeatParams& p) {                      \
    UnaryRepeat<operation>(dst, src, 0, mask, repeatTime, p);                                   \
  }
CM384_UNARY(Abs, CM384_VABS)
CM384_UNARY(Relu, CM384_VRELU)
CM384_UNARY(Exp, CM384_VEXP)
CM384_UNARY(Ln, CM384_VLN)
CM384_UNARY(Sqrt, CM384_VSQRT)
CM384_UNARY(Rsqrt, CM384_VRSQRT)
CM384_UNARY(Reciprocal, CM384_VREC)
CM384_UNARY(Not, CM384_VNOT)
CM384_UNARY(Copy, CM384_VCOPY)
#undef CM384_UNARY

// The scalar is converted to the element type. A float that came from tensor payload may be passed: it is
// data here, not an address or a condition.
#define CM384_SCALAR(Name, operation)                                                                     \
  template <typename T, typename S>                                                                       \
  CM384_INLINE void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, S scalar, int32_t count) { \
    UnaryCount<operation>(dst, src, scalar_bits(static_cast<T>(scalar)), static_cast<uint32_t>(count));   \
  }                                                                                                       \
  template <typename T, typename S>                                                                       \
  CM384_INLINE void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, S scalar, uint64_t mask,   \
                         uint8_t repeatTime, const UnaryRepeatParams& p) {                                \
    UnaryRepeat<operation>(dst, src, scalar_bits(static_cast<T>(scalar)), mask, repeatTime, p);           \
  }
CM384_SCALAR(Adds, CM384_VADDS)
CM384_SCALAR(Muls, CM384_VMULS)
CM384_SCALAR(Maxs, CM384_VMAXS)
CM384_SCALAR(Mins, CM384_VMINS)
CM384_SCALAR(Axpy, CM384_VAXPY)  // dst += src * scalar
CM384_SCALAR(ShiftLeft, CM384_VSHLS)
CM384_SCALAR(ShiftRight, CM384_VSHRS)
#undef CM384_SCALAR

template <typename T, typename S>
CM384_INLINE void Duplicate(const LocalTensor<T>& dst, S scalar, int32_t count) {
  UnaryCount<CM384_VDUP>(dst, dst, scalar_bits(static_cast<T>(scalar)), static_cast<uint32_t>(count));
}
template <typename T, typename S>
CM384_INLINE void Duplicate(const LocalTensor<T>& dst, S scalar, uint64_t mask, uint8_t repeatTime,
                            uint16_t dstBlockStride, uint8_t dstRepeatStride) {
  UnaryRepeat<CM384_VDUP>(dst, dst, scalar_bits(static_cast<T>(scalar)), mask, repeatTime,
                          {dstBlockStride, dstBlockStride, dstRepeatStride, dstRepeatStride});
}

template <typename T, typename S>
CM384_INLINE void Duplicate(const LocalTensor<T>& dst, S scalar, const uint64_t mask[], uint8_t repeatTime,
                            uint16_t dstBlockStride, uint8_t dstRepeatStride) {
  SetMaskBits(mask);
  Duplicate(dst, scalar, kRepeatElements<T>, repeatTime, dstBlockStride, dstRepeatStride);
  ResetMask();
}

// UBuffer to UBuffer, on pipe V; whole 32 B blocks.
template <typename T>
CM384_INLINE void DataCopy(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint32_t count) {
  const uint32_t halves = static_cast<uint32_t>((count * sizeof(T) + ONE_BLK_SIZE - 1) / ONE_BLK_SIZE * 16);
  Copy(dst.template ReinterpretCast<uint16_t>(), src.template ReinterpretCast<uint16_t>(),
       static_cast<int32_t>(halves));
}

}  // namespace AscendC
