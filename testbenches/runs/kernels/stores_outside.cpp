// A store where there is no memory.
#include "kernel_operator.h"

[[gnu::noinline]] void StoreBelowMemory() {
  *reinterpret_cast<volatile uint64_t*>(0x1238) = 7;
}

extern "C" void kernel_main(GM_ADDR) {
  StoreBelowMemory();
}
