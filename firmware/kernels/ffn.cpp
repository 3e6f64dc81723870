// Feed-forward network of a die's experts. Arguments: firmware/abi/ffn.h.
#include "firmware/abi/ffn.h"

#include "cube_gemm.h"
#include "dequantise.h"
#include "kernel_operator.h"
#include "steps.h"
#include "swiglu.h"

using namespace AscendC;

namespace {

[[gnu::noinline]] void Dequantise(const cm384_gemm& a, uint32_t group, uint32_t groups) {
  Dequantiser(a, group, static_cast<uint32_t>(GetSubBlockIdx())).Run(TileWalker(a, group, groups));
}

}  // namespace

extern "C" void kernel_main(GM_ADDR address) {
  const cm384_ffn& a = *reinterpret_cast<const cm384_ffn*>(address);
  const auto block = static_cast<uint32_t>(GetBlockIdx()), blocks = static_cast<uint32_t>(GetBlockNum());
  if (ASCEND_IS_AIC) {
    RunCubeGemm<int8_t>(a.gate_up, block, blocks);
    WaitForVectors();
    RunCubeGemm<int8_t>(a.down, block, blocks);
    return;
  }
  Dequantise(a.gate_up, block / 2, blocks);
  SyncAll();
  SwiGlu(a).Run(block, 2 * blocks);
  VectorsDone();
  Dequantise(a.down, block / 2, blocks);
}
