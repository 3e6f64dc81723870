// The vector unit reads what MTE2 may still be writing: there is no flag between them.
#include "firmware/abi/kernel.h"
#include "kernel_operator.h"

using namespace AscendC;

extern "C" void kernel_main(GM_ADDR arguments) {
  const uint64_t scratch = reinterpret_cast<const cm384_kernel*>(arguments)->scratch;
  const LocalTensor<float> x(TPosition::VECIN, 0, 1024), y(TPosition::VECOUT, 4096, 1024);
  DataCopy(x, GlobalAt<float>(scratch), 1024);
  Adds(y, x, 1.0f, 1024);
  PipeBarrier<PIPE_ALL>();
}
