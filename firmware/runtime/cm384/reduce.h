// Reductions (pipe V), built from the unit's one-result-a-repeat instructions as on the part.
#pragma once

#include "cm384/system.h"
#include "cm384/vector.h"

namespace AscendC {

template <int Operation, typename T>
CM384_INLINE void ReduceRepeats(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint64_t mode,
                                uint32_t repeats, uint32_t dst_repeat, uint32_t src_block,
                                uint32_t src_repeat) {
  cm384::pipe_instruction<CM384_CLASS_REDUCE, Operation, kElementType<T>>(
      OffsetPair(dst.GetPhyAddr(), src.GetPhyAddr()), mode,
      RepeatConfig(repeats, 1, src_block, 0, dst_repeat, src_repeat, 0));
}
template <int Operation, typename T>
CM384_INLINE void WholeReduce(const LocalTensor<T>& dst, const LocalTensor<T>& src, int32_t mask,
                              int32_t repeatTime, int32_t dstRepStride, int32_t srcBlkStride,
                              int32_t srcRepStride, uint64_t mode = 0) {
  const bool masked = static_cast<uint32_t>(mask) < kRepeatElements<T>;
  if (masked) SetMaskCount(static_cast<uint32_t>(mask));
  ReduceRepeats<Operation>(dst, src, mode, repeatTime, dstRepStride, srcBlkStride, srcRepStride);
  if (masked) ResetMask();
}

// One result a repeat over its first `mask` elements. dstRepStride counts elements, the source's 32 B blocks.
template <typename T>
CM384_INLINE void WholeReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, int32_t mask,
                                 int32_t repeatTime, int32_t dstRepStride, int32_t srcBlkStride,
                                 int32_t srcRepStride) {
  WholeReduce<CM384_VCADD>(dst, src, mask, repeatTime, dstRepStride, srcBlkStride, srcRepStride);
}
template <typename T>
CM384_INLINE void WholeReduceMax(const LocalTensor<T>& dst, const LocalTensor<T>& src, int32_t mask,
                                 int32_t repeatTime, int32_t dstRepStride, int32_t srcBlkStride,
                                 int32_t srcRepStride, ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX) {
  WholeReduce<CM384_VCMAX>(dst, src, mask, repeatTime, dstRepStride, srcBlkStride, srcRepStride,
                           order == ReduceOrder::ORDER_VALUE_INDEX);
}
template <typename T>
CM384_INLINE void WholeReduceMin(const LocalTensor<T>& dst, const LocalTensor<T>& src, int32_t mask,
                                 int32_t repeatTime, int32_t dstRepStride, int32_t srcBlkStride,
                                 int32_t srcRepStride, ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX) {
  WholeReduce<CM384_VCMIN>(dst, src, mask, repeatTime, dstRepStride, srcBlkStride, srcRepStride,
                           order == ReduceOrder::ORDER_VALUE_INDEX);
}
// One result a 32 B block, contiguous.
template <typename T>
CM384_INLINE void BlockReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, int32_t repeatTime,
                                 int32_t mask, int32_t dstRepStride, int32_t srcBlkStride,
                                 int32_t srcRepStride) {
  WholeReduce<CM384_VCGADD>(dst, src, mask, repeatTime, dstRepStride, srcBlkStride, srcRepStride);
}
template <typename T>
CM384_INLINE void BlockReduceMax(const LocalTensor<T>& dst, const LocalTensor<T>& src, int32_t repeatTime,
                                 int32_t mask, int32_t dstRepStride, int32_t srcBlkStride,
                                 int32_t srcRepStride) {
  WholeReduce<CM384_VCGMAX>(dst, src, mask, repeatTime, dstRepStride, srcBlkStride, srcRepStride);
}

// Reduces `count` elements to dst[0], in levels: each turns the repeats of the one before into single
// elements in `work`, which holds align8(count / elements a repeat) elements. dst may be work. No barrier is
// needed before; the result is there after one.
template <int Operation, typename T>
CM384_INLINE void ReduceLevels(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                               const LocalTensor<T>& work, uint32_t count) {
  LocalTensor<T> from = src;
  while (count > kRepeatElements<T>) {
    ForCount(count, kRepeatElements<T>, [&](uint32_t first, uint32_t repeats) {
      ReduceRepeats<Operation>(work[first / kRepeatElements<T>], from[first], 0, repeats, 1, 1, 8);
    });
    PipeBarrier<PIPE_V>();
    count = (count + kRepeatElements<T> - 1) / kRepeatElements<T>;
    from = work;
  }
  const bool masked = count < kRepeatElements<T>;
  if (masked) SetMaskCount(count);
  ReduceRepeats<Operation>(dst, from, 0, 1, 1, 1, 8);
  if (masked) ResetMask();
}
template <typename T>
CM384_INLINE void ReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>& work,
                            int32_t count) {
  ReduceLevels<CM384_VCADD>(dst, src, work, static_cast<uint32_t>(count));
}
// Over the first `mask` elements of each repeat: a tree within a repeat, then a tree over the repeats.
template <typename T>
CM384_INLINE void ReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>& work,
                            int32_t mask, int32_t repeatTime, int32_t srcRepStride) {
  WholeReduceSum(work, src, mask, repeatTime, 1, 1, srcRepStride);
  PipeBarrier<PIPE_V>();
  ReduceSum(dst, work, work, repeatTime);
}
// A row each of `outter`, `inner` elements from one to the next (a multiple of 32 B), sums its first n.
struct SumParams {
  uint32_t outter = 1;
  uint32_t inner = 0;
  uint32_t n = 0;
};
template <typename T>
CM384_INLINE void Sum(const LocalTensor<T>& dst, const LocalTensor<T>& src, const SumParams& p) {
  if (p.n > kRepeatElements<T>) Abort("Sum: rows of more than 256 B: docs/ascend-c.md");
  WholeReduceSum(dst, src, static_cast<int32_t>(p.n), static_cast<int32_t>(p.outter), 1, 1,
                 static_cast<int32_t>(p.inner * sizeof(T) / ONE_BLK_SIZE));
}
template <typename T>
CM384_INLINE void ReduceMax(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>& work,
                            int32_t count) {
  ReduceLevels<CM384_VCMAX>(dst, src, work, static_cast<uint32_t>(count));
}
template <typename T>
CM384_INLINE void ReduceMin(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>& work,
                            int32_t count) {
  ReduceLevels<CM384_VCMIN>(dst, src, work, static_cast<uint32_t>(count));
}

}  // namespace AscendC
