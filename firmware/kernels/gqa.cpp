// Decode attention over grouped keys and values on cube and vector cores. Arguments: firmware/abi/gqa.h.
#include "gqa_cube.h"
#include "split_combine.h"

using namespace AscendC;

namespace {

template <uint32_t kHead>
[[gnu::noinline]] void RunVector(const cm384_gqa& a, uint32_t block, uint32_t blocks) {
  OnlineSoftmax<GqaForm<kHead>>(a, block / 2, blocks, static_cast<uint32_t>(GetSubBlockIdx())).Run();
  if (a.splits == 1) return;
  SyncAll();
  SplitCombine<GqaForm<kHead>>(a).Run(block, 2 * blocks);
}

}  // namespace

extern "C" void kernel_main(GM_ADDR address) {
  const cm384_gqa& a = *reinterpret_cast<const cm384_gqa*>(address);
  const auto block = static_cast<uint32_t>(GetBlockIdx()), blocks = static_cast<uint32_t>(GetBlockNum());
  if (ASCEND_IS_AIC) {
    GqaCube(a, block, blocks).Run();
  } else if (a.width == 64) {
    RunVector<64>(a, block, blocks);
  } else {
    RunVector<128>(a, block, blocks);
  }
}
