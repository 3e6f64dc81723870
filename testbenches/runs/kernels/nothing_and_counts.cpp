// Copies of nothing, and a flag that is set twice before it is waited for twice.
#include "kernel_operator.h"

using namespace AscendC;

extern "C" __global__ __aicore__ void nothing_and_counts(GM_ADDR x, GM_ADDR y) {
  TPipe pipe;
  TBuf<> buffer;
  pipe.InitBuffer(buffer, 256);
  LocalTensor<int32_t> t = buffer.Get<int32_t>();
  GlobalTensor<int32_t> from, to;
  from.SetGlobalBuffer(reinterpret_cast<__gm__ int32_t*>(x));
  to.SetGlobalBuffer(reinterpret_cast<__gm__ int32_t*>(y) + 64 * GetBlockIdx());
  Duplicate(t, 5, 64);
  PipeBarrier<PIPE_ALL>();
  DataCopyParams none{static_cast<uint16_t>(GetBlockIdx() - GetBlockIdx()), 1, 0, 0};
  DataCopy(t, from, none);
  DataCopy(t, from, 0);
  DataCopy(to, t, DataCopyParams{1, 0, 0, 0});
  DataCopyPad(t, from, DataCopyExtParams{0, 4, 0, 0, 0});
  SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
  SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
  WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
  WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
  Adds(t, t, 2, 64);
  PipeBarrier<PIPE_ALL>();
  DataCopy(to, t, 64);
}
