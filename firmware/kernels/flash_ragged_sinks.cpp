// Causal attention of a prefill over prompts of any lengths, with sinks of heads that share keys and values.
// Arguments: firmware/abi/flash_ragged.h.
#include "flash_ragged_form.h"

extern "C" void kernel_main(GM_ADDR address) {
  const auto& a = *reinterpret_cast<const RaggedWithSinks*>(address);
  const auto block = static_cast<uint32_t>(AscendC::GetBlockIdx());
  const auto blocks = static_cast<uint32_t>(AscendC::GetBlockNum());
  if (a.key == 64) {
    RunRagged<RaggedSinksForm<64>>(a, block, blocks);
  } else {
    RunRagged<RaggedSinksForm<128>>(a, block, blocks);
  }
}
