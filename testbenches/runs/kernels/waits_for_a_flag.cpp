// Core 2 waits for a flag that nobody sets.
#include "kernel_operator.h"

using namespace AscendC;

[[gnu::noinline]] void WaitForNobody() {
  WaitFlag<HardEvent::MTE2_S>(EVENT_ID5);
}

extern "C" void kernel_main(GM_ADDR) {
  if (GetBlockIdx() == 2) WaitForNobody();
}
