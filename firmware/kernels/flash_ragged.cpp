// Causal attention of a prefill over prompts of any lengths, on cube and vector cores. Arguments:
// firmware/abi/flash_ragged.h.
#include "flash_ragged_form.h"

extern "C" void kernel_main(GM_ADDR address) {
  const auto& a = *reinterpret_cast<const cm384_flash_ragged*>(address);
  const auto block = static_cast<uint32_t>(AscendC::GetBlockIdx());
  const auto blocks = static_cast<uint32_t>(AscendC::GetBlockNum());
  if (a.key == 64) {
    RunRagged<RaggedForm<64, 64>>(a, block, blocks);
  } else if (a.key == 128) {
    RunRagged<RaggedForm<128, 128>>(a, block, blocks);
  } else {
    RunRagged<RaggedForm<192, 128>>(a, block, blocks);
  }
}
