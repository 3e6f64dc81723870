// Causal attention of a prefill over grouped keys and values, on cube and vector cores. Arguments:
// firmware/abi/flash_grouped.h.
#include "firmware/abi/flash_grouped.h"

#include "flash_cube.h"
#include "flash_grouped_form.h"

using namespace AscendC;

namespace {

template <uint32_t kHead>
[[gnu::noinline]] void Run(const cm384_flash_grouped& a, uint32_t block, uint32_t blocks) {
  if (ASCEND_IS_AIC) return FlashCube<GroupedForm<kHead>>(a, block, blocks).Run();
  OnlineSoftmax<GroupedForm<kHead>>(a, block / 2, blocks, static_cast<uint32_t>(GetSubBlockIdx())).Run();
}

}  // namespace

extern "C" void kernel_main(GM_ADDR address) {
  const auto& a = *reinterpret_cast<const cm384_flash_grouped*>(address);
  const auto block = static_cast<uint32_t>(GetBlockIdx()), blocks = static_cast<uint32_t>(GetBlockNum());
  if (a.width == 64) {
    Run<64>(a, block, blocks);
  } else {
    Run<128>(a, block, blocks);
  }
}
