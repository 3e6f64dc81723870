// Leaves its stack: by calling itself 2^64 times, or, without scratch memory, by an array that is larger than
// all of it.
#include "firmware/abi/kernel.h"
#include "kernel_operator.h"

[[gnu::noinline]] uint64_t CallItself(uint64_t depth) {
  volatile uint64_t kept[32];
  kept[0] = depth;
  return kept[0] == UINT64_MAX ? 0 : CallItself(depth + 1) + kept[0];
}

[[gnu::noinline]] uint64_t TooLarge(uint64_t bytes) {
  auto* array = static_cast<volatile char*>(__builtin_alloca(bytes));
  array[0] = 1;
  return static_cast<uint64_t>(array[0]);
}

extern "C" void kernel_main(GM_ADDR arguments) {
  const auto* given = reinterpret_cast<const cm384_kernel*>(arguments);
  volatile uint64_t result = given->scratch_bytes != 0 ? CallItself(0) : TooLarge(uint64_t{32} << 20);
  (void)result;
}
