// Compare, select, gather (pipe V). Masks of bits are packed, bit i for element i.
#pragma once

#include "cm384/vector.h"

namespace AscendC {

template <int Operation, typename T>
CM384_INLINE void CompareCount(const LocalTensor<uint8_t>& dst, const LocalTensor<T>& src0, uint64_t operand,
                               uint32_t operand_step, uint32_t count) {
  ForCount(count, kRepeatElements<T>, [&](uint32_t first, uint32_t repeats) {
    cm384::pipe_instruction<CM384_CLASS_REDUCE, Operation, kElementType<T>>(
        OffsetPair(dst.GetPhyAddr(first / 8), src0.GetPhyAddr(first)), operand + first * operand_step,
        RepeatConfig(repeats, 1, 1, 1, 8, 8, 8));
  });
}

// One bit an element. The rest of a partial repeat is 0.
template <typename T>
CM384_INLINE void Compare(const LocalTensor<uint8_t>& dst, const LocalTensor<T>& src0,
                          const LocalTensor<T>& src1, CMPMODE mode, uint32_t count) {
  const uint64_t second = src1.GetPhyAddr();
  switch (mode) {
    case CMPMODE::EQ:
      return CompareCount<CM384_VCMP_EQ>(dst, src0, second, sizeof(T), count);
    case CMPMODE::NE:
      return CompareCount<CM384_VCMP_NE>(dst, src0, second, sizeof(T), count);
    case CMPMODE::LT:
      return CompareCount<CM384_VCMP_LT>(dst, src0, second, sizeof(T), count);
    case CMPMODE::LE:
      return CompareCount<CM384_VCMP_LE>(dst, src0, second, sizeof(T), count);
    case CMPMODE::GT:
      return CompareCount<CM384_VCMP_GT>(dst, src0, second, sizeof(T), count);
    case CMPMODE::GE:
      return CompareCount<CM384_VCMP_GE>(dst, src0, second, sizeof(T), count);
  }
}
template <typename T, typename S>
CM384_INLINE void CompareScalar(const LocalTensor<uint8_t>& dst, const LocalTensor<T>& src0, S scalar,
                                CMPMODE mode, uint32_t count) {
  const uint64_t bits = scalar_bits(static_cast<T>(scalar));
  switch (mode) {
    case CMPMODE::EQ:
      return CompareCount<CM384_VCMPS_EQ>(dst, src0, bits, 0, count);
    case CMPMODE::NE:
      return CompareCount<CM384_VCMPS_NE>(dst, src0, bits, 0, count);
    case CMPMODE::LT:
      return CompareCount<CM384_VCMPS_LT>(dst, src0, bits, 0, count);
    case CMPMODE::LE:
      return CompareCount<CM384_VCMPS_LE>(dst, src0, bits, 0, count);
    case CMPMODE::GT:
      return CompareCount<CM384_VCMPS_GT>(dst, src0, bits, 0, count);
    case CMPMODE::GE:
      return CompareCount<CM384_VCMPS_GE>(dst, src0, bits, 0, count);
  }
}

// dst[i] = bit i of selMask ? src0[i] : src1[i].
template <typename T>
CM384_INLINE void Select(const LocalTensor<T>& dst, const LocalTensor<uint8_t>& selMask,
                         const LocalTensor<T>& src0, const LocalTensor<T>& src1, SELMODE, uint32_t count) {
  ForCount(count, kRepeatElements<T>, [&](uint32_t first, uint32_t repeats) {
    cm384::pipe_instruction<CM384_CLASS_REDUCE, CM384_VSEL, kElementType<T>>(
        OffsetPair(dst.GetPhyAddr(first), src0.GetPhyAddr(first)),
        OffsetPair(src1.GetPhyAddr(first), selMask.GetPhyAddr(first / 8)),
        RepeatConfig(repeats, 1, 1, 1, 8, 8, 8));
  });
}

struct GatherMaskParams {
  uint8_t src0BlockStride = 1;
  uint16_t repeatTimes = 1;
  uint16_t src0RepeatStride = 8;
  uint8_t src1RepeatStride = 0;
};

// Copies chosen elements of src0 contiguously to dst. Pattern 1: even, 2: odd, 3..6: element 0..3 of each 4,
// 7: all. Every repeat takes part in full; there is no partial last one.
template <typename T>
CM384_INLINE void GatherMask(const LocalTensor<T>& dst, const LocalTensor<T>& src0, uint8_t src1Pattern,
                             bool /*reduceMode*/, uint32_t /*mask*/, const GatherMaskParams& p,
                             uint64_t& rsvdCnt) {
  cm384::pipe_instruction<CM384_CLASS_REDUCE, CM384_VGATHER_MASK, kElementType<T>>(
      OffsetPair(dst.GetPhyAddr(), src0.GetPhyAddr()), src1Pattern,
      RepeatConfig(p.repeatTimes, 1, p.src0BlockStride, 0, 8, p.src0RepeatStride, 0));
  const uint64_t all = static_cast<uint64_t>(p.repeatTimes) * kRepeatElements<T>;
  rsvdCnt = src1Pattern <= 2 ? all / 2 : src1Pattern <= 6 ? all / 4 : all;
}
// The same, elements chosen by packed bits. How many there are is not reported: the scalar unit can count
// them.
template <typename T>
CM384_INLINE void GatherMask(const LocalTensor<T>& dst, const LocalTensor<T>& src0,
                             const LocalTensor<uint32_t>& src1Pattern, bool /*reduceMode*/, uint32_t /*mask*/,
                             const GatherMaskParams& p) {
  cm384::pipe_instruction<CM384_CLASS_REDUCE, CM384_VGATHER_MASK, kElementType<T>>(
      OffsetPair(dst.GetPhyAddr(), src0.GetPhyAddr()), OffsetPair(0, src1Pattern.GetPhyAddr()),
      RepeatConfig(p.repeatTimes, 1, p.src0BlockStride, 0, 8, p.src0RepeatStride, 0));
}

struct BrcbRepeatParams {
  uint16_t dstBlkStride = 1;
  uint16_t dstRepStride = 8;
};
// Element i of src0 fills 32 B block i of dst; 8 elements a repeat.
template <typename T>
CM384_INLINE void Brcb(const LocalTensor<T>& dst, const LocalTensor<T>& src0, uint8_t repeatTime,
                       const BrcbRepeatParams& p) {
  cm384::pipe_instruction<CM384_CLASS_REDUCE, CM384_VBRCB, kElementType<T>>(
      OffsetPair(dst.GetPhyAddr(), src0.GetPhyAddr()), 0,
      RepeatConfig(repeatTime, p.dstBlkStride, 1, 0, p.dstRepStride, 1, 0));
}
// dst[i] = the element at UBuffer offset srcOffset[i] (bytes) + srcBase.
template <typename T>
CM384_INLINE void Gather(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                         const LocalTensor<uint32_t>& srcOffset, uint32_t srcBaseAddr, uint32_t count) {
  static_assert(sizeof(T) == 4);
  ForCount(count, kRepeatElements<T>, [&](uint32_t first, uint32_t repeats) {
    cm384::pipe_instruction<CM384_CLASS_REDUCE, CM384_VGATHER, kElementType<T>>(
        OffsetPair(dst.GetPhyAddr(first), srcOffset.GetPhyAddr(first)), src.GetPhyAddr() + srcBaseAddr,
        RepeatConfig(repeats, 1, 1, 0, 8, 8, 0));
  });
}

}  // namespace AscendC
