// Masks by number, words and count, each of them set outside of the calls: one register for both modes.
#include "kernel_operator.h"
using namespace AscendC;
extern "C" __global__ __aicore__ void mask_modes(GM_ADDR x, GM_ADDR y) {
  TPipe pipe;
  TBuf<> xb, yb;
  pipe.InitBuffer(xb, 1024);
  pipe.InitBuffer(yb, 5 * 1024);
  GlobalTensor<float> xg, yg;
  xg.SetGlobalBuffer((__gm__ float*)x, 256);
  yg.SetGlobalBuffer((__gm__ float*)y, 1280);
  auto a = xb.Get<float>(), r = yb.Get<float>();
  DataCopy(a, xg, 256);
  Duplicate(r, -1.0f, 1280);
  PipeBarrier<PIPE_ALL>();
  // 1 counter mode over 200
  SetMaskCount();
  SetVectorMask<float, MaskMode::COUNTER>(0, 200);
  Adds<float, false>(r, a, 1.0f, MASK_PLACEHOLDER, 1, {1, 1, 8, 8});
  SetMaskNorm();
  ResetMask();
  // 2 words
  SetVectorMask<float, MaskMode::NORMAL>(0x0, 0xF0F0F0F0F0F0F0F0ull);
  Muls<float, false>(r[256], a, 2.0f, MASK_PLACEHOLDER, 4, {1, 1, 8, 8});
  ResetMask();
  // 3 mask array and strides
  uint64_t m[2] = {0x00000000FFFFFFFFull, 0};
  Duplicate<float>(r[512], 7.0f, m, 2, 2, 16);
  // 4 every second repeat
  Add(r[768], a, a[64], 64, 2, {1, 1, 1, 16, 8, 8});
  // 5 length form
  SetMaskCount();
  SetVectorMask<float, MaskMode::COUNTER>(77);
  Exp<float, false>(r[1024], a, MASK_PLACEHOLDER, 1, {1, 1, 8, 8});
  SetVectorMask<float>(0, 5);
  Ln<float, false>(r[1200], a[8], MASK_PLACEHOLDER, 1, {1, 1, 8, 8});
  SetMaskNorm();
  SetVectorMask<float>(64);
  PipeBarrier<PIPE_ALL>();
  DataCopy(yg, r, 1280);
}
