// Causal attention of a prefill over grouped keys and values with sinks of heads. Arguments:
// firmware/abi/flash_grouped.h.
#include "flash_grouped_form.h"

extern "C" void kernel_main(GM_ADDR address) {
  GroupedMain<SinksForm>(address);
}
