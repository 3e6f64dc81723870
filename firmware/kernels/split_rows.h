// Rows of INT8 to two rows of 4 bits each on a vector core: the upper halves of the bytes, and the lower ones
// less 8, so that both are -8..7 and x = 16 * upper + lower + 8. By shifts of 16-bit words, which have two
// elements; the casts to halves of bytes that the part has go by way of half and are no shorter.
#pragma once

#include "kernel_operator.h"
#include "share.h"

class SplitRows {
 public:
  // `from`: rows of `width` bytes, a multiple of 64. `to`: two rows of width / 2 bytes for each.
  SplitRows(uint64_t from, uint64_t to, uint32_t width) : from_(from), to_(to), width_(width) {
    uint32_t next = 0;
    const auto allocate = [&next](uint32_t bytes) {
      const uint32_t at = next;
      next += (bytes + 31) / 32 * 32;
      return at;
    };
    for (uint32_t b = 0; b < 2; ++b) {
      in_[b] = allocate(width);
      out_[b] = allocate(width);
    }
    first_ = allocate(width);
    second_ = allocate(width);
  }

  void Run(Range rows) {
    using namespace AscendC;
    for (int b = 0; b < 2; ++b) {
      SetFlag<HardEvent::V_MTE2>(b);
      SetFlag<HardEvent::MTE3_V>(b);
    }
    for (uint32_t row = rows.first; row < rows.last; ++row) One(row, static_cast<int>(row & 1));
    for (int b = 0; b < 2; ++b) {
      WaitFlag<HardEvent::V_MTE2>(b);
      WaitFlag<HardEvent::MTE3_V>(b);
    }
  }

 private:
  using Words = AscendC::LocalTensor<uint16_t>;

  void One(uint32_t row, int b) {
    using namespace AscendC;
    const Words in(in_[b], width_ / 2), first(first_, width_ / 2), second(second_, width_ / 2);
    const auto words = static_cast<int32_t>(width_ / 2);
    WaitFlag<HardEvent::V_MTE2>(b);
    DataCopy(LocalTensor<int8_t>(in_[b], width_),
             GlobalAt<int8_t>(from_ + static_cast<uint64_t>(row) * width_), width_);
    SetFlag<HardEvent::MTE2_V>(b);
    WaitFlag<HardEvent::MTE2_V>(b);
    WaitFlag<HardEvent::MTE3_V>(b);
    PipeBarrier<PIPE_V>();
    // Upper halves: bits 7:4 and 15:12 of a word, as 3:0 and 7:4.
    ShiftLeft(first, in, uint16_t{8}, words);
    ShiftRight(second, in, uint16_t{12}, words);
    PipeBarrier<PIPE_V>();
    ShiftRight(first, first, uint16_t{12}, words);
    ShiftLeft(second, second, uint16_t{4}, words);
    PipeBarrier<PIPE_V>();
    Join(LocalTensor<uint8_t>(out_[b], width_ / 2), first, second);
    // Lower halves less 8, modulo 16: plus 8, of which a carry is shifted out.
    ShiftLeft(first, in, uint16_t{12}, words);
    ShiftLeft(second, in, uint16_t{4}, words);
    SetFlag<HardEvent::V_MTE2>(b);
    PipeBarrier<PIPE_V>();
    ShiftRight(first, first, uint16_t{12}, words);
    ShiftRight(second, second, uint16_t{12}, words);
    PipeBarrier<PIPE_V>();
    Adds(Signed(first), Signed(first), int16_t{8}, words);
    Adds(Signed(second), Signed(second), int16_t{8}, words);
    PipeBarrier<PIPE_V>();
    ShiftLeft(first, first, uint16_t{12}, words);
    ShiftLeft(second, second, uint16_t{12}, words);
    PipeBarrier<PIPE_V>();
    ShiftRight(first, first, uint16_t{12}, words);
    ShiftRight(second, second, uint16_t{8}, words);
    PipeBarrier<PIPE_V>();
    Join(LocalTensor<uint8_t>(out_[b] + width_ / 2, width_ / 2), first, second);
    SetFlag<HardEvent::V_MTE3>(b);
    WaitFlag<HardEvent::V_MTE3>(b);
    DataCopy(GlobalAt<uint8_t>(to_ + static_cast<uint64_t>(row) * width_),
             LocalTensor<uint8_t>(out_[b], width_), width_);
    SetFlag<HardEvent::MTE3_V>(b);
  }

  static AscendC::LocalTensor<int16_t> Signed(const Words& words) { return words.ReinterpretCast<int16_t>(); }
  // first | second, below 256, to bytes.
  CM384_INLINE void Join(const AscendC::LocalTensor<uint8_t>& to, const Words& first, const Words& second) {
    using namespace AscendC;
    const auto words = static_cast<uint32_t>(width_ / 2);
    Or(first, first, second, static_cast<int32_t>(words));
    PipeBarrier<PIPE_V>();
    const LocalTensor<half> numbers = second.ReinterpretCast<half>();
    Cast(numbers, Signed(first), RoundMode::CAST_NONE, words);
    PipeBarrier<PIPE_V>();
    Cast(to, numbers, RoundMode::CAST_NONE, words);
    PipeBarrier<PIPE_V>();
  }

  const uint64_t from_, to_;
  const uint32_t width_;
  uint32_t in_[2], out_[2], first_, second_;  // in the UBuffer
};
