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
// A number goes to the mask as it is, words as a pointer.
CM384_INLINE uint64_t MaskOf(int32_t mask) {
  return static_cast<uint32_t>(mask);
}
CM384_INLINE const uint64_t* MaskOf(const uint64_t mask[]) {
  return mask;
}
// What reductions take: int32_t, or words.
CM384_INLINE int32_t AsGiven(int32_t mask) {
  return mask;
}
CM384_INLINE const uint64_t* AsGiven(const uint64_t mask[]) {
  return mask;
}
template <typename T>
concept CountOrWords = ConvertsTo<T, int32_t> || ConvertsTo<T, const uint64_t*>;

// `unit`: bytes that dstRepStride counts.
template <int Operation, bool isSetMask, typename T, typename Mask>
CM384_INLINE void WholeReduce(const LocalTensor<T>& dst, const LocalTensor<T>& src, Mask mask,
                              int32_t repeatTime, int32_t dstRepStride, int32_t srcBlkStride,
                              int32_t srcRepStride, uint32_t unit, uint64_t mode = 0) {
  if constexpr (isSetMask && !kMaskModes && is_same_v<Mask, int32_t>) {
    const bool masked = static_cast<uint32_t>(mask) < kRepeatElements<T>;
    if (masked) SetMaskFirst(static_cast<uint32_t>(mask));
    ReduceRepeats<Operation>(dst, src, mode, repeatTime, dstRepStride, srcBlkStride, srcRepStride);
    if (masked) ResetMask();
    return;
  }
  ForMask<isSetMask>(
      MaskOf(mask), static_cast<uint32_t>(repeatTime), kRepeatElements<T>, [&](uint32_t from, uint32_t now) {
        ReduceRepeats<Operation>(dst[from * static_cast<uint32_t>(dstRepStride) * unit / sizeof(T)],
                                 src[from * static_cast<uint32_t>(srcRepStride) * (ONE_BLK_SIZE / sizeof(T))],
                                 mode, now, dstRepStride, srcBlkStride, srcRepStride);
      });
}
// One result a repeat over its first `mask` elements, or those with a bit. dstRepStride counts results, the
// source's strides 32 B blocks.
template <typename T, bool isSetMask = true, CountOrWords Mask>
CM384_INLINE void WholeReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, Mask mask,
                                 int32_t repeatTime, int32_t dstRepStride, int32_t srcBlkStride,
                                 int32_t srcRepStride) {
  CM384_TYPES(WholeReduceSum, kElementType);
  WholeReduce<CM384_VCADD, isSetMask>(dst, src, AsGiven(mask), repeatTime, dstRepStride, srcBlkStride,
                                      srcRepStride, sizeof(T));
}
CM384_INLINE constexpr uint64_t FormOf(ReduceOrder order) {
  return order == ReduceOrder::ORDER_VALUE_INDEX   ? 1
         : order == ReduceOrder::ORDER_INDEX_VALUE ? 3
         : order == ReduceOrder::ORDER_ONLY_INDEX  ? 4
                                                   : 0;
}
// dstRepStride counts what the machine's instruction counts, elements, so pairs are two apart.
#define CM384_WHOLE(Name, operation)                                                                 \
  template <typename T, bool isSetMask = true, CountOrWords Mask>                                    \
  CM384_INLINE void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, Mask mask,            \
                         int32_t repeatTime, int32_t dstRepStride, int32_t srcBlkStride,             \
                         int32_t srcRepStride, ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX) { \
    CM384_TYPES(Name, kElementType);                                                                 \
    const int32_t width =                                                                            \
        order == ReduceOrder::ORDER_VALUE_INDEX || order == ReduceOrder::ORDER_INDEX_VALUE ? 2 : 1;  \
    WholeReduce<operation, isSetMask>(dst, src, AsGiven(mask), repeatTime, width * dstRepStride,     \
                                      srcBlkStride, srcRepStride, sizeof(T), FormOf(order));         \
  }
CM384_WHOLE(WholeReduceMax, CM384_VCMAX)
CM384_WHOLE(WholeReduceMin, CM384_VCMIN)
#undef CM384_WHOLE
// Without words for a mask, and with strides in another order.
template <typename T, bool isSetMask = true>
CM384_INLINE void RepeatReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, int32_t repeatTime,
                                  int32_t elemsInOneRepeat, int32_t /*dstBlkStride*/, int32_t srcBlkStride,
                                  int32_t dstRepStride, int32_t srcRepStride) {
  WholeReduceSum<T, isSetMask>(dst, src, elemsInOneRepeat, repeatTime, dstRepStride, srcBlkStride,
                               srcRepStride);
}

// One result a 32 B block, 8 a repeat; of neighbours, half as many as elements. dstRepStride counts the
// results of a repeat.
#define CM384_GROUPS(Name, operation, unit)                                                             \
  template <typename T, bool isSetMask = true, CountOrWords Mask>                                       \
  CM384_INLINE void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, int32_t repeatTime,      \
                         Mask mask, int32_t dstRepStride, int32_t srcBlkStride, int32_t srcRepStride) { \
    CM384_TYPES(Name, kElementType);                                                                    \
    WholeReduce<operation, isSetMask>(dst, src, AsGiven(mask), repeatTime, dstRepStride, srcBlkStride,  \
                                      srcRepStride, unit);                                              \
  }
