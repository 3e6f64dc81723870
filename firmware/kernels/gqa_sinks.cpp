// Decode attention over grouped keys and values, with sinks of heads. Arguments: firmware/abi/gqa.h.
#include "gqa_main.h"

extern "C" void kernel_main(GM_ADDR address) {
  GqaMain<GqaSinksForm>(address);
}
