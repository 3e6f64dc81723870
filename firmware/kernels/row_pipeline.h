// Work on rows, or on chunks of them, one after another on a vector core: in by MTE2, the vector unit, out by
// MTE3, with one or two buffers each way.
#pragma once

#include "firmware/abi/rows.h"
#include "kernel_operator.h"
#include "share.h"

// Hands out the UBuffer from its start.
class Places {
 public:
  uint32_t Allocate(uint32_t bytes) {
    const uint32_t at = next_;
    next_ += (bytes + 31) / 32 * 32;
    return at;
  }

 private:
  uint32_t next_ = 0;
};

// For each item: op.Load(item, b) on MTE2, op.Compute(item, b) on V, op.Store(item, b) on MTE3, with buffer
// b. With two buffers one is used again when the pipe that reads it has finished with it. With one nothing
// overlaps: an item is loaded when the one before has left. Uses the flags 0 and 1 of V_MTE2, MTE2_V, MTE3_V
// and V_MTE3.
template <class Op>
CM384_INLINE void RunRows(Op& op, Range items, uint32_t buffers) {
  using namespace AscendC;
  if (items.size() == 0) return;
  for (uint32_t b = 0; b < buffers; ++b) {
    SetFlag<HardEvent::V_MTE2>(static_cast<int>(b));
    SetFlag<HardEvent::MTE3_V>(static_cast<int>(b));
  }
  uint32_t loaded = items.first, into = 0, b = 0;
  const auto next = [buffers](uint32_t buffer) { return buffer + 1 < buffers ? buffer + 1 : 0; };
  for (uint32_t item = items.first; item < items.last; ++item) {
    // With two buffers the copy of the next item is under way before this one is computed.
    for (; loaded < items.last && loaded < item + buffers; ++loaded, into = next(into)) {
      WaitFlag<HardEvent::V_MTE2>(static_cast<int>(into));
      if (buffers == 1 && loaded != items.first) WaitFlag<HardEvent::MTE3_MTE2>(0);
      op.Load(loaded, into);
      SetFlag<HardEvent::MTE2_V>(static_cast<int>(into));
    }
    WaitFlag<HardEvent::MTE2_V>(static_cast<int>(b));
    WaitFlag<HardEvent::MTE3_V>(static_cast<int>(b));
    op.Compute(item, b);
    SetFlag<HardEvent::V_MTE2>(static_cast<int>(b));
    SetFlag<HardEvent::V_MTE3>(static_cast<int>(b));
    WaitFlag<HardEvent::V_MTE3>(static_cast<int>(b));
    op.Store(item, b);
    SetFlag<HardEvent::MTE3_V>(static_cast<int>(b));
    if (buffers == 1 && item + 1 != items.last) SetFlag<HardEvent::MTE3_MTE2>(0);
    b = next(b);
  }
  for (uint32_t buffer = 0; buffer < buffers; ++buffer) {
    WaitFlag<HardEvent::V_MTE2>(static_cast<int>(buffer));
    WaitFlag<HardEvent::MTE3_V>(static_cast<int>(buffer));
  }
}

// Folds `count` floats, a multiple of 64, into the first 64, in place: every repeat onto the first one.
// `Operation`: CM384_VADD or CM384_VMAX. No barrier is needed before; one follows.
template <int Operation>
CM384_INLINE void Fold(const AscendC::LocalTensor<float>& values, uint32_t count) {
  AscendC::PipeBarrier<PIPE_V>();
  for (uint32_t from = 64; from < count;) {
    const uint32_t left = (count - from) / 64, now = left < 255 ? left : 255;
    AscendC::BinaryRepeat<Operation, CM384_F32, true>(values, values, values[from], uint64_t{64},
                                                      static_cast<uint8_t>(now), {1, 1, 1, 0, 0, 8});
    from += now * 64;
    AscendC::PipeBarrier<PIPE_V>();
  }
}

// A value that the vector unit has written, for the scalar unit; what V does later may use what is made of it
// after ToVector().
CM384_INLINE float FromVector(const AscendC::LocalTensor<float>& value) {
  AscendC::SetFlag<AscendC::HardEvent::V_S>(0);
  AscendC::WaitFlag<AscendC::HardEvent::V_S>(0);
  return value.GetValue(0);
}
CM384_INLINE void ToVector() {
  AscendC::SetFlag<AscendC::HardEvent::S_V>(0);
  AscendC::WaitFlag<AscendC::HardEvent::S_V>(0);
}

// Rows of bf16 between memory and the UBuffer.
CM384_INLINE void LoadBf16(uint32_t to, uint64_t from, uint64_t first, uint32_t count) {
  AscendC::DataCopy(AscendC::LocalTensor<bfloat16_t>(to, count),
                    AscendC::GlobalAt<bfloat16_t>(from + first * 2), count);
}
CM384_INLINE void StoreBf16(uint64_t to, uint64_t first, uint32_t from, uint32_t count) {
  AscendC::DataCopy(AscendC::GlobalAt<bfloat16_t>(to + first * 2),
                    AscendC::LocalTensor<bfloat16_t>(from, count), count);
}
CM384_INLINE void Widen(const AscendC::LocalTensor<float>& to, uint32_t from, uint32_t count) {
  AscendC::Cast(to, AscendC::LocalTensor<bfloat16_t>(from, count), AscendC::RoundMode::CAST_NONE, count);
}
CM384_INLINE void Narrow(uint32_t to, const AscendC::LocalTensor<float>& from, uint32_t count) {
  AscendC::Cast(AscendC::LocalTensor<bfloat16_t>(to, count), from, AscendC::RoundMode::CAST_RINT, count);
}
