// Waits until a word is set, or sets it: without scratch memory of its own it is the one that sets it.
#include "firmware/abi/kernel.h"
#include "kernel_operator.h"

using namespace AscendC;

extern "C" void kernel_main(GM_ADDR arguments) {
  const auto* memory = reinterpret_cast<const cm384_kernel*>(arguments);
  const LocalTensor<uint32_t> word(TPosition::VECIN, 0, 8);
  const GlobalTensor<uint32_t> shared = GlobalAt<uint32_t>(memory->scratch);
  if (memory->scratch_bytes == 0) {
    Duplicate(word, uint32_t{1}, 8);
    SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
    WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
    DataCopy(shared, word, 8);
    PipeBarrier<PIPE_ALL>();
    return;
  }
  for (;;) {
    DataCopy(word, shared, 8);
    PipeBarrier<PIPE_ALL>();
    if (word.GetValue(0) != 0) return;
    PollMark(memory->scratch, 32);
  }
}
