// Values of all heads and output projection of a layer's attention. Arguments: firmware/abi/mla_output.h.
#include "firmware/abi/mla_output.h"

#include "cube_gemm.h"
#include "dequantise.h"
#include "kernel_operator.h"
#include "quantise.h"
#include "share.h"
#include "steps.h"

using namespace AscendC;

namespace {

// The values of some tokens to INT8. A row of 128 heads takes 176 KiB: one buffer.
void QuantiseValues(const cm384_mla_output& a, Range tokens) {
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

}  // namespace

extern "C" void kernel_main(GM_ADDR address) {
  const cm384_mla_output& a = *reinterpret_cast<const cm384_mla_output*>(address);
  const auto block = static_cast<uint32_t>(GetBlockIdx()), blocks = static_cast<uint32_t>(GetBlockNum());
  const bool int8 = a.out.type == CM384_GEMM_INT8;
  if (ASCEND_IS_AIC) {
    RunCubeGemm<bfloat16_t>(a.value, block, blocks);
    MeetCubes();
    if (int8) {
      RunCubeGemm<int8_t>(a.out, block, blocks);
    } else {
      RunCubeGemm<bfloat16_t>(a.out, block, blocks);
    }
    return;
  }
  if (!int8) return PassCubes();
  WaitForCubes();
  QuantiseValues(a, Share(*reinterpret_cast<const uint32_t*>(a.out.group_rows), 2 * blocks, block));
  VectorsDone();
  Dequantiser(a.out, block / 2, static_cast<uint32_t>(GetSubBlockIdx()))
      .Run(TileWalker(a.out, block / 2, blocks));
}
