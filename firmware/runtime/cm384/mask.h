// The vector mask and the packing of repeats and strides.
#pragma once

#include "cm384/sync.h"

namespace AscendC {

// Bit i: element i of every repeat takes part.
template <typename T, MaskMode mode = MaskMode::NORMAL>
CM384_INLINE void SetVectorMask(uint64_t maskHigh, uint64_t maskLow) {
  static_assert(mode == MaskMode::NORMAL, "there is no counter mode");
  cm384::pipe_instruction<CM384_CLASS_SYNC, CM384_SET_MASK>(maskLow, maskHigh);
}
// The first `count` elements of every repeat.
CM384_INLINE void SetMaskCount(uint32_t count) {
  const uint64_t low = count >= 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
  const uint64_t high = count >= 128 ? ~uint64_t{0} : count > 64 ? (uint64_t{1} << (count - 64)) - 1 : 0;
  cm384::pipe_instruction<CM384_CLASS_SYNC, CM384_SET_MASK>(low, high);
}
template <typename T, MaskMode mode = MaskMode::NORMAL>
CM384_INLINE void SetVectorMask(int32_t count) {
  static_assert(mode == MaskMode::NORMAL, "there is no counter mode");
  SetMaskCount(static_cast<uint32_t>(count));
}
CM384_INLINE void ResetMask() {
  cm384::pipe_instruction<CM384_CLASS_SYNC, CM384_SET_MASK>(~uint64_t{0}, ~uint64_t{0});
}

// A mask that is given as bits, low word first.
CM384_INLINE void SetMaskBits(const uint64_t mask[]) {
  cm384::pipe_instruction<CM384_CLASS_SYNC, CM384_SET_MASK>(mask[0], mask[1]);
}

// Strides in 32 B blocks.
struct UnaryRepeatParams {
  uint16_t dstBlkStride = 1;
  uint16_t srcBlkStride = 1;
  uint8_t dstRepStride = 8;
  uint8_t srcRepStride = 8;
};
struct BinaryRepeatParams {
  uint8_t dstBlkStride = 1;
  uint8_t src0BlkStride = 1;
  uint8_t src1BlkStride = 1;
  uint8_t dstRepStride = 8;
  uint8_t src0RepStride = 8;
  uint8_t src1RepStride = 8;
};

// rs3 of vector, reduce and convert instructions.
CM384_INLINE constexpr uint64_t RepeatConfig(uint32_t repeats, uint32_t dst_block, uint32_t src0_block,
                                             uint32_t src1_block, uint32_t dst_repeat, uint32_t src0_repeat,
                                             uint32_t src1_repeat) {
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
    SetMaskCount(count - first);
    emit(first, 1);
    ResetMask();
  }
}

}  // namespace AscendC
