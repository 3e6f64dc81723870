// Kernel `dispatch`, step by step in dispatch_steps.h.
#include "firmware/kernels/dispatch_steps.h"

extern "C" void kernel_main(GM_ADDR arguments) {
  Dispatch dispatch(*reinterpret_cast<const cm384_dispatch*>(arguments));
  dispatch.Run();
}
