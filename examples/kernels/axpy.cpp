// y = a x + y over 4,096 floats of each block, checked. Try -DSCALE=3: see docs/write-your-own-kernel.md.
#include "firmware/abi/kernel.h"
#include "kernel_operator.h"

#ifndef SCALE
#define SCALE 2
#endif

using namespace AscendC;

extern "C" void kernel_main(GM_ADDR arguments) {
  constexpr uint32_t kCount = 4096;
  constexpr uint32_t kBytes = kCount * sizeof(float);
  const uint64_t mine =
      reinterpret_cast<const cm384_kernel*>(arguments)->scratch + 2 * kBytes * GetBlockIdx();
  const auto gx = GlobalAt<float>(mine), gy = GlobalAt<float>(mine + kBytes);
  const LocalTensor<float> x(TPosition::VECIN, 0, kCount), y(TPosition::VECIN, kBytes, kCount);

  // Input: x is 1 and y is 5 everywhere.
  Duplicate(x, 1.0f, kCount);
  Duplicate(y, 5.0f, kCount);
  SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
  WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
  DataCopy(gx, x, kCount);
  DataCopy(gy, y, kCount);
  PipeBarrier<PIPE_ALL>();

  DataCopy(x, gx, kCount);
  DataCopy(y, gy, kCount);
  SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
  WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
  Muls(x, x, static_cast<float>(SCALE), kCount);
  PipeBarrier<PIPE_V>();  // the addition needs the product
  Add(y, x, y, kCount);
  SetFlag<HardEvent::V_S>(EVENT_ID0);
  WaitFlag<HardEvent::V_S>(EVENT_ID0);
  for (uint32_t i = 0; i < kCount; i += 1000) {
    if (y.GetValue(i) != SCALE + 5) Abort("axpy: a wrong element");
  }
  if (GetBlockIdx() == 0) PRINTF("axpy: y is %.0f\n", y.GetValue(0));
}
