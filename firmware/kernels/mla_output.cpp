// Values of all heads and output projection of a layer's attention. Arguments: firmware/abi/mla_output.h.
#include "firmware/abi/mla_output.h"

#include "cube_gemm.h"
#include "kernel_operator.h"
#include "steps.h"

using namespace AscendC;

extern "C" void kernel_main(GM_ADDR address) {
  const cm384_mla_output& a = *reinterpret_cast<const cm384_mla_output*>(address);
  const auto block = static_cast<uint32_t>(GetBlockIdx()), blocks = static_cast<uint32_t>(GetBlockNum());
  if (!ASCEND_IS_AIC) return PassCubes();
  RunCubeGemm<bfloat16_t>(a.value, block, blocks);
  MeetCubes();
  RunCubeGemm<bfloat16_t>(a.out, block, blocks);
}
