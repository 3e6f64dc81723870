// The AIC of a group sets a flag and ends; its AIVs wait for it.
#include "testbenches/runs/kernels/flag_of_a_group.h"

#include "kernel_operator.h"

using namespace AscendC;

extern "C" void kernel_main(GM_ADDR arguments) {
  const auto* given = reinterpret_cast<const cm384_flag_of_a_group*>(arguments);
  if (ASCEND_IS_AIC) {
    for (uint64_t n = 0; n < given->sets; ++n) CrossCoreSetFlag<2, PIPE_FIX>(3);
  } else {
    if (given->meet != 0) SyncAll();
    for (uint64_t n = 0; n < given->waits; ++n) CrossCoreWaitFlag(3);
  }
}
