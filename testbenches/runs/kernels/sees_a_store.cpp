// Block 0 stores into global memory and cleans the line at a given cycle; block 1 loads the word at another.
// Scratch memory: the word; at 512 the two cycles; at 1024 block 0's cycles before and after the clean; at
// 1536 block 1's cycle before its load, and what it has loaded.
#include "firmware/abi/kernel.h"
#include "kernel_operator.h"

using namespace AscendC;

extern "C" void kernel_main(GM_ADDR address) {
  const uint64_t scratch = reinterpret_cast<const cm384_kernel*>(address)->scratch;
  auto* const word = reinterpret_cast<volatile uint64_t*>(scratch);
  const uint64_t block = GetBlockIdx();
  const uint64_t at = reinterpret_cast<const uint64_t*>(scratch + 512)[block];
  auto* const result = reinterpret_cast<volatile uint64_t*>(scratch + 1024 + 512 * block);
  result[0] = 0;
  if (block == 0) *word = 7;
  while (GetCoreCycle() < at) {
  }
  const uint64_t before = GetCoreCycle();
  uint64_t then;
  if (block == 0) {
    dcci(scratch, 8);
    dsb(DSB_ALL);
    then = GetCoreCycle();
  } else {
    then = *word;
  }
  result[0] = before;
  result[1] = then;
  dcci(scratch + 1024 + 512 * block, 16);
}
