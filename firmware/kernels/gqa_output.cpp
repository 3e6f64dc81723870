// Output projection of attention over grouped keys and values. Arguments: firmware/abi/gqa_projections.h.
#include "dequantise.h"
#include "firmware/abi/gqa_projections.h"
#include "kernel_operator.h"
#include "project.h"
#include "steps.h"

using namespace AscendC;

extern "C" void kernel_main(GM_ADDR address) {
  const cm384_gqa_output& a = *reinterpret_cast<const cm384_gqa_output*>(address);
  const auto block = static_cast<uint32_t>(GetBlockIdx()), blocks = static_cast<uint32_t>(GetBlockNum());
  const bool int8 = IsInt8(a.out);
  if (ASCEND_IS_AIC) {
    if (!int8) return RunCubeGemm<bfloat16_t>(a.out, block, blocks);
    WaitForVectors();
    return RunCubeGemm<int8_t>(a.out, block, blocks);
  }
  if (!int8) return;
  QuantiseValues(a, Share(*reinterpret_cast<const uint32_t*>(a.out.group_rows), 2 * blocks, block));
  VectorsDone();
  Dequantiser(a.out, block / 2, static_cast<uint32_t>(GetSubBlockIdx()))
      .Run(TileWalker(a.out, block / 2, blocks));
}
