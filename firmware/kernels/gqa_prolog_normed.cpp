// What stands before attention over grouped keys and values, with norms of heads. Arguments:
// firmware/abi/gqa_projections.h.
#include "gqa_prolog.h"

extern "C" void kernel_main(GM_ADDR address) {
  GqaPrologMain<NormedProlog>(address);
}
