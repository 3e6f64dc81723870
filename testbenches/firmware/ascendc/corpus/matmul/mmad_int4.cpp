// A product of int4b_t by the calls of the cube core.
#include "kernel_operator.h"
using namespace AscendC;
// y (M x N int32) = A (M x K int4) x B^T, B stands N x K
constexpr int M = 48, N = 32, K = 192;
extern "C" __global__ __aicore__ void mmad_int4(GM_ADDR a, GM_ADDR b, GM_ADDR y) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
  TPipe pipe;
  TBuf<TPosition::A1> a1b;
  TBuf<TPosition::B1> b1b;
  TBuf<TPosition::A2> a2b;
  TBuf<TPosition::B2> b2b;
  TBuf<TPosition::CO1> cb;
  pipe.InitBuffer(a1b, M * K / 2);
  pipe.InitBuffer(b1b, N * K / 2);
  pipe.InitBuffer(a2b, M * K / 2);
  pipe.InitBuffer(b2b, N * K / 2);
  pipe.InitBuffer(cb, M * N * 4);
  GlobalTensor<int4b_t> ag, bg;
  ag.SetGlobalBuffer((__gm__ int4b_t*)a, M * K);
  bg.SetGlobalBuffer((__gm__ int4b_t*)b, N * K);
  GlobalTensor<int32_t> yg;
  yg.SetGlobalBuffer((__gm__ int32_t*)y);
  auto a1 = a1b.Get<int4b_t>();
  auto b1 = b1b.Get<int4b_t>();
  auto a2 = a2b.Get<int4b_t>();
  auto b2 = b2b.Get<int4b_t>();
  auto c = cb.Get<int32_t>();
  Nd2NzParams p;
  p.ndNum = 1;
  p.nValue = M;
  p.dValue = K;
  p.srcDValue = K;
  p.dstNzC0Stride = M;
  p.dstNzNStride = 1;
  p.srcNdMatrixStride = 0;
  p.dstNzMatrixStride = 0;
  DataCopy(a1, ag, p);
  p.nValue = N;
  p.dstNzC0Stride = N;
  DataCopy(b1, bg, p);
  SetFlag<HardEvent::MTE2_MTE1>(EVENT_ID0);
  WaitFlag<HardEvent::MTE2_MTE1>(EVENT_ID0);
  // A2: row of fractals after row; NZ has columns of fractals
  for (int i = 0; i < M / 16; i++) {
    LoadData2DParams l;
    l.startIndex = i;
    l.repeatTimes = K / 64;
    l.srcStride = M / 16;
    l.dstGap = 0;
    LoadData(a2[i * 16 * K], a1, l);
  }
  LoadData2DParams l;
  l.startIndex = 0;
  l.repeatTimes = K / 64 * (N / 16);
  l.srcStride = 1;
  LoadData(b2, b1, l);
  SetFlag<HardEvent::MTE1_M>(EVENT_ID0);
  WaitFlag<HardEvent::MTE1_M>(EVENT_ID0);
  MmadParams mp;
  mp.m = M;
  mp.n = N;
  mp.k = K;
  mp.cmatrixInitVal = true;
  Mmad(c, a2, b2, mp);
  SetFlag<HardEvent::M_FIX>(EVENT_ID0);
  WaitFlag<HardEvent::M_FIX>(EVENT_ID0);
  FixpipeParamsV220 f;
  f.nSize = N;
  f.mSize = M;
  f.srcStride = M;
  f.dstStride = N;
  Fixpipe<int32_t, int32_t, CFG_ROW_MAJOR>(yg, c, f);
}
