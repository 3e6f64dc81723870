// Decode attention over chosen tokens of a compressed KV cache. Arguments: firmware/abi/sparse_mla.h.
// clang-format off: the order of the code, which instruction fetch sees, is that of these lines
#include "mla_vector.h"
#include "split_combine.h"
template void SplitCombine<MlaForm>::One(uint32_t, uint32_t);
#include "sparse_cube.h"
// clang-format on

using namespace AscendC;

extern "C" void kernel_main(GM_ADDR address) {
  const cm384_sparse_mla& a = *reinterpret_cast<const cm384_sparse_mla*>(address);
  const auto block = static_cast<uint32_t>(GetBlockIdx()), blocks = static_cast<uint32_t>(GetBlockNum());
  if (ASCEND_IS_AIC) {
    SparseCube(a, block, blocks).Run();
    return;
  }
  MlaVector(a.attention, block / 2, blocks, static_cast<uint32_t>(GetSubBlockIdx())).Run();
  if (a.attention.splits == 1) return;
  SyncAll();
  SplitCombine<MlaForm>(a.attention).Run(block, 2 * blocks);
}
