// Decode attention over grouped keys and values on cube and vector cores. Arguments: firmware/abi/gqa.h.
#include "gqa_main.h"

extern "C" void kernel_main(GM_ADDR address) {
  GqaMain<GqaForm>(address);
}
