// Attention without a causal mask over grouped keys and values, on cube and vector cores. Arguments:
// firmware/abi/flash_grouped.h.
#include "flash_grouped_form.h"

extern "C" void kernel_main(GM_ADDR address) {
  GroupedMain<FullForm>(address);
}
