// Kernel `combine`, step by step in combine_steps.h.
#include "firmware/kernels/combine_steps.h"

extern "C" void kernel_main(GM_ADDR arguments) {
  Combine combine(*reinterpret_cast<const cm384_combine*>(arguments));
  combine.Run();
}
