// A copy from behind the last die of the supernode.
#include "kernel_operator.h"

using namespace AscendC;

[[gnu::noinline]] void CopyFromNowhere() {
  const LocalTensor<uint32_t> word(TPosition::VECIN, 0, 8);
  DataCopy(word, GlobalAt<uint32_t>(0x4000000000000000 + (uint64_t{800} << 36)), 8);
  PipeBarrier<PIPE_ALL>();
}

extern "C" void kernel_main(GM_ADDR) {
  CopyFromNowhere();
}
