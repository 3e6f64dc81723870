// Polls a word that nobody writes and counts its turns, so that none is left out: it retires instructions for
// ever.
#include "firmware/abi/kernel.h"
#include "kernel_operator.h"

using namespace AscendC;

[[gnu::noinline]] void PollForNobody(uint64_t address) {
  const LocalTensor<uint32_t> word(TPosition::VECIN, 0, 8);
  uint32_t turns = 0;
  do {
    ++turns;
    DataCopy(word, GlobalAt<uint32_t>(address), 8);
    PipeBarrier<PIPE_ALL>();
  } while (word.GetValue(0) == 0 || turns == 0);
}

extern "C" void kernel_main(GM_ADDR arguments) {
  PollForNobody(reinterpret_cast<const cm384_kernel*>(arguments)->scratch);
}
