// Calls of Ascend C's library that lay data out: series, fills of memory, broadcasts, 16 x 16 transpositions.
// What they cost is what the instructions they are made of do.
#pragma once

#include "cm384/data_copy.h"
#include "cm384/elementary.h"
#include "cm384/kernel.h"

namespace AscendC {

// Orders the vector unit, and copies, with the scalar unit both ways.
CM384_INLINE void Cm384ScalarTurn() {
  PipeBarrier<PIPE_ALL>();
}
CM384_INLINE void Cm384AfterScalarTurn() {
  SetFlag<HardEvent::S_V>(EVENT_ID7);
  WaitFlag<HardEvent::S_V>(EVENT_ID7);
  SetFlag<HardEvent::S_MTE3>(EVENT_ID7);
  WaitFlag<HardEvent::S_MTE3>(EVENT_ID7);
}

// first + i * diff: a block by the scalar unit, then what is there added to itself, so that rounding follows
// the doubling.
template <typename T>
inline void ArithProgression(const LocalTensor<T>& dst, const T firstValue, const T diffValue,
                             int32_t count) {
  constexpr int32_t kBlock = static_cast<int32_t>(ONE_BLK_SIZE / sizeof(T));
  Cm384ScalarTurn();
  T value = firstValue;
  for (int32_t i = 0; i < kBlock && i < count; ++i) {
    dst.SetValue(static_cast<uint32_t>(i), value);
    value = static_cast<T>(value + diffValue);
  }
  Cm384AfterScalarTurn();
  for (int32_t filled = kBlock; filled < count; filled *= 2) {
    const int32_t now = count - filled < filled ? count - filled : filled;
    Adds(dst[static_cast<uint32_t>(filled)], dst, static_cast<T>(static_cast<T>(filled) * diffValue), now);
    PipeBarrier<PIPE_V>();
  }
}

// `size` elements of memory become `value`: the caller's own, through the UBuffer behind the kernel's
// buffers.
template <typename T>
inline void InitGlobalMemory(const GlobalTensor<T>& gm, const uint64_t size, const T value) {
  const LocalTensor<uint8_t> room = Cm384Scratch(LocalTensor<uint8_t>(), 256);
  const uint32_t most = (room.GetSize() < 16384 ? room.GetSize() : 16384) / 256 * 256 / sizeof(T);
  const LocalTensor<T> filled = room.template ReinterpretCast<T>();
  PipeBarrier<PIPE_ALL>();
  Duplicate(filled, value, static_cast<int32_t>(size < most ? (size + 31) / 32 * 32 : most));
  SetFlag<HardEvent::V_MTE3>(EVENT_ID7);
  WaitFlag<HardEvent::V_MTE3>(EVENT_ID7);
  for (uint64_t first = 0; first < size; first += most) {
    const uint64_t now = size - first < most ? size - first : most;
    DataCopyPad(gm[first], filled, DataCopyExtParams{1, static_cast<uint32_t>(now * sizeof(T)), 0, 0, 0});
  }
  PipeBarrier<PIPE_ALL>();
}
template <typename T>
CM384_INLINE void InitOutput(GlobalTensor<T> gm, uint64_t size, T value = T(0)) {
  InitGlobalMemory(gm, size, value);
}
template <typename T>
CM384_INLINE void Fill(const GlobalTensor<T>& gm, const uint64_t size, const T value) {
  InitGlobalMemory(gm, size, value);
}

// Along the axis in which the source has length 1, of one or two.
template <typename T, int32_t dim, int32_t axis, bool isReuseSource = false>
inline void BroadCast(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint32_t dstShape[dim],
                      const uint32_t srcShape[dim]) {
  static_assert(dim == 1 || dim == 2, "BroadCast: of one or two dimensions: docs/ascend-c.md");
  static_assert(axis >= 0 && axis < dim);
  const uint32_t rows = dim == 1 ? 1 : dstShape[0], columns = dstShape[dim - 1];
  const bool by_row = dim == 2 && axis == 0;
  if constexpr (sizeof(T) == 1) {  // the vector unit has no bytes
    const bool same = by_row ? srcShape[0] != 1 : srcShape[dim - 1] != 1;
    Cm384ScalarTurn();
    for (uint32_t n = 0; n < rows * columns; ++n)
      dst.SetValue(n, src.GetValue(same ? n : by_row ? n % columns : n / columns));
    return Cm384AfterScalarTurn();
  } else {
    if (by_row ? srcShape[0] != 1 : srcShape[dim - 1] != 1) {
      const uint32_t all = rows * columns;
      Adds(dst, src, T(0), static_cast<int32_t>(all));
      return PipeBarrier<PIPE_V>();
    }
    const bool whole_blocks = columns * sizeof(T) % ONE_BLK_SIZE == 0;
    if (by_row && whole_blocks) {
      for (uint32_t row = 0; row < rows; ++row) DataCopy(dst[row * columns], src, columns);
      return PipeBarrier<PIPE_V>();
    }
    Cm384ScalarTurn();
    for (uint32_t row = 0; row < rows; ++row) {
      if (!by_row && whole_blocks) {
        Duplicate(dst[row * columns], src.GetValue(row), static_cast<int32_t>(columns));
        continue;
      }
      for (uint32_t n = 0; n < columns; ++n) dst.SetValue(row * columns + n, src.GetValue(by_row ? n : row));
    }
    Cm384AfterScalarTurn();
    PipeBarrier<PIPE_V>();
  }
}
template <typename T, int32_t dim, int32_t axis, bool isReuseSource = false>
CM384_INLINE void BroadCast(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                            const uint32_t dstShape[dim], const uint32_t srcShape[dim],
                            const LocalTensor<uint8_t>&) {
  BroadCast<T, dim, axis, isReuseSource>(dst, src, dstShape, srcShape);
}
template <typename T, int32_t dim, int32_t axis, bool isReuseSource = false, typename... Tmp>
CM384_INLINE void Broadcast(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                            const uint32_t dstShape[dim], const uint32_t srcShape[dim], const Tmp&... tmp) {
  BroadCast<T, dim, axis, isReuseSource>(dst, src, dstShape, srcShape, tmp...);
}

struct TransDataTo5HDParams {
  CM384_INLINE constexpr TransDataTo5HDParams() {}
  CM384_INLINE constexpr TransDataTo5HDParams(bool dstHigh, bool srcHigh, uint8_t repeats, uint16_t dstStride,
                                              uint16_t srcStride)
      : dstHighHalf(dstHigh),
        srcHighHalf(srcHigh),
        repeatTimes(repeats),
        dstRepStride(dstStride),
        srcRepStride(srcStride) {}
  bool dstHighHalf = false;
  bool srcHighHalf = false;
  uint8_t repeatTimes = 1;
  uint16_t dstRepStride = 0;  // 32 B
  uint16_t srcRepStride = 0;
};
// 16 blocks become 16 blocks. 2 B: block k has element k of each source. 4 B: blocks 2k and 2k + 1 have it. 1
// B: 16 of the 32 elements of a source's block, into 16 bytes of block k. The scalar unit moves them
// (assumed).
template <typename T>
inline void TransDataTo5HD(const uint64_t dstList[16], const uint64_t srcList[16],
                           const TransDataTo5HDParams& p) {
  constexpr uint32_t kBlock = ONE_BLK_SIZE / sizeof(T), kElements = sizeof(T) == 4 ? 8 : 16;
  Cm384ScalarTurn();
  for (uint32_t repeat = 0; repeat < p.repeatTimes; ++repeat) {
    const uint32_t to = repeat * p.dstRepStride * kBlock, from = repeat * p.srcRepStride * kBlock;
    T seen[16][kElements];
    for (uint32_t i = 0; i < 16; ++i) {
      const LocalTensor<T> source(static_cast<uint32_t>(srcList[i]));
      for (uint32_t k = 0; k < kElements; ++k)
        seen[i][k] = source.GetValue(from + k + (sizeof(T) == 1 && p.srcHighHalf ? 16u : 0u));
    }
    for (uint32_t k = 0; k < kElements; ++k) {
      for (uint32_t i = 0; i < 16; ++i) {
        const uint32_t block = sizeof(T) == 4 ? 2 * k + i / 8 : k;
        const uint32_t at = sizeof(T) == 4 ? i % 8 : i + (sizeof(T) == 1 && p.dstHighHalf ? 16u : 0u);
        LocalTensor<T>(static_cast<uint32_t>(dstList[block])).SetValue(to + at, seen[i][k]);
      }
    }
  }
  Cm384AfterScalarTurn();
}
template <typename T>
inline void TransDataTo5HD(const LocalTensor<T> (&dstList)[16], const LocalTensor<T> (&srcList)[16],
                           const TransDataTo5HDParams& p) {
  uint64_t to[16], from[16];
  for (uint32_t n = 0; n < 16; ++n) {
    to[n] = dstList[n].GetPhyAddr();
    from[n] = srcList[n].GetPhyAddr();
  }
  TransDataTo5HD<T>(to, from, p);
}
template <typename T>
inline void TransDataTo5HD(const LocalTensor<uint64_t>& dstList, const LocalTensor<uint64_t>& srcList,
                           const TransDataTo5HDParams& p) {
  Cm384ScalarTurn();
  uint64_t to[16], from[16];
  for (uint32_t n = 0; n < 16; ++n) {
    to[n] = dstList.GetValue(n);
    from[n] = srcList.GetValue(n);
  }
  TransDataTo5HD<T>(to, from, p);
}

}  // namespace AscendC
