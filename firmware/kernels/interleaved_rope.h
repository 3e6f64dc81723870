// Rotary position embedding of rows of 64 whose planes are neighbours. Tables: firmware/abi/tokens.h.
#pragma once

#include "firmware/abi/tokens.h"
#include "row_pipeline.h"

class InterleavedRope {
 public:
  static constexpr uint32_t kWidth = CM384_ROPE_WIDTH, kHalf = kWidth / 2;

  // For `rows` rows at a time, an even number.
  InterleavedRope(Places& places, uint32_t rows) : rows_(rows) {
    const auto allocate = [&] { return AscendC::LocalTensor<float>(places.Allocate(rows * kWidth * 4)); };
    all_ = allocate();
    first_ = allocate();
    second_ = allocate();
    turned_ = allocate();
  }

  // Rows of BF16 at `in`, turned by the cosines and sines at `angles`: first elements to `out`, the second
  // ones rows * 64 B behind.
  CM384_INLINE void Turn(uint32_t in, const AscendC::LocalTensor<float>& angles, uint32_t out) const {
    using namespace AscendC;
    const uint32_t half = rows_ * kHalf;
    const auto repeats = static_cast<uint8_t>(rows_ / 2);
    const BinaryRepeatParams each{1, 1, 1, 8, 8, 0};
    const LocalTensor<float> cosines = angles, sines = angles[kWidth];
    uint64_t kept = 0;
    PipeBarrier<PIPE_V>();
    Widen(all_, in, rows_ * kWidth);
    PipeBarrier<PIPE_V>();
    for (uint32_t from = 0; from < rows_; from += 128) {
      const auto now = static_cast<uint16_t>(rows_ - from < 128 ? rows_ - from : 128);
      GatherMask(first_[from * kHalf], all_[from * kWidth], uint8_t{1}, false, 0, {1, now, 8, 0}, kept);
      GatherMask(second_[from * kHalf], all_[from * kWidth], uint8_t{2}, false, 0, {1, now, 8, 0}, kept);
    }
    PipeBarrier<PIPE_V>();
    Mul(turned_, first_, cosines, uint64_t{64}, repeats, each);
    Mul(turned_[half], second_, cosines, uint64_t{64}, repeats, each);
    Mul(all_, second_, sines, uint64_t{64}, repeats, each);
    Mul(all_[half], first_, sines, uint64_t{64}, repeats, each);
    PipeBarrier<PIPE_V>();
    Sub(turned_, turned_, all_, static_cast<int>(half));
    Add(turned_[half], turned_[half], all_[half], static_cast<int>(half));
    PipeBarrier<PIPE_V>();
    Narrow(out, turned_, rows_ * kWidth);
  }

  // Of what Turn() left at `from`, `rows` rows to rows of 64 at `to`.
  static CM384_INLINE void Store(uint64_t to, uint32_t from, uint32_t rows, uint32_t turned) {
    using namespace AscendC;
    CopyBursts<CM384_MTE_UB_TO_GM>(to, from, kWidth, rows, kWidth, kWidth * 2);
    CopyBursts<CM384_MTE_UB_TO_GM>(to + kWidth, from + turned * kWidth, kWidth, rows, kWidth, kWidth * 2);
  }

 private:
  uint32_t rows_;
  AscendC::LocalTensor<float> all_, first_, second_, turned_;
};
