// Feed-forward network of a die's experts. Arguments: firmware/abi/ffn.h.
#include "firmware/abi/ffn.h"

#include "cube_gemm.h"
#include "dequantise.h"
#include "kernel_operator.h"
#include "swiglu.h"

using namespace AscendC;

namespace {

// AIVs to their AIC: all rows are quantised.
constexpr uint16_t kQuantised = 4;

void Dequantise(const cm384_gemm& a, uint32_t group, uint32_t groups) {
  Dequantiser(a, group, static_cast<uint32_t>(GetSubBlockIdx())).Run(TileWalker(a, group, groups));
}

}  // namespace

extern "C" void kernel_main(GM_ADDR address) {
  const cm384_ffn a = *reinterpret_cast<const cm384_ffn*>(address);
  const auto block = static_cast<uint32_t>(GetBlockIdx()), blocks = static_cast<uint32_t>(GetBlockNum());
  if (ASCEND_IS_AIC) {
    CubeGemm<int8_t>(a.gate_up, block, blocks).Run();
    CrossCoreWaitFlag(kQuantised);
    CubeGemm<int8_t>(a.down, block, blocks).Run();
    return;
  }
  Dequantise(a.gate_up, block / 2, blocks);
  SyncAll();
  SwiGlu(a).Run(block, 2 * blocks);
  SyncAll();
  CrossCoreSetFlag<2, PIPE_MTE3>(kQuantised);
  Dequantise(a.down, block / 2, blocks);
}
