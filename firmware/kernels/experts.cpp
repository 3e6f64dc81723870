// Stands in for the experts' compute in studies of communication: keeps its core for the ticks of the system
// counter that its argument says.
#include "kernel_operator.h"

using namespace AscendC;

extern "C" void kernel_main(GM_ADDR arguments) {
  const int64_t end = GetSystemCycle() + *reinterpret_cast<const int64_t*>(arguments);
  while (GetSystemCycle() < end) {
  }
}
