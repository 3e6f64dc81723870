// silu(gate) * up of one row after another, quantised to INT8 with a scale per row or rounded to BF16: a
// vector core's work between the two multiplications of an expert's feed-forward network.
#pragma once

#include "firmware/abi/ffn.h"
#include "kernel_operator.h"
#include "share.h"

template <bool kInt8>
class SwiGluTo {
 public:
  explicit SwiGluTo(const cm384_ffn& a) : a_(a), width_(a.width) {
    uint32_t next = 0;
    const auto allocate = [&next](uint32_t bytes) {
      const uint32_t at = next;
      next += (bytes + 31) / 32 * 32;
      return at;
    };
    for (uint32_t b = 0; b < 2; ++b) {
      in_[b] = allocate(width_ * 4);
      out_[b] = allocate(width_ * (kInt8 ? 1 : 2));
      scale_[b] = allocate(256);  // a repeat
    }
    gate_ = allocate(width_ * 4);
    up_ = allocate(width_ * 4);
    work_ = allocate(width_ * 4);
    maximum_ = allocate(256);
  }

  void Run(uint32_t core, uint32_t cores) {
    using namespace AscendC;
    for (int b = 0; b < 2; ++b) {
      SetFlag<HardEvent::V_MTE2>(b);
      SetFlag<HardEvent::MTE3_V>(b);
    }
    const auto* group_rows = reinterpret_cast<const uint32_t*>(a_.down.group_rows);
    uint32_t all = 0;
    for (uint32_t group = 0; group < a_.down.groups; ++group)
      all += group_rows[group * a_.down.group_row_words];
    const Range rows = Share(all, cores, core);
    for (uint32_t row = rows.first; row < rows.last; ++row) One(row, static_cast<int>(row & 1));
    for (int b = 0; b < 2; ++b) {
      WaitFlag<HardEvent::V_MTE2>(b);
      WaitFlag<HardEvent::MTE3_V>(b);
    }
  }

 private:
  using Vector = AscendC::LocalTensor<float>;

  void One(uint32_t row, int b) {
    using namespace AscendC;
    const LocalTensor<bfloat16_t> in(in_[b], width_ * 2);
    const Vector gate(gate_, width_), up(up_, width_), work(work_, width_);
    const auto count = static_cast<int>(width_);
    WaitFlag<HardEvent::V_MTE2>(b);
    DataCopy(in, GlobalAt<bfloat16_t>(a_.gate_up.c + static_cast<uint64_t>(row) * width_ * 4), width_ * 2);
    SetFlag<HardEvent::MTE2_V>(b);
    WaitFlag<HardEvent::MTE2_V>(b);
    PipeBarrier<PIPE_V>();
    Cast(gate, in, RoundMode::CAST_NONE, width_);
    Cast(up, in[width_], RoundMode::CAST_NONE, width_);
    SetFlag<HardEvent::V_MTE2>(b);
    PipeBarrier<PIPE_V>();
    Muls(work, gate, -1.0f, count);
    PipeBarrier<PIPE_V>();
    Exp(work, work, count);
    PipeBarrier<PIPE_V>();
    Adds(work, work, 1.0f, count);
    PipeBarrier<PIPE_V>();
    Div(gate, gate, work, count);
    PipeBarrier<PIPE_V>();
    Mul(gate, gate, up, count);
    PipeBarrier<PIPE_V>();
    if constexpr (kInt8) {
      Quantise(row, gate, work, b);
    } else {
      Round(row, gate, b);
    }
  }

  void Round(uint32_t row, const Vector& values, int b) {
    using namespace AscendC;
    const LocalTensor<bfloat16_t> out(out_[b], width_);
    WaitFlag<HardEvent::MTE3_V>(b);
    Cast(out, values, RoundMode::CAST_RINT, width_);
    SetFlag<HardEvent::V_MTE3>(b);
    WaitFlag<HardEvent::V_MTE3>(b);
    DataCopy(GlobalAt<bfloat16_t>(a_.down.a + static_cast<uint64_t>(row) * width_ * 2), out, width_);
    SetFlag<HardEvent::MTE3_V>(b);
  }

  // As dispatch quantises a row: factor 127 / largest magnitude, no branch on values.
  void Quantise(uint32_t row, const Vector& values, const Vector& work, int b) {
    using namespace AscendC;
    const LocalTensor<float> maximum(maximum_, 8), scale(scale_[b], 8);
    const LocalTensor<int8_t> out(out_[b], width_);
    const auto integers = work.ReinterpretCast<int32_t>();
    const auto halves = values.ReinterpretCast<half>();
    const auto count = static_cast<int>(width_);
    Abs(work, values, count);
    PipeBarrier<PIPE_V>();
    if (width_ > 64) {
      Max(work, work, work[64], uint64_t{64}, static_cast<uint8_t>(width_ / 64 - 1), {1, 1, 1, 0, 0, 8});
      PipeBarrier<PIPE_V>();
    }
    WholeReduceMax(maximum, work, 64, 1, 1, 1, 8, ReduceOrder::ORDER_ONLY_VALUE);
    SetFlag<HardEvent::V_S>(0);
    WaitFlag<HardEvent::V_S>(0);
    const float factor = 127.0f / maximum.GetValue(0);
    SetFlag<HardEvent::S_V>(0);
    WaitFlag<HardEvent::S_V>(0);
    WaitFlag<HardEvent::MTE3_V>(b);
    Muls(values, values, factor, count);
    PipeBarrier<PIPE_V>();
    Cast(integers, values, RoundMode::CAST_RINT, width_);
    PipeBarrier<PIPE_V>();
    Cast(halves, integers, RoundMode::CAST_RINT, width_);
    PipeBarrier<PIPE_V>();
    Cast(out, halves, RoundMode::CAST_TRUNC, width_);
    Duplicate(scale, 1.0f / factor, 8);
    SetFlag<HardEvent::V_MTE3>(b);
    WaitFlag<HardEvent::V_MTE3>(b);
    DataCopy(GlobalAt<int8_t>(a_.down.a + static_cast<uint64_t>(row) * width_), out, width_);
    DataCopyPad(GlobalAt<float>(a_.down.token_scales + static_cast<uint64_t>(row) * 4), scale,
                {1, 4, 0, 0, 0});
    SetFlag<HardEvent::MTE3_V>(b);
  }

  const cm384_ffn& a_;
  const uint32_t width_;
  uint32_t in_[2], out_[2], scale_[2], gate_, up_, work_, maximum_;  // in the UBuffer
};

using SwiGlu = SwiGluTo<true>;
