// Rows of INT8 with a scale each to BF16, on a vector core: what dispatch delivers, for a BF16 product.
#pragma once

#include "kernel_operator.h"
#include "share.h"

class WidenRows {
 public:
  // `width`: elements of a row, a multiple of 64 and at most 8192.
  WidenRows(uint64_t x, uint64_t scales, uint64_t to, uint32_t width)
      : x_(x), scales_(scales), to_(to), width_(width) {
    uint32_t next = 0;
    const auto allocate = [&next](uint32_t bytes) {
      const uint32_t at = next;
      next += bytes;
      return at;
    };
    for (uint32_t b = 0; b < 2; ++b) {
      in_[b] = allocate(width);
      out_[b] = allocate(width * 2);
      scale_[b] = allocate(32);
    }
    halves_ = allocate(width * 2);
    row_ = allocate(width * 4);
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
  void One(uint32_t number, int b) {
    using namespace AscendC;
    const LocalTensor<int8_t> in(in_[b], width_);
    const LocalTensor<float> scale(scale_[b], 8), row(row_, width_);
    const LocalTensor<half> halves(halves_, width_);
    const LocalTensor<bfloat16_t> out(out_[b], width_);
    WaitFlag<HardEvent::V_MTE2>(b);
    DataCopy(in, GlobalAt<int8_t>(x_ + static_cast<uint64_t>(number) * width_), width_);
    DataCopyPad(scale, GlobalAt<float>(scales_ + static_cast<uint64_t>(number) * 4), {1, 4, 0, 0, 0}, {});
    SetFlag<HardEvent::MTE2_V>(b);
    SetFlag<HardEvent::MTE2_S>(b);
    WaitFlag<HardEvent::MTE2_V>(b);
    PipeBarrier<PIPE_V>();
    Cast(halves, in, RoundMode::CAST_NONE, width_);
    PipeBarrier<PIPE_V>();
    Cast(row, halves, RoundMode::CAST_NONE, width_);
    WaitFlag<HardEvent::MTE2_S>(b);
    const float factor = scale.GetValue(0);
    SetFlag<HardEvent::V_MTE2>(b);
    PipeBarrier<PIPE_V>();
    Muls(row, row, factor, static_cast<int>(width_));
    PipeBarrier<PIPE_V>();
    WaitFlag<HardEvent::MTE3_V>(b);
    Cast(out, row, RoundMode::CAST_RINT, width_);
    SetFlag<HardEvent::V_MTE3>(b);
    WaitFlag<HardEvent::V_MTE3>(b);
    DataCopy(GlobalAt<bfloat16_t>(to_ + static_cast<uint64_t>(number) * width_ * 2), out, width_);
    SetFlag<HardEvent::MTE3_V>(b);
  }

  const uint64_t x_, scales_, to_;
  const uint32_t width_;
  uint32_t in_[2], out_[2], scale_[2], halves_, row_;  // in the UBuffer
};
