// Dynamic INT8 quantisation of one row, as MoeDistributeDispatchV2 does it (ascend-facts B2.4).
#pragma once

#include "kernel_operator.h"

// Quantises `hidden` elements of `in` to `out` by the factor 127 / max |in|; `scale` gets the inverse of the
// factor. `row` and `absolute` hold a row of float each; `maximum` is a block of its own, since it is
// payload. A row of zeros gives the factor infinity, NaN products, which convert to 0, and scale 0: there is
// no branch on values. Buffer `b` of the queues: waits for MTE2_V(b) and MTE3_V(b), sets V_MTE2(b) and
// V_MTE3(b). Uses V_S(0) and S_V(0).
CM384_INLINE float QuantiseRow(const AscendC::LocalTensor<bfloat16_t>& in,
                               const AscendC::LocalTensor<float>& row,
                               const AscendC::LocalTensor<float>& absolute,
                               const AscendC::LocalTensor<float>& maximum,
                               const AscendC::LocalTensor<int8_t>& out, uint32_t hidden, event_t b) {
  using namespace AscendC;
  const uint32_t whole = hidden / 64, rest = hidden % 64;  // repeats of float
  const auto count = static_cast<int32_t>(hidden);
  const auto integers = absolute.ReinterpretCast<int32_t>();
  const auto halves = row.ReinterpretCast<half>();
  WaitFlag<HardEvent::MTE2_V>(b);
  WaitFlag<HardEvent::MTE3_V>(b);
  PipeBarrier<PIPE_V>();
  Cast(row, in, RoundMode::CAST_NONE, hidden);
  SetFlag<HardEvent::V_MTE2>(b);
  PipeBarrier<PIPE_V>();
  Abs(absolute, row, count);
  PipeBarrier<PIPE_V>();
  // Repeat after repeat into the first: destination and source 0 stay in place.
  if (whole > 1) {
    Max(absolute, absolute, absolute[64], uint64_t{64}, static_cast<uint8_t>(whole - 1), {1, 1, 1, 0, 0, 8});
    PipeBarrier<PIPE_V>();
  }
  if (whole > 0 && rest != 0) {
    Max(absolute, absolute, absolute[whole * 64], static_cast<int32_t>(rest));
    PipeBarrier<PIPE_V>();
  }
  WholeReduceMax(maximum, absolute, static_cast<int32_t>(whole > 0 ? 64 : rest), 1, 1, 1, 8,
                 ReduceOrder::ORDER_ONLY_VALUE);
  SetFlag<HardEvent::V_S>(EVENT_ID0);
  WaitFlag<HardEvent::V_S>(EVENT_ID0);
  const float factor = 127.0f / maximum.GetValue(0);
  SetFlag<HardEvent::S_V>(EVENT_ID0);
  WaitFlag<HardEvent::S_V>(EVENT_ID0);
  Muls(row, row, factor, count);
  PipeBarrier<PIPE_V>();
  Cast(integers, row, RoundMode::CAST_RINT, hidden);
  PipeBarrier<PIPE_V>();
  Cast(halves, integers, RoundMode::CAST_RINT, hidden);
  PipeBarrier<PIPE_V>();
  Cast(out, halves, RoundMode::CAST_TRUNC, hidden);
  SetFlag<HardEvent::V_MTE3>(b);
  return 1.0f / factor;
}
