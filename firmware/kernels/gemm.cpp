// Grouped matrix multiplication on cube cores. Arguments: firmware/abi/gemm.h.
#include "firmware/abi/gemm.h"

#include "cube_gemm.h"
#include "dequantise.h"
#include "kernel_operator.h"

using namespace AscendC;

extern "C" void kernel_main(GM_ADDR address) {
  const cm384_gemm& a = *reinterpret_cast<const cm384_gemm*>(address);
  const auto block = static_cast<uint32_t>(GetBlockIdx()), blocks = static_cast<uint32_t>(GetBlockNum());
  if (ASCEND_IS_AIC) {
    if (a.type == CM384_GEMM_INT8) {
      RunCubeGemm<int8_t>(a, block, blocks);
    } else {
      RunCubeGemm<bfloat16_t>(a, block, blocks);
    }
  } else if (a.type == CM384_GEMM_INT8) {
    const uint32_t group = block / 2;
    Dequantiser(a, group, static_cast<uint32_t>(GetSubBlockIdx())).Run(TileWalker(a, group, blocks));
  }
}
