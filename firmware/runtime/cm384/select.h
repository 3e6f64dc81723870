// Compare, select, gather, broadcast, transpose (pipe V). Masks of bits are packed, bit i for element i.
#pragma once

#include "cm384/convert.h"
#include "cm384/system.h"
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
// `operand_repeat`: 32 B blocks of source 1 from repeat to repeat.
template <int Operation, bool isSetMask, typename T, typename Mask>
CM384_INLINE void CompareRepeats(uint64_t dst, const LocalTensor<T>& src0, uint64_t operand,
                                 uint32_t operand_repeat, Mask mask, uint32_t repeats,
                                 const BinaryRepeatParams& p) {
  ForMask<isSetMask>(mask, repeats, kRepeatElements<T>, [&](uint32_t from, uint32_t now) {
    cm384::pipe_instruction<CM384_CLASS_REDUCE, Operation, kElementType<T>>(
        OffsetPair(dst + from * kRepeatElements<T> / 8,
                   src0.GetPhyAddr() + from * p.src0RepStride * ONE_BLK_SIZE),
        operand + from * operand_repeat * ONE_BLK_SIZE,
        RepeatConfig(now, 1, p.src0BlkStride, p.src1BlkStride, 8, p.src0RepStride, p.src1RepStride));
  });
}
#define CM384_MODES(CALL, PREFIX, ...)      \
  switch (mode) {                           \
    case CMPMODE::EQ:                       \
      return CALL(PREFIX##EQ, __VA_ARGS__); \
    case CMPMODE::NE:                       \
      return CALL(PREFIX##NE, __VA_ARGS__); \
    case CMPMODE::LT:                       \
      return CALL(PREFIX##LT, __VA_ARGS__); \
    case CMPMODE::LE:                       \
      return CALL(PREFIX##LE, __VA_ARGS__); \
    case CMPMODE::GT:                       \
      return CALL(PREFIX##GT, __VA_ARGS__); \
    case CMPMODE::GE:                       \
      return CALL(PREFIX##GE, __VA_ARGS__); \
  }
#define CM384_COUNT(operation, ...) CompareCount<operation>(__VA_ARGS__)
#define CM384_REPEATS(operation, ...) CompareRepeats<operation, isSetMask>(__VA_ARGS__)

// One bit an element, repeats packed one after another. The rest of a partial repeat is 0.
template <typename T, typename U>
CM384_INLINE void Compare(const LocalTensor<U>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
                          CMPMODE mode, uint32_t count) {
  CM384_TYPES(Compare, kElementType);
  const uint64_t second = src1.GetPhyAddr();
  CM384_MODES(CM384_COUNT, CM384_VCMP_, dst.template ReinterpretCast<uint8_t>(), src0, second, sizeof(T),
              count)
}
template <typename T, typename U, bool isSetMask = true, MaskForm Mask>
CM384_INLINE void Compare(const LocalTensor<U>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
                          CMPMODE mode, Mask mask, uint8_t repeatTime, const BinaryRepeatParams& p) {
  CM384_TYPES(Compare, kElementType);
  CM384_MODES(CM384_REPEATS, CM384_VCMP_, dst.GetPhyAddr(), src0, src1.GetPhyAddr(), p.src1RepStride, mask,
              repeatTime, p)
}
template <typename T, typename U, typename S>
CM384_INLINE void CompareScalar(const LocalTensor<U>& dst, const LocalTensor<T>& src0, S scalar, CMPMODE mode,
                                uint32_t count) {
  CM384_TYPES(CompareScalar, kElementType);
  const uint64_t bits = scalar_bits(static_cast<T>(scalar));
  CM384_MODES(CM384_COUNT, CM384_VCMPS_, dst.template ReinterpretCast<uint8_t>(), src0, bits, 0, count)
}
template <typename T, typename U, bool isSetMask = true, typename S, MaskForm Mask>
CM384_INLINE void CompareScalar(const LocalTensor<U>& dst, const LocalTensor<T>& src0, S scalar, CMPMODE mode,
                                Mask mask, uint8_t repeatTime, const UnaryRepeatParams& p) {
  CM384_TYPES(CompareScalar, kElementType);
  const uint64_t bits = scalar_bits(static_cast<T>(scalar));
  const BinaryRepeatParams strides{
      1, static_cast<uint8_t>(FitsInstruction(p.srcBlkStride)), 0, p.dstRepStride, p.srcRepStride, 0};
  CM384_MODES(CM384_REPEATS, CM384_VCMPS_, dst.GetPhyAddr(), src0, bits, 0, mask, repeatTime, strides)
}
#undef CM384_MODES
#undef CM384_COUNT
#undef CM384_REPEATS

// One select over repeats. Operand: source 1's offset, or the scalar's bits.
template <int Operation, typename T>
CM384_INLINE void SelectRepeats(uint64_t dst, uint64_t bits, uint64_t src0, uint64_t operand,
                                uint32_t repeats, const BinaryRepeatParams& p) {
  cm384::pipe_instruction<CM384_CLASS_REDUCE, Operation, kBitsType<T>>(
      OffsetPair(dst, src0), OffsetPair(operand, bits),
      RepeatConfig(repeats, p.dstBlkStride, p.src0BlkStride, p.src1BlkStride, p.dstRepStride, p.src0RepStride,
                   p.src1RepStride));
}
// VSEL_CMPMASK_SPR: every repeat takes the bits of the first.
template <int Operation, bool isSetMask, typename T, typename Mask>
CM384_INLINE void SelectMasked(uint64_t dst, uint64_t bits, uint64_t src0, uint64_t operand, SELMODE mode,
                               Mask mask, uint32_t repeats, const BinaryRepeatParams& p) {
  ForMask<isSetMask>(mask, repeats, kRepeatElements<T>, [&](uint32_t from, uint32_t now) {
    const bool same = mode == SELMODE::VSEL_CMPMASK_SPR;
    for (uint32_t turn = from; turn < from + now; turn += same ? 1 : now) {
      SelectRepeats<Operation, T>(
          dst + turn * p.dstRepStride * ONE_BLK_SIZE, same ? bits : bits + turn * kRepeatElements<T> / 8,
          src0 + turn * p.src0RepStride * ONE_BLK_SIZE,
          Operation == CM384_VSEL ? operand + turn * p.src1RepStride * ONE_BLK_SIZE : operand, same ? 1 : now,
          p);
    }
  });
}
template <int Operation, typename T>
CM384_INLINE void SelectCount(uint64_t dst, uint64_t bits, uint64_t src0, uint64_t operand, SELMODE mode,
                              uint32_t count) {
  if constexpr (!kMaskModes && Operation == CM384_VSEL) {
    ForCount(count, kRepeatElements<T>, [&](uint32_t first, uint32_t repeats) {
      cm384::pipe_instruction<CM384_CLASS_REDUCE, CM384_VSEL, kBitsType<T>>(
          OffsetPair(dst + first * sizeof(T), src0 + first * sizeof(T)),
          OffsetPair(operand + first * sizeof(T), bits + first / 8), RepeatConfig(repeats, 1, 1, 1, 8, 8, 8));
    });
    return;
  }
  ForCount(count, kRepeatElements<T>, [&](uint32_t first, uint32_t repeats) {
    const bool same = mode == SELMODE::VSEL_CMPMASK_SPR;
    for (uint32_t turn = 0; turn < repeats; turn += same ? 1 : repeats) {
      const uint32_t at = first + turn * kRepeatElements<T>;
      SelectRepeats<Operation, T>(dst + at * sizeof(T), same ? bits : bits + at / 8, src0 + at * sizeof(T),
                                  Operation == CM384_VSEL ? operand + at * sizeof(T) : operand,
                                  same ? 1 : repeats, {});
    }
  });
}
// dst[i] = bit i of selMask ? src0[i] : src1[i], or the scalar.
template <typename T, typename U>
CM384_INLINE void Select(const LocalTensor<T>& dst, const LocalTensor<U>& selMask, const LocalTensor<T>& src0,
                         const LocalTensor<T>& src1, SELMODE mode, uint32_t count) {
  CM384_TYPES(Select, kBitsType);
  SelectCount<CM384_VSEL, T>(dst.GetPhyAddr(), selMask.GetPhyAddr(), src0.GetPhyAddr(), src1.GetPhyAddr(),
                             mode, count);
}
template <typename T, typename U, typename S>
requires(ConvertsTo<S, T>) CM384_INLINE
    void Select(const LocalTensor<T>& dst, const LocalTensor<U>& selMask, const LocalTensor<T>& src0, S src1,
                SELMODE mode, uint32_t count) {
  CM384_TYPES(Select, kBitsType);
  SelectCount<CM384_VSELS, T>(dst.GetPhyAddr(), selMask.GetPhyAddr(), src0.GetPhyAddr(),
                              scalar_bits(static_cast<T>(src1)), mode, count);
}
template <typename T, typename U, bool isSetMask = true, MaskForm Mask>
CM384_INLINE void Select(const LocalTensor<T>& dst, const LocalTensor<U>& selMask, const LocalTensor<T>& src0,
                         const LocalTensor<T>& src1, SELMODE mode, Mask mask, uint8_t repeatTime,
                         const BinaryRepeatParams& p) {
  CM384_TYPES(Select, kBitsType);
  SelectMasked<CM384_VSEL, isSetMask, T>(dst.GetPhyAddr(), selMask.GetPhyAddr(), src0.GetPhyAddr(),
                                         src1.GetPhyAddr(), mode, mask, repeatTime, p);
}
template <typename T, typename U, bool isSetMask = true, typename S, MaskForm Mask>
requires(ConvertsTo<S, T>) CM384_INLINE
    void Select(const LocalTensor<T>& dst, const LocalTensor<U>& selMask, const LocalTensor<T>& src0, S src1,
                SELMODE mode, Mask mask, uint8_t repeatTime, const BinaryRepeatParams& p) {
  CM384_TYPES(Select, kBitsType);
  SelectMasked<CM384_VSELS, isSetMask, T>(dst.GetPhyAddr(), selMask.GetPhyAddr(), src0.GetPhyAddr(),
                                          scalar_bits(static_cast<T>(src1)), mode, mask, repeatTime, p);
}

struct GatherMaskParams {
  uint8_t src0BlockStride = 1;
  uint16_t repeatTimes = 1;
  uint16_t src0RepeatStride = 8;
  uint8_t src1RepeatStride = 0;
};
// How many elements the last GatherMask of this source has kept.
#ifdef CM384_MASK_MODES
static uint64_t cm384_remain_count = 0;
CM384_INLINE void KeepRemainCount(uint64_t count) {
  cm384_remain_count = count;
}
CM384_INLINE int64_t GetGatherMaskRemainCount() {
  return static_cast<int64_t>(cm384_remain_count);
}
#else
CM384_INLINE void KeepRemainCount(uint64_t) {}
#endif
template <typename T>
CM384_INLINE void GatherMaskRepeats(const LocalTensor<T>& dst, const LocalTensor<T>& src0, uint64_t pattern,
                                    uint64_t bits, uint32_t count, const GatherMaskParams& p) {
  cm384::pipe_instruction<CM384_CLASS_REDUCE, CM384_VGATHER_MASK, kBitsType<T>>(
      OffsetPair(dst.GetPhyAddr(), src0.GetPhyAddr()), OffsetPair(pattern | count << 8, bits),
      RepeatConfig(p.repeatTimes, 1, p.src0BlockStride, 0, 8, p.src0RepeatStride, p.src1RepeatStride));
}
// Copies chosen elements of src0 contiguously to dst. Pattern 1: even, 2: odd, 3..6: element 0..3 of each 4,
// 7: all. reduceMode false: whole repeats, `mask` is not used; true: each repeat has `mask` elements.
// rsvdCnt: how many are kept.
template <typename T>
CM384_INLINE void GatherMask(const LocalTensor<T>& dst, const LocalTensor<T>& src0, uint8_t src1Pattern,
                             bool reduceMode, uint32_t mask, const GatherMaskParams& p, uint64_t& rsvdCnt) {
  CM384_TYPES(GatherMask, kBitsType);
  if constexpr (!kMaskModes) {
    cm384::pipe_instruction<CM384_CLASS_REDUCE, CM384_VGATHER_MASK, kElementType<T>>(
        OffsetPair(dst.GetPhyAddr(), src0.GetPhyAddr()), src1Pattern,
        RepeatConfig(p.repeatTimes, 1, p.src0BlockStride, 0, 8, p.src0RepeatStride, 0));
    const uint64_t all = static_cast<uint64_t>(p.repeatTimes) * kRepeatElements<T>;
    rsvdCnt = src1Pattern <= 2 ? all / 2 : src1Pattern <= 6 ? all / 4 : all;
    return;
  }
  if (p.repeatTimes > MAX_REPEAT_TIMES || (p.repeatTimes > 1 && p.src0RepeatStride > 255))
    Abort("GatherMask: more than 255 repeats, or a stride of more: docs/ascend-c.md");
  GatherMaskRepeats(dst, src0, src1Pattern, 0, reduceMode ? mask : 0, p);
  const uint32_t n = reduceMode ? mask : kRepeatElements<T>;
  const uint32_t kept = src1Pattern <= 2   ? (n + 2 - src1Pattern) / 2
                        : src1Pattern <= 6 ? (n + 6 - src1Pattern) / 4
                                           : n;
  rsvdCnt = static_cast<uint64_t>(p.repeatTimes) * kept;
  KeepRemainCount(rsvdCnt);
}
// The same, elements chosen by packed bits, those of a repeat at multiples of src1RepeatStride.
template <typename T, typename U>
requires(sizeof(U) == sizeof(T)) CM384_INLINE
    void GatherMask(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<U>& src1Pattern,
                    bool reduceMode, uint32_t mask, const GatherMaskParams& p) {
  CM384_TYPES(GatherMask, kBitsType);
  if (p.repeatTimes > MAX_REPEAT_TIMES || (p.repeatTimes > 1 && p.src0RepeatStride > 255))
    Abort("GatherMask: more than 255 repeats, or a stride of more: docs/ascend-c.md");
  GatherMaskRepeats(dst, src0, 8, src1Pattern.GetPhyAddr(), reduceMode ? mask : 0, p);
}
// The scalar unit counts the bits, once the pipes are idle.
template <typename T, typename U>
requires(sizeof(U) == sizeof(T)) inline void GatherMask(const LocalTensor<T>& dst, const LocalTensor<T>& src0,
                                                        const LocalTensor<U>& src1Pattern, bool reduceMode,
                                                        uint32_t mask, const GatherMaskParams& p,
                                                        uint64_t& rsvdCnt) {
  GatherMask(dst, src0, src1Pattern, reduceMode, mask, p);
  PipeBarrier<PIPE_ALL>();
  const uint32_t n = reduceMode ? mask : kRepeatElements<T>;
  const auto bytes = src1Pattern.template ReinterpretCast<uint8_t>();
  uint64_t kept = 0;
  for (uint32_t repeat = 0; repeat < p.repeatTimes; ++repeat) {
    const uint32_t first = repeat * p.src1RepeatStride * ONE_BLK_SIZE;
    for (uint32_t at = 0; at < n; at += 8) {
      uint32_t bits = bytes.GetValue(first + at / 8);
      if (n - at < 8) bits &= (1u << (n - at)) - 1;
      for (; bits != 0; bits &= bits - 1) ++kept;
    }
  }
  rsvdCnt = kept;
  KeepRemainCount(rsvdCnt);
}

struct BrcbRepeatParams {
  uint16_t dstBlkStride = 1;
  uint16_t dstRepStride = 8;
};
// Element i of src0 fills 32 B block i of dst; 8 elements a repeat.
template <typename T>
CM384_INLINE void Brcb(const LocalTensor<T>& dst, const LocalTensor<T>& src0, uint8_t repeatTime,
                       const BrcbRepeatParams& p) {
  CM384_TYPES(Brcb, kBitsType);
  cm384::pipe_instruction<CM384_CLASS_REDUCE, CM384_VBRCB, kBitsType<T>>(
      OffsetPair(dst.GetPhyAddr(), src0.GetPhyAddr()), 0,
      RepeatConfig(repeatTime, p.dstBlkStride, 1, 0, p.dstRepStride, 1, 0));
}
// dst[i] = the element at UBuffer offset srcOffset[i] (bytes) + srcBase.
template <typename T>
CM384_INLINE void Gather(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                         const LocalTensor<uint32_t>& srcOffset, uint32_t srcBaseAddr, uint32_t count) {
  CM384_TYPES(Gather, kBitsType);
  ForCount(count, kRepeatElements<T>, [&](uint32_t first, uint32_t repeats) {
    cm384::pipe_instruction<CM384_CLASS_REDUCE, CM384_VGATHER, kBitsType<T>>(
        OffsetPair(dst.GetPhyAddr(first), srcOffset.GetPhyAddr(first)), src.GetPhyAddr() + srcBaseAddr,
        RepeatConfig(repeats, 1, 1, 0, 8, kRepeatElements<T> / 8, 0));
  });
}
// Offsets are contiguous over repeats (assumed).
template <typename T, bool isSetMask = true, MaskForm Mask>
CM384_INLINE void Gather(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                         const LocalTensor<uint32_t>& srcOffset, uint32_t srcBaseAddr, Mask mask,
                         uint8_t repeatTime, uint16_t dstRepStride) {
  CM384_TYPES(Gather, kBitsType);
  ForMask<isSetMask>(mask, repeatTime, kRepeatElements<T>, [&](uint32_t from, uint32_t now) {
    cm384::pipe_instruction<CM384_CLASS_REDUCE, CM384_VGATHER, kBitsType<T>>(
        OffsetPair(dst.GetPhyAddr() + from * dstRepStride * ONE_BLK_SIZE,
                   srcOffset.GetPhyAddr(from * kRepeatElements<T>)),
        src.GetPhyAddr() + srcBaseAddr, RepeatConfig(now, 1, 1, 0, dstRepStride, kRepeatElements<T> / 8, 0));
  });
}
// Blocks of 32 B from offsets (bytes) of source 0, 8 a repeat: each is a copy of its own, whose offset the
// scalar unit reads (assumed).
struct GatherRepeatParams {
  CM384_INLINE constexpr GatherRepeatParams() {}
  CM384_INLINE constexpr GatherRepeatParams(uint8_t dstBlk, uint8_t dstRep)
      : dstBlkStride(dstBlk), dstRepStride(dstRep) {}
  uint32_t blockNumber = 8;
  uint16_t dstBlkStride = 1;
  uint8_t dstRepStride = 8;
  bool repeatStrideMode = false;
  bool strideSizeMode = false;
};
template <typename T>
inline void Gatherb(const LocalTensor<T>& dst, const LocalTensor<T>& src0,
                    const LocalTensor<uint32_t>& offset, uint8_t repeatTime, const GatherRepeatParams& p) {
  CM384_TYPES(Gatherb, kBitsType);
  PipeBarrier<PIPE_ALL>();
  SetMaskFirst(ONE_BLK_SIZE / sizeof(T));
  for (uint32_t block = 0; block < repeatTime * 8u; ++block) {
    const uint32_t to = (block / 8 * p.dstRepStride + block % 8 * p.dstBlkStride) * ONE_BLK_SIZE;
    cm384::pipe_instruction<CM384_CLASS_VECTOR, CM384_VCOPY, kBitsType<T>>(
        OffsetPair(dst.GetPhyAddr() + to, src0.GetPhyAddr() + offset.GetValue(block)), 0,
        RepeatConfig(1, 1, 1, 0, 8, 8, 0));
  }
  ResetMask();
}
// 16 x 16 elements of 2 B.
template <typename T>
CM384_INLINE void Transpose(const LocalTensor<T>& dst, const LocalTensor<T>& src) {
  static_assert(sizeof(T) == 2, "Transpose: 16 x 16 elements of 2 B: docs/ascend-c.md");
  cm384::pipe_instruction<CM384_CLASS_REDUCE, CM384_VTRANSPOSE, CM384_S16>(
      OffsetPair(dst.GetPhyAddr(), src.GetPhyAddr()), 0, RepeatConfig(1, 1, 1, 0, 8, 8, 0));
}

}  // namespace AscendC
