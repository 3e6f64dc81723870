// Ends at once.
#include "kernel_operator.h"

extern "C" void kernel_main(GM_ADDR) {}
