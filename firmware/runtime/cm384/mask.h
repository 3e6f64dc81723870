// The vector mask and the packing of repeats and strides.
#pragma once

#include "cm384/sync.h"

namespace AscendC {

// Counter mode: a mask is the number of elements of the whole call. The machine has masks of bits alone, so
// calls in this mode are made of whole repeats and one under a mask. Each source of a kernel has its own
// mode; one that never asks for it pays nothing. `cm384 kernel build` has it, this project's kernels do
// without.
#ifdef CM384_MASK_MODES
static bool cm384_counter_mode = false;
static uint32_t cm384_counter = 0;
CM384_INLINE void SetMaskCount() {
  cm384_counter_mode = true;
}
CM384_INLINE void SetMaskNorm() {
  cm384_counter_mode = false;
}
CM384_INLINE void SetCounter(uint64_t count) {
  cm384_counter = static_cast<uint32_t>(count);
}
#else
inline constexpr bool cm384_counter_mode = false;
inline constexpr uint32_t cm384_counter = 0;
CM384_INLINE void SetCounter(uint64_t) {}
#endif
// The mask of a call that is told not to set one.
inline constexpr uint64_t MASK_PLACEHOLDER = 0;

// Bit i: element i of every repeat takes part. In counter mode: maskLow elements, also of kernels that set
// the one register without saying so.
template <typename T, MaskMode mode = MaskMode::NORMAL>
CM384_INLINE void SetVectorMask(uint64_t maskHigh, uint64_t maskLow) {
  if constexpr (mode == MaskMode::COUNTER) {
    SetCounter(maskLow);
  } else {
    SetCounter(maskLow);
    cm384::pipe_instruction<CM384_CLASS_SYNC, CM384_SET_MASK>(maskLow, maskHigh);
  }
}
// The first `count` elements of every repeat.
CM384_INLINE void SetMaskFirst(uint32_t count) {
  const uint64_t low = count >= 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
  const uint64_t high = count >= 128 ? ~uint64_t{0} : count > 64 ? (uint64_t{1} << (count - 64)) - 1 : 0;
  cm384::pipe_instruction<CM384_CLASS_SYNC, CM384_SET_MASK>(low, high);
}
template <typename T, MaskMode mode = MaskMode::NORMAL>
CM384_INLINE void SetVectorMask(int32_t count) {
  if constexpr (mode == MaskMode::COUNTER) {
    SetCounter(static_cast<uint64_t>(count));
  } else {
    Cm384Ensure(!cm384_counter_mode, "SetVectorMask: of a length in counter mode without MaskMode::COUNTER");
    SetMaskFirst(static_cast<uint32_t>(count));
  }
}
CM384_INLINE void ResetMask() {
  cm384::pipe_instruction<CM384_CLASS_SYNC, CM384_SET_MASK>(~uint64_t{0}, ~uint64_t{0});
}

// A mask that is given as bits, low word first.
CM384_INLINE void SetMaskBits(const uint64_t mask[]) {
  cm384::pipe_instruction<CM384_CLASS_SYNC, CM384_SET_MASK>(mask[0], mask[1]);
}

// Strides in 32 B blocks. The fields that Ascend C reserves are there and not looked at.
struct UnaryRepeatParams {
  CM384_INLINE constexpr UnaryRepeatParams() {}
  CM384_INLINE constexpr UnaryRepeatParams(uint16_t dstBlk, uint16_t srcBlk, uint8_t dstRep, uint8_t srcRep,
                                           bool half = false)
      : dstBlkStride(dstBlk),
        srcBlkStride(srcBlk),
        dstRepStride(dstRep),
        srcRepStride(srcRep),
        halfBlock(half) {}
  uint32_t blockNumber = 8;
  uint16_t dstBlkStride = 1;
  uint16_t srcBlkStride = 1;
  uint8_t dstRepStride = 8;
  uint8_t srcRepStride = 8;
  bool repeatStrideMode = false;
  bool strideSizeMode = false;
  bool halfBlock = false;
};
struct BinaryRepeatParams {
  CM384_INLINE constexpr BinaryRepeatParams() {}
  CM384_INLINE constexpr BinaryRepeatParams(uint8_t dstBlk, uint8_t src0Blk, uint8_t src1Blk, uint8_t dstRep,
                                            uint8_t src0Rep, uint8_t src1Rep)
      : dstBlkStride(dstBlk),
        src0BlkStride(src0Blk),
        src1BlkStride(src1Blk),
        dstRepStride(dstRep),
        src0RepStride(src0Rep),
        src1RepStride(src1Rep) {}
  uint32_t blockNumber = 8;
  uint8_t dstBlkStride = 1;
  uint8_t src0BlkStride = 1;
  uint8_t src1BlkStride = 1;
  uint8_t dstRepStride = 8;
  uint8_t src0RepStride = 8;
  uint8_t src1RepStride = 8;
  bool repeatStrideMode = false;
  bool strideSizeMode = false;
};

// The instructions have 8 bits for a stride, and for how many repeats there are.
CM384_INLINE constexpr uint32_t FitsInstruction(uint32_t strides) {
#ifdef CM384_MASK_MODES
  if (strides > 0xff) Abort("more than 255 repeats, or a stride above 255 blocks: docs/ascend-c.md");
#endif
  return strides;
}
// rs3 of vector, reduce and convert instructions.
CM384_INLINE constexpr uint64_t RepeatConfig(uint32_t repeats, uint32_t dst_block, uint32_t src0_block,
                                             uint32_t src1_block, uint32_t dst_repeat, uint32_t src0_repeat,
                                             uint32_t src1_repeat) {
  FitsInstruction(repeats | dst_block | src0_block | src1_block);
  if (repeats > 1) FitsInstruction(dst_repeat | src0_repeat | src1_repeat);
  return static_cast<uint64_t>(repeats & 0xff) | static_cast<uint64_t>(dst_block & 0xff) << 8 |
         static_cast<uint64_t>(src0_block & 0xff) << 16 | static_cast<uint64_t>(src1_block & 0xff) << 24 |
         static_cast<uint64_t>(dst_repeat & 0xff) << 32 | static_cast<uint64_t>(src0_repeat & 0xff) << 40 |
         static_cast<uint64_t>(src1_repeat & 0xff) << 48;
}
// rs1 of the same.
CM384_INLINE constexpr uint64_t OffsetPair(uint64_t destination, uint64_t source0) {
  return destination | source0 << 32;
}

// Calls emit(first element, repeats) for whole repeats of `per_repeat` elements, at most 255 a call, then,
// under a mask, for the rest. Leaves the mask all ones.
template <typename Emit>
CM384_INLINE void ForCount(uint32_t count, uint32_t per_repeat, Emit emit) {
  uint32_t first = 0;
  uint32_t repeats = count / per_repeat;
  while (repeats > 0) {
    const uint32_t now = repeats < MAX_REPEAT_TIMES ? repeats : MAX_REPEAT_TIMES;
    emit(first, now);
    first += now * per_repeat;
    repeats -= now;
  }
  if (first < count) {
    SetMaskFirst(count - first);
    emit(first, 1);
    ResetMask();
  }
}

// Whether a call may set its mask and no more: what this project's kernels are measured with.
#ifdef CM384_MASK_MODES
inline constexpr bool kMaskModes = true;
#else
inline constexpr bool kMaskModes = false;
#endif
template <bool isSetMask, typename Mask>
inline constexpr bool kPlainMask = isSetMask && !kMaskModes && is_same_v<Mask, uint64_t>;

// emit(first repeat, repeats) under a mask of the first `mask` elements of each repeat of `per_repeat`; in
// counter mode of `mask` elements in all. isSetMask false: under the mask that is set.
template <bool isSetMask, typename Emit>
CM384_INLINE void ForMask(uint64_t mask, uint32_t repeats, uint32_t per_repeat, Emit emit) {
  if (cm384_counter_mode) {
    return ForCount(isSetMask ? static_cast<uint32_t>(mask) : cm384_counter, per_repeat,
                    [&](uint32_t first, uint32_t now) { emit(first / per_repeat, now); });
  }
  const bool masked = isSetMask && mask < per_repeat;
  Cm384Ensure(!isSetMask || mask <= per_repeat, "a mask of more elements than a repeat has");
  if (masked) SetMaskFirst(static_cast<uint32_t>(mask));
  emit(0, repeats);
  if (masked) ResetMask();
}
// The same under a mask of bits.
template <bool isSetMask, typename Emit>
CM384_INLINE void ForMask(const uint64_t mask[], uint32_t repeats, uint32_t per_repeat, Emit emit) {
  if (!isSetMask || cm384_counter_mode) return ForMask<isSetMask>(mask[0], repeats, per_repeat, emit);
  SetMaskBits(mask);
  emit(0, repeats);
  ResetMask();
}
// Either form of a mask.
template <typename Mask>
concept MaskForm = ConvertsTo<Mask, uint64_t> || ConvertsTo<Mask, const uint64_t*>;

}  // namespace AscendC
