// Each block adds its number and one to a word of the scratch memory, a hundred times, by AMOs.
#include "firmware/abi/kernel.h"
#include "kernel_operator.h"

using namespace AscendC;

extern "C" void kernel_main(GM_ADDR address) {
  const auto* arguments = reinterpret_cast<const cm384_kernel*>(address);
  auto* const sum = reinterpret_cast<uint64_t*>(arguments->scratch);
  for (int i = 0; i < 100; ++i) __atomic_fetch_add(sum, 1 + GetBlockIdx(), __ATOMIC_RELAXED);
}
