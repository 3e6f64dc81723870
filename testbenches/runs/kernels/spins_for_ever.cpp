// An endless loop.
#include "kernel_operator.h"

[[gnu::noinline]] void Spin() {
  for (;;) asm volatile("");
}

extern "C" void kernel_main(GM_ADDR) {
  Spin();
}
