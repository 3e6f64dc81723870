// Prints, dumps, assertions, hints and barriers of a kernel that is being written.
#include "kernel_operator.h"
using namespace AscendC;
extern "C" __global__ __aicore__ void debug_forms(GM_ADDR x, GM_ADDR y) {
  PRELOAD(4);
  TPipe pipe;
  TBuf<> b;
  pipe.InitBuffer(b, 256);
  GlobalTensor<int32_t> xg, yg;
  xg.SetGlobalBuffer((__gm__ int32_t*)x, 64);
  yg.SetGlobalBuffer((__gm__ int32_t*)y, 64);
  auto t = b.Get<int32_t>();
  DataCopy(t, xg, 64);
  PipeBarrier<PIPE_ALL>();
  uint32_t array[] = {8, 8};
  ShapeInfo shape(2, array);
  DumpTensor(t, 1, 64);
  DumpTensor(xg, 2, 32);
  DumpTensor(t, 3, 64, shape);
  DumpAccChkPoint(t, 4, 0, 8);
  printf("block %d of %u, first %d, float %f, hex %x, long %lld, text %s\n", (int)GetBlockIdx(),
         (uint32_t)GetBlockNum(), t.GetValue(0), 1.5f, 255, 1ll << 40, "end");
  PRINTF("value %d\n", t(1));
  assert(t.GetValue(0) == 0);
  ascendc_assert(t.GetValue(1) == 1, "second is %d", t.GetValue(1));
  ASSERT(t.GetValue(2) == 2 && "third");
  if (t.GetValue(3) != 3) trap();
  int64_t c0 = GetSystemCycle();
  Adds(t, t, 1, 64);
  dsb((mem_dsb_t)0);
  DataSyncBarrier<MemDsbT::ALL>();
  PipeBarrier<PIPE_ALL>();
  if (GetSystemCycle() < c0) trap();
  DataCopy(yg, t, 64);
}
