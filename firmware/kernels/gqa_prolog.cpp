// What stands before attention over grouped keys and values. Arguments: firmware/abi/gqa_projections.h.
#include "gqa_prolog.h"

extern "C" void kernel_main(GM_ADDR address) {
  GqaPrologMain<cm384_gqa_prolog>(address);
}
