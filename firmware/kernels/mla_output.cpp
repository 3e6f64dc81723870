// Values of all heads and output projection of a layer's attention. Arguments: firmware/abi/mla_output.h.
#include "firmware/abi/mla_output.h"

#include "cube_gemm.h"
#include "dequantise.h"
#include "kernel_operator.h"
#include "project.h"
#include "steps.h"

using namespace AscendC;

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
