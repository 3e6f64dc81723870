// Right only where the scalar unit waits for the pipes that touch its bytes, and where what it stored in
// global memory is there when the kernel has ended: one flag alone, between V and MTE3. Each block has 64
// elements.
#include "kernel_operator.h"

using namespace AscendC;

extern "C" __global__ __aicore__ void right_by_default(GM_ADDR x, GM_ADDR y, GM_ADDR z, GM_ADDR seen,
                                                       GM_ADDR squares) {
  TPipe pipe;
  TBuf<> first, second;
  pipe.InitBuffer(first, 256);
  pipe.InitBuffer(second, 256);
  LocalTensor<float> t = first.Get<float>(), u = second.Get<float>();
  const auto block = static_cast<uint64_t>(GetBlockIdx());
  const auto at = [block](GM_ADDR address) {
    return GlobalAt<float>(reinterpret_cast<uint64_t>(address) + 256 * block);
  };

  Duplicate(t, 2.0f, 64);
  SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
  WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
  DataCopy(at(y), t, 64);
  for (int i = 0; i < 64; ++i) t.SetValue(i, 1.0f);  // waits for MTE3
  DataCopy(at(z), t, 64);
  DataCopy(u, at(x), 64);
  Adds(u, u, u.GetValue(63), 64);       // waits for MTE2
  at(seen).SetValue(0, u.GetValue(0));  // waits for V
  at(squares).SetValue(0, static_cast<float>(block * block));
}
