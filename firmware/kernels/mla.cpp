// Decode attention over a compressed KV cache on cube and vector cores. Arguments: firmware/abi/mla.h.
#include "mla_combine.h"
#include "mla_cube.h"
#include "mla_vector.h"

using namespace AscendC;

extern "C" void kernel_main(GM_ADDR address) {
  const cm384_mla& a = *reinterpret_cast<const cm384_mla*>(address);
  const auto block = static_cast<uint32_t>(GetBlockIdx()), blocks = static_cast<uint32_t>(GetBlockNum());
  if (ASCEND_IS_AIC) {
    MlaCube(a, block, blocks).Run();
    return;
  }
  MlaVector(a, block / 2, blocks, static_cast<uint32_t>(GetSubBlockIdx())).Run();
  if (a.splits == 1) return;
  SyncAll();
  MlaCombine(a).Run(block, 2 * blocks);
}