CM384_GROUPS(BlockReduceSum, CM384_VCGADD, 8 * sizeof(T))
CM384_GROUPS(BlockReduceMax, CM384_VCGMAX, 8 * sizeof(T))
CM384_GROUPS(BlockReduceMin, CM384_VCGMIN, 8 * sizeof(T))
CM384_GROUPS(PairReduceSum, CM384_VCPADD, 128)
#undef CM384_GROUPS

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
  if (masked) SetMaskFirst(count);
  ReduceRepeats<Operation>(dst, from, 0, 1, 1, 1, 8);
  if (masked) ResetMask();
}
// Trees over repeats, too: what ReduceSum does with a mask, and not with a count.
template <typename T>
CM384_INLINE void TreeSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>& work,
                          int32_t count) {
  ReduceLevels<CM384_VCADD>(dst, src, work, static_cast<uint32_t>(count));
}

// `count` elements, contiguous, to one result in one instruction (firmware/abi/isa.h: `form` 1 for sums, 2
// and 5 for the others).
template <int Operation, typename T>
CM384_INLINE void ReduceCount(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint32_t form,
                              uint32_t count) {
  ReduceRepeats<Operation>(dst, src, form | count << 8, 1, 1, 1, 8);
}
// A tree within each repeat, the repeats one after another. The work tensor is not used.
template <typename T>
CM384_INLINE void ReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>&,
                            int32_t count) {
  CM384_TYPES(ReduceSum, kElementType);
  ReduceCount<CM384_VCADD>(dst, src, 1, static_cast<uint32_t>(count));
}
// Over the first `mask` elements of each repeat, or those with a bit: a tree within a repeat, then a tree
// over the repeats, by the work tensor.
template <typename T, CountOrWords Mask>
CM384_INLINE void ReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>& work,
                            Mask mask, int32_t repeatTime, int32_t srcRepStride) {
  WholeReduceSum(work, src, mask, repeatTime, 1, 1, srcRepStride);
  PipeBarrier<PIPE_V>();
  TreeSum(dst, work, work, repeatTime);
}
// Where the last largest or smallest value stands with its index: for GetReduceMaxMinCount. Each source of a
// kernel has its own.
#ifdef CM384_MASK_MODES
static uint32_t cm384_extreme = 0, cm384_extreme_bytes = 0;  // bytes of an element; 0: none, or without index
template <typename T>
CM384_INLINE void Cm384Extreme(const LocalTensor<T>& dst, bool index) {
  cm384_extreme = static_cast<uint32_t>(dst.GetPhyAddr());
  cm384_extreme_bytes = index ? sizeof(T) : 0;
}
#else
template <typename T>
CM384_INLINE void Cm384Extreme(const LocalTensor<T>&, bool) {}
#endif
// The value, or {value, index}; the lowest index of equals. The work tensor is not used.
#define CM384_EXTREME(Name, operation)                                                                 \
  template <typename T>                                                                                \
  CM384_INLINE void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>&,  \
                         int32_t count, bool calIndex = false) {                                       \
    CM384_TYPES(Name, kElementType);                                                                   \
    ReduceCount<operation>(dst, src, calIndex ? 2 : 5, static_cast<uint32_t>(count));                  \
    Cm384Extreme(dst, calIndex);                                                                       \
  }                                                                                                    \
  template <typename T, CountOrWords Mask>                                                             \
  CM384_INLINE void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>&,  \
                         Mask mask, int32_t repeatTime, int32_t srcRepStride, bool calIndex = false) { \
    CM384_TYPES(Name, kElementType);                                                                   \
    if (cm384_counter_mode) Abort(#Name ": not in counter mode: docs/ascend-c.md");                    \
    WholeReduce<operation, true>(dst, src, AsGiven(mask), repeatTime, 0, 1, srcRepStride, sizeof(T),   \
                                 calIndex ? 2 : 5);                                                    \
    Cm384Extreme(dst, calIndex);                                                                       \
  }
CM384_EXTREME(ReduceMax, CM384_VCMAX)
CM384_EXTREME(ReduceMin, CM384_VCMIN)
#undef CM384_EXTREME

// A row each of `outter`, `inner` elements from one to the next (a multiple of 32 B), sums its first n.
struct SumParams {
  uint32_t outter = 1;
  uint32_t inner = 0;
  uint32_t n = 0;
};
template <typename T, int32_t reduceDim = -1, bool isReuseSource = false, bool isBasicBlock = false>
CM384_INLINE void Sum(const LocalTensor<T>& dst, const LocalTensor<T>& src, const SumParams& p) {
  CM384_TYPES(Sum, kElementType);
  static_assert(reduceDim == -1, "Sum: along rows alone (reduceDim -1): docs/ascend-c.md");
  if (p.n > kRepeatElements<T>) {
    for (uint32_t row = 0; row < p.outter; ++row)
      ReduceCount<CM384_VCADD>(dst[row], src[row * p.inner], 1, p.n);
    return;
  }
  const uint32_t step = static_cast<uint32_t>(p.inner * sizeof(T) / ONE_BLK_SIZE);
  for (uint32_t row = 0; row < p.outter; row += MAX_REPEAT_TIMES) {
    const uint32_t rows = p.outter - row < MAX_REPEAT_TIMES ? p.outter - row : MAX_REPEAT_TIMES;
    WholeReduceSum(dst[row], src[row * p.inner], static_cast<int32_t>(p.n), static_cast<int32_t>(rows), 1, 1,
                   static_cast<int32_t>(step));
  }
}
template <typename T, int32_t reduceDim = -1, bool isReuseSource = false, bool isBasicBlock = false>
CM384_INLINE void Sum(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint8_t>&,
                      const SumParams& p) {
  Sum<T, reduceDim, isReuseSource, isBasicBlock>(dst, src, p);
}

}  // namespace AscendC
