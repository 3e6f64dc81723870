// What the kernels of collectives share: slices of a range, and a copy from GM to GM by way of the UBuffer.
#pragma once

#include "row_pipeline.h"

struct Bytes {
  uint64_t first, last;
};

// Share `index` of `count` of a range, in whole requests of memory.
inline Bytes Slice(Bytes of, uint32_t count, uint32_t index) {
  const Range lines = Share(static_cast<uint32_t>((of.last - of.first + 511) / 512), count, index);
  const uint64_t first = of.first + lines.first * 512ull, last = of.first + lines.last * 512ull;
  return {first < of.last ? first : of.last, last < of.last ? last : of.last};
}

// Bytes `part` of `from` to the same of `to`, in chunks by two buffers, which lie one after another at
// `buffers`, which like `chunk` is read at each use. Uses the flags 0 and 1 of MTE3_MTE2 and MTE2_MTE3.
inline void CopyChunks(uint64_t to, uint64_t from, Bytes part, const uint32_t& buffers,
                       const uint32_t& chunk) {
  using namespace AscendC;
  for (int b = 0; b < 2; ++b) SetFlag<HardEvent::MTE3_MTE2>(b);
  int b = 0;
  for (uint64_t at = part.first; at < part.last; at += chunk, b ^= 1) {
    const uint64_t left = part.last - at, bytes = left < chunk ? left : chunk;
    const uint32_t buffer = buffers + static_cast<uint32_t>(b) * chunk;
    WaitFlag<HardEvent::MTE3_MTE2>(b);
    CopyBursts<CM384_MTE_GM_TO_UB>(buffer, from + at, bytes);
    SetFlag<HardEvent::MTE2_MTE3>(b);
    WaitFlag<HardEvent::MTE2_MTE3>(b);
    CopyBursts<CM384_MTE_UB_TO_GM>(to + at, buffer, bytes);
    SetFlag<HardEvent::MTE3_MTE2>(b);
  }
  for (b = 0; b < 2; ++b) WaitFlag<HardEvent::MTE3_MTE2>(b);
}
