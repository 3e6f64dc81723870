// Rows for a projection in BF16 or INT8 on a vector core: normed, or as they are.
#pragma once

#include "cube_gemm.h"
#include "quantise.h"
#include "rms_norm.h"
#include "share.h"

CM384_INLINE bool IsInt8(const cm384_gemm& a) {
  return a.type == CM384_GEMM_INT8;
}

// The row at `from`, normed, as row `t` of what a projection multiplies.
CM384_INLINE void NormTo(RmsNorm& norm, uint64_t from, const cm384_gemm& to, uint32_t t) {
  using namespace AscendC;
  const uint64_t row = to.a + t * to.a_pitch;
  if (!IsInt8(to))
    return norm.Row(from, [&](uint32_t at) {
      DataCopy(GlobalAt<bfloat16_t>(row), LocalTensor<bfloat16_t>(at, to.k), to.k);
    });
  norm.QuantisedRow(from, [&](uint32_t at, uint32_t scale) {
    DataCopy(GlobalAt<int8_t>(row), LocalTensor<int8_t>(at, to.k), to.k);
    DataCopyPad(GlobalAt<float>(to.token_scales + t * 4ull), LocalTensor<float>(scale, 8), {1, 4, 0, 0, 0});
  });
}

// The values of some tokens, a.value, to INT8 for a.out. A row of 128 heads takes 176 KiB: one buffer.
template <class Arguments>
static void QuantiseValues(const Arguments& a, Range tokens) {
  using namespace AscendC;
  const uint32_t width = a.out.k, floats = width * 4;
  const LocalTensor<float> row(0, width), absolute(floats, width);
  const LocalTensor<bfloat16_t> in(2 * floats, width);
  const LocalTensor<int8_t> out(2 * floats + 2 * width, width);
  const LocalTensor<float> maximum(2 * floats + 3 * width, 8), scale(2 * floats + 3 * width + 256, 8);
  SetFlag<HardEvent::V_MTE2>(0);
  SetFlag<HardEvent::MTE3_V>(0);
  for (uint32_t t = tokens.first; t < tokens.last; ++t) {
    WaitFlag<HardEvent::V_MTE2>(0);
    DataCopy(in, GlobalAt<bfloat16_t>(a.value.c + t * a.value.c_pitch), width);
    SetFlag<HardEvent::MTE2_V>(0);
    const float inverse = QuantiseRow(in, row, absolute, maximum, out, width, EVENT_ID0);
    Duplicate(scale, inverse, 8);
    SetFlag<HardEvent::V_MTE3>(1);
    WaitFlag<HardEvent::V_MTE3>(0);
    DataCopy(GlobalAt<int8_t>(a.out.a + t * a.out.a_pitch), out, width);
    WaitFlag<HardEvent::V_MTE3>(1);
    DataCopyPad(GlobalAt<float>(a.out.token_scales + t * 4ull), scale, {1, 4, 0, 0, 0});
    SetFlag<HardEvent::MTE3_V>(0);
  }
  WaitFlag<HardEvent::V_MTE2>(0);
  WaitFlag<HardEvent::MTE3_V>(0);
}
