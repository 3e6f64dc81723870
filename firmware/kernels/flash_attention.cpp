// Causal attention of a prefill on cube and vector cores. Arguments: firmware/abi/flash_attention.h.
#include "flash_cube.h"

using namespace AscendC;

extern "C" void kernel_main(GM_ADDR address) {
  const auto& a = *reinterpret_cast<const cm384_flash_attention*>(address);
  const auto block = static_cast<uint32_t>(GetBlockIdx()), blocks = static_cast<uint32_t>(GetBlockNum());
  if (ASCEND_IS_AIC) {
    FlashCube<FlashForm>(a, block, blocks).Run();
    return;
  }
  FlashSoftmax<FlashForm>(a, block / 2, blocks, static_cast<uint32_t>(GetSubBlockIdx())).Run();
}
