// Adds 1 to 1,024 integers per block; docs/debugging.md steps through it. Mistakes on purpose: MISTAKE=1
// waits for a flag that nobody sets, with MISTAKE=2 the vector unit does not wait for the copy, with
// MISTAKE=3 the integers lie behind the scratch memory, and with MISTAKE=4 all blocks work on the same ones.
#include "firmware/abi/kernel.h"
#include "kernel_operator.h"

using namespace AscendC;

[[gnu::noinline]] void Increment(const GlobalTensor<int32_t>& numbers, uint32_t count) {
  const LocalTensor<int32_t> tile(TPosition::VECIN, 0, count);
  DataCopy(tile, numbers, count);
#if !defined(MISTAKE) || MISTAKE != 2
  SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
  WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
#endif
  Adds(tile, tile, 1, count);
#if !defined(MISTAKE) || MISTAKE != 1
  SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
#endif
  WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
  DataCopy(numbers, tile, count);
  PipeBarrier<PIPE_ALL>();
}

extern "C" void kernel_main(GM_ADDR arguments) {
  constexpr uint32_t kCount = 1024;
  const auto* given = reinterpret_cast<const cm384_kernel*>(arguments);
#if defined(MISTAKE) && MISTAKE == 3
  const uint64_t begin = given->scratch + given->scratch_bytes + (1 << 20);
#else
  const uint64_t begin = given->scratch;
#endif
#if defined(MISTAKE) && MISTAKE == 4
  const uint64_t block = 0;
#else
  const uint64_t block = GetBlockIdx();
#endif
  Increment(GlobalAt<int32_t>(begin + block * kCount * sizeof(int32_t)), kCount);
}
