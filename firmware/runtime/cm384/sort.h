// Sorting (pipe V): structures of 8 B {value, index}, largest value first.
#pragma once

#include "cm384/select.h"

namespace AscendC {

// Elements of T that a structure takes.
template <typename T>
inline constexpr uint32_t kStructure = 8 / sizeof(T);
#define CM384_SORT_TYPES(Name) \
  static_assert(is_same_v<T, float> || is_same_v<T, half>, #Name ": for float and half: docs/ascend-c.md")

// Each 32 elements by themselves.
template <typename T>
CM384_INLINE void Sort32(const LocalTensor<T>& dst, const LocalTensor<T>& score,
                         const LocalTensor<uint32_t>& index, int32_t repeatTime) {
  CM384_SORT_TYPES(Sort32);
  cm384::pipe_instruction<CM384_CLASS_REDUCE, CM384_VSORT32, kElementType<T>>(
      OffsetPair(dst.GetPhyAddr(), score.GetPhyAddr()), index.GetPhyAddr(),
      RepeatConfig(static_cast<uint32_t>(repeatTime), 1, 1, 1, 8, 8, 8));
}

template <typename T>
struct MrgSortSrcList {
  LocalTensor<T> src1, src2, src3, src4;
};
struct MrgSort4Info {
  CM384_INLINE MrgSort4Info() {}
  CM384_INLINE MrgSort4Info(const uint16_t lengths[4], bool suspension, uint16_t valid, uint16_t repeats)
      : ifExhaustedSuspension(suspension), validBit(valid), repeatTimes(repeats) {
    for (int list = 0; list < 4; ++list) elementLengths[list] = lengths[list];
  }
  uint16_t elementLengths[4] = {};
  bool ifExhaustedSuspension = false;
  uint16_t validBit = 0xf;
  uint16_t repeatTimes = 1;
};
// Up to four sorted lists to one; of equals those of the earlier list come first. `stops`: 0, or
// CM384_MERGE_STOPS.
template <typename T>
CM384_INLINE void MergeLists(const LocalTensor<T>& dst, const MrgSortSrcList<T>& from,
                             const uint16_t lengths[4], uint16_t valid, uint64_t stops = 0) {
  const auto length = [&](uint32_t list) {
    return (valid >> list & 1) != 0 ? static_cast<uint64_t>(lengths[list]) << 12 * list : 0;
  };
  cm384::pipe_instruction<CM384_CLASS_REDUCE, CM384_VMERGE, kElementType<T>>(
      OffsetPair(dst.GetPhyAddr(), from.src1.GetPhyAddr()),
      from.src2.GetPhyAddr() | from.src3.GetPhyAddr() << 20 | from.src4.GetPhyAddr() << 40,
      length(0) | length(1) | length(2) | length(3) | stops);
}
// How much the last merge with suspension has taken of each list; a flag from V to S comes before.
CM384_INLINE void GetMrgSortResult(uint16_t& mrgSortList1, uint16_t& mrgSortList2, uint16_t& mrgSortList3,
                                   uint16_t& mrgSortList4) {
  const uint64_t taken = cm384::read_csr<CM384_CSR_MERGED>();
  mrgSortList1 = static_cast<uint16_t>(taken);
  mrgSortList2 = static_cast<uint16_t>(taken >> 16);
  mrgSortList3 = static_cast<uint16_t>(taken >> 32);
  mrgSortList4 = static_cast<uint16_t>(taken >> 48);
}
template <typename T>
CM384_INLINE void MrgSort(const LocalTensor<T>& dst, const MrgSortSrcList<T>& from,
                          const MrgSort4Info& info) {
  CM384_SORT_TYPES(MrgSort);
  if (info.repeatTimes > 1) Abort("MrgSort: repeats are not modelled: docs/ascend-c.md");
  MergeLists(dst, from, info.elementLengths, info.validBit,
             info.ifExhaustedSuspension ? CM384_MERGE_STOPS : 0);
}
// With suspension the scalar unit waits for all pipes, for what `sortedNum` then says.
template <typename T, bool isExhaustedSuspension = false>
CM384_INLINE void MrgSort(const LocalTensor<T>& dst, const MrgSortSrcList<T>& from,
                          const uint16_t elementCountList[4], uint32_t sortedNum[4], uint16_t validBit,
                          int32_t repeatTime) {
  CM384_SORT_TYPES(MrgSort);
  if (repeatTime > 1) Abort("MrgSort: repeats are not modelled: docs/ascend-c.md");
  MergeLists(dst, from, elementCountList, validBit, isExhaustedSuspension ? CM384_MERGE_STOPS : 0);
  uint16_t taken[4];
  if constexpr (isExhaustedSuspension) {
    PipeBarrier<PIPE_ALL>();
    GetMrgSortResult(taken[0], taken[1], taken[2], taken[3]);
  }
  for (uint32_t list = 0; list < 4; ++list)
    sortedNum[list] = isExhaustedSuspension         ? taken[list]
                      : (validBit >> list & 1) != 0 ? elementCountList[list]
                                                    : 0;
}

// On this part sorting takes the scores as they are.
template <typename T>
CM384_INLINE void Concat(LocalTensor<T>& concat, const LocalTensor<T>& src, const LocalTensor<T>&,
                         int32_t /*repeatTime*/) {
  concat = src;
}
// 32 elements a repeat; sorts each 32, or all.
template <typename T, bool isFullSort>
inline void Sort(const LocalTensor<T>& dst, const LocalTensor<T>& concat, const LocalTensor<uint32_t>& index,
                 const LocalTensor<T>& tmp, int32_t repeatTime) {
  CM384_SORT_TYPES(Sort);
  const auto all = static_cast<uint32_t>(repeatTime) * 32;
  if (isFullSort && all / 4 > 4095) Abort("Sort: lists of more than 4,095 elements: docs/ascend-c.md");
  LocalTensor<T> from = dst, to = tmp;
  // An odd number of merges begins in the other tensor.
  if constexpr (isFullSort) {
    for (uint32_t sorted = 32; sorted < all; sorted *= 4) {
      LocalTensor<T> other = from;
      from = to;
      to = other;
    }
  }
  Sort32(from, concat, index, repeatTime);
  if constexpr (!isFullSort) return;
  for (uint32_t sorted = 32; sorted < all; sorted *= 4) {
    PipeBarrier<PIPE_V>();
    for (uint32_t first = 0; first < all; first += 4 * sorted) {
      uint16_t lengths[4];
      for (uint32_t list = 0; list < 4; ++list) {
        const uint32_t begin = first + list * sorted, rest = begin < all ? all - begin : 0;
        lengths[list] = static_cast<uint16_t>(rest < sorted ? rest : sorted);
      }
      const auto at = [&](uint32_t list) { return from[(first + list * sorted) * kStructure<T>]; };
      MergeLists(to[first * kStructure<T>], MrgSortSrcList<T>{at(0), at(1), at(2), at(3)}, lengths, 15);
    }
    LocalTensor<T> other = from;
    from = to;
    to = other;
  }
}
// Values and indices of 32 structures a repeat.
template <typename T>
CM384_INLINE void Extract(const LocalTensor<T>& dstValue, const LocalTensor<uint32_t>& dstIndex,
                          const LocalTensor<T>& sorted, int32_t repeatTime) {
  CM384_SORT_TYPES(Extract);
  const auto pairs = static_cast<uint32_t>(repeatTime) * 32;
  uint64_t kept = 0;
  // Values: words 0, 2, ..., or elements of 2 B 0, 4, ....
  GatherMask(dstValue, sorted, static_cast<uint8_t>(sizeof(T) == 4 ? 1 : 3), true, pairs * kStructure<T>,
             GatherMaskParams{1, 1, 8, 0}, kept);
  GatherMask(dstIndex, sorted.template ReinterpretCast<uint32_t>(), uint8_t{2}, true, pairs * 2,
             GatherMaskParams{1, 1, 8, 0}, kept);
}
#undef CM384_SORT_TYPES

}  // namespace AscendC
