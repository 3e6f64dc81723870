// A core drives the SDMA engine: entries, doorbell, flag or completion. Arguments: firmware/abi/sdma.h.
#include "firmware/abi/sdma.h"

#include "cm384/sdma.h"
#include "kernel_operator.h"

using namespace AscendC;

extern "C" void kernel_main(GM_ADDR address) {
  const cm384_sdma_run a = *reinterpret_cast<const cm384_sdma_run*>(address);
  SdmaQueue queue(a.queue, 0);
  cm384_sdma_result result{};
  for (uint32_t round = 0; round <= a.warmup; ++round) {
    const uint64_t source = a.source + round * a.source_stride;
    const uint64_t start = GetCoreCycle();
    for (uint64_t at = 0; at < a.bytes; at += a.entry_bytes) {
      const uint32_t now = static_cast<uint32_t>(a.bytes - at < a.entry_bytes ? a.bytes - at : a.entry_bytes);
      const bool completion = a.completion != 0 && at + now == a.bytes;
      if (a.operation == CM384_SDMA_PREFETCH) {
        queue.Prefetch(source + at, now, completion);
      } else {
        queue.Copy(a.destination + at, source + at, now, completion);
      }
      queue.Ring();
    }
    if (a.completion == 0) {
      queue.PostFlag(a.flag, round + 1, a.arena);
      queue.Ring();
    }
    result.rung_cycle = GetCoreCycle();
    if (a.completion == 0) {
      queue.WaitFlagValue(a.flag, round + 1);
    } else {
      const cm384_completion c = queue.WaitCompletion();
      result.status = c.status;
      result.fault = c.fault;
    }
    result.start_cycle = start;
    result.end_cycle = GetCoreCycle();
  }
  *reinterpret_cast<cm384_sdma_result*>(a.result) = result;
  dcci(a.result, sizeof result);
}
