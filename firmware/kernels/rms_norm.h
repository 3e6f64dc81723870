// Root-mean-square norm of rows of BF16 on a vector core.
#pragma once

#include "kernel_operator.h"

// Bytes of the UBuffer that a norm takes.
inline constexpr uint32_t kRmsNormBytes(uint32_t width) {
  return width * 20 + 1024 + 64 + 3 * 256;
}

// Two buffers each way, taken in turn. Uses the flags `event` and `event` + 1 of V_MTE2, MTE2_V, MTE3_V and
// V_MTE3, and V_S(0) and S_V(0).
class RmsNorm {
 public:
  // `width`: elements of a row, a multiple of 64. `base`: offset in the UBuffer, a multiple of 32.
  RmsNorm(uint32_t width, uint32_t base, int event, float epsilon)
      : width_(width), event_(event), epsilon_(epsilon) {
    uint32_t next = base;
    const auto allocate = [&next](uint32_t bytes) {
      const uint32_t at = next;
      next += bytes;
      return at;
    };
    gamma_ = allocate(width * 4);
    row_ = allocate(width * 4);
    work_ = allocate(width * 4);
    for (uint32_t b = 0; b < 2; ++b) {
      in_[b] = allocate(width * 2);
      out_[b] = allocate(width * 2);
    }
    partial_ = allocate(1024);
    sum_ = allocate(64);
    maximum_ = allocate(256);
    for (uint32_t& scale : scale_) scale = allocate(256);
  }

  // Loads gamma; then any number of rows; then Close().
  void Open(uint64_t gamma) const {
    using namespace AscendC;
    const LocalTensor<bfloat16_t> in(in_[0], width_);
    DataCopy(in, GlobalAt<bfloat16_t>(gamma), width_);
    SetFlag<HardEvent::MTE2_V>(event_);
    WaitFlag<HardEvent::MTE2_V>(event_);
    Cast(At(gamma_), in, RoundMode::CAST_NONE, width_);
    for (int b = 0; b < 2; ++b) {
      SetFlag<HardEvent::V_MTE2>(event_ + b);
      SetFlag<HardEvent::MTE3_V>(event_ + b);
    }
  }
  void Close() const {
    using namespace AscendC;
    for (int b = 0; b < 2; ++b) {
      WaitFlag<HardEvent::V_MTE2>(event_ + b);
      WaitFlag<HardEvent::MTE3_V>(event_ + b);
    }
  }

  // The normed row at `from`; `store` copies it from its place in the UBuffer to memory.
  template <class Store>
  CM384_INLINE void Row(uint64_t from, Store&& store) {
    using namespace AscendC;
    const uint32_t b = Norm(from);
    const int event = event_ + static_cast<int>(b);
    WaitFlag<HardEvent::MTE3_V>(event);
    Cast(LocalTensor<bfloat16_t>(out_[b], width_), At(row_), RoundMode::CAST_RINT, width_);
    SetFlag<HardEvent::V_MTE3>(event);
    WaitFlag<HardEvent::V_MTE3>(event);
    store(out_[b]);
    SetFlag<HardEvent::MTE3_V>(event);
  }

  // The same in INT8 by 127 / its largest magnitude; `store` copies it and the inverse of that, a float.
  template <class Store>
  CM384_INLINE void QuantisedRow(uint64_t from, Store&& store) {
    using namespace AscendC;
    const uint32_t b = Norm(from);
    const int event = event_ + static_cast<int>(b);
    const LocalTensor<float> maximum(maximum_, 8);
    const auto integers = At(work_).ReinterpretCast<int32_t>();
    const auto halves = At(row_).ReinterpretCast<half>();
    const auto count = static_cast<int>(width_);
    Abs(At(work_), At(row_), count);
    PipeBarrier<PIPE_V>();
    if (width_ > 64) {
      Max(At(work_), At(work_), At(work_)[64], uint64_t{64}, static_cast<uint8_t>(width_ / 64 - 1),
          {1, 1, 1, 0, 0, 8});
      PipeBarrier<PIPE_V>();
    }
    WholeReduceMax(maximum, At(work_), 64, 1, 1, 1, 8, ReduceOrder::ORDER_ONLY_VALUE);
    SetFlag<HardEvent::V_S>(0);
    WaitFlag<HardEvent::V_S>(0);
    const float factor = 127.0f / maximum.GetValue(0);
    SetFlag<HardEvent::S_V>(0);
    WaitFlag<HardEvent::S_V>(0);
    WaitFlag<HardEvent::MTE3_V>(event);
    Muls(At(row_), At(row_), factor, count);
    PipeBarrier<PIPE_V>();
    Cast(integers, At(row_), RoundMode::CAST_RINT, width_);
    PipeBarrier<PIPE_V>();
    Cast(halves, integers, RoundMode::CAST_RINT, width_);
    PipeBarrier<PIPE_V>();
    Cast(LocalTensor<int8_t>(out_[b], width_), halves, RoundMode::CAST_TRUNC, width_);
    Duplicate(LocalTensor<float>(scale_[b], 8), 1.0f / factor, 8);
    SetFlag<HardEvent::V_MTE3>(event);
    WaitFlag<HardEvent::V_MTE3>(event);
    store(out_[b], scale_[b]);
    SetFlag<HardEvent::MTE3_V>(event);
  }

 private:
  // Leaves the row at `from`, normed, in row_; which pair of buffers is its own.
  CM384_INLINE uint32_t Norm(uint64_t from) {
    using namespace AscendC;
    const uint32_t b = rows_++ & 1;
    const int event = event_ + static_cast<int>(b);
    const LocalTensor<bfloat16_t> in(in_[b], width_);
    const auto count = static_cast<int>(width_);
    WaitFlag<HardEvent::V_MTE2>(event);
    DataCopy(in, GlobalAt<bfloat16_t>(from), width_);
    SetFlag<HardEvent::MTE2_V>(event);
    WaitFlag<HardEvent::MTE2_V>(event);
    PipeBarrier<PIPE_V>();
    Cast(At(row_), in, RoundMode::CAST_NONE, width_);
    SetFlag<HardEvent::V_MTE2>(event);
    PipeBarrier<PIPE_V>();
    Mul(At(work_), At(row_), At(row_), count);
    PipeBarrier<PIPE_V>();
    const AscendC::LocalTensor<float> sum(sum_, 8);
    TreeSum(sum, At(work_), AscendC::LocalTensor<float>(partial_, 256), count);
    SetFlag<HardEvent::V_S>(0);
    WaitFlag<HardEvent::V_S>(0);
    const float factor = 1.0f / Root(sum.GetValue(0) / static_cast<float>(width_) + epsilon_);
    SetFlag<HardEvent::S_V>(0);
    WaitFlag<HardEvent::S_V>(0);
    Muls(At(row_), At(row_), factor, count);
    PipeBarrier<PIPE_V>();
    Mul(At(row_), At(row_), At(gamma_), count);
    PipeBarrier<PIPE_V>();
    return b;
  }
  static CM384_INLINE float Root(float x) {
    asm("fsqrt.s %0, %0" : "+f"(x));
    return x;
  }
  AscendC::LocalTensor<float> At(uint32_t offset) const {
    return AscendC::LocalTensor<float>(offset, width_);
  }

  const uint32_t width_;
  const int event_;
  const float epsilon_;
  uint32_t gamma_, row_, work_, in_[2], out_[2], partial_, sum_, maximum_, scale_[2];  // in the UBuffer
  uint32_t rows_ = 0;
};
