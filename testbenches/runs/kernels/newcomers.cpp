// Mistakes as those make them who are new, one a build (-D MISTAKE=n; 0: none). runs/newcomers says what each
// is told.
#include "kernel_operator.h"

using namespace AscendC;

#ifndef MISTAKE
#define MISTAKE 0
#endif

constexpr int32_t N = 1024;

class KernelAdd {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, GM_ADDR z, TPipe* pipe) {
#if MISTAKE == 1
    const uint64_t step = N - 8;  // parts overlap
#elif MISTAKE == 2
    const uint64_t step = uint64_t{1} << 40;  // far outside
#else
    const uint64_t step = N;
#endif
    xg.SetGlobalBuffer((__gm__ float*)x + GetBlockIdx() * step, N);
    yg.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * step, N);
    zg.SetGlobalBuffer((__gm__ float*)z + GetBlockIdx() * step, N);
    other.SetGlobalBuffer((__gm__ float*)z + (1 - GetBlockIdx()) * step, N);
#if MISTAKE == 3
    pipe->InitBuffer(inX, 16, N * sizeof(float) * 4);  // more than the UBuffer has
#else
    pipe->InitBuffer(inX, 2, N * sizeof(float));
#endif
    pipe->InitBuffer(inY, 2, N * sizeof(float));
    pipe->InitBuffer(outZ, 2, N * sizeof(float));
#if MISTAKE != 4
    pipe->InitBuffer(calc, N * sizeof(float));
#endif
  }
  __aicore__ inline void Process() {
    CopyIn();
    Compute();
    CopyOut();
#if MISTAKE == 5 || MISTAKE == 17
#if MISTAKE == 17
    SyncAll();  // no mistake: all are there
#endif
    LocalTensor<float> theirs = inX.AllocTensor<float>();
    DataCopy(theirs, other, N);  // another core's, whether it is there or not
    inX.EnQue(theirs);
    theirs = inX.DeQue<float>();
    inX.FreeTensor(theirs);
#endif
#if MISTAKE == 6
    if (GetBlockIdx() == 0) SyncAll();  // not all come
#endif
  }

 private:
  __aicore__ inline void CopyIn() {
    LocalTensor<float> x = inX.AllocTensor<float>(), y = inY.AllocTensor<float>();
#if MISTAKE == 7
    DataCopy(x, xg, N - 23);  // no whole blocks
#else
    DataCopy(x, xg, N);
#endif
#if MISTAKE == 8
    DataCopy(y[3], yg, N - 8);  // within a block
#else
    DataCopy(y, yg, N);
#endif
#if MISTAKE == 9
    x_ = x;  // without a queue
    y_ = y;
#else
    inX.EnQue(x);
    inY.EnQue(y);
#endif
  }
  __aicore__ inline void Compute() {
#if MISTAKE == 9
    LocalTensor<float> x = x_, y = y_;
#else
    LocalTensor<float> x = inX.DeQue<float>(), y = inY.DeQue<float>();
#endif
    LocalTensor<float> z = outZ.AllocTensor<float>(), c = calc.Get<float>();
#if MISTAKE == 10
    Muls(c, x, 2.0f, 128, N / 64, {1, 1, 8, 8});  // 64 elements a repeat
#elif MISTAKE == 11
    Muls(c, x[1], 2.0f, 64);  // within a block
#elif MISTAKE != 12  // c is never written
    Muls(c, x, 2.0f, N);
#endif
    PipeBarrier<PIPE_V>();
    Add(z, c, y, N);
#if MISTAKE == 13
    SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
    WaitFlag<HardEvent::V_MTE3>(EVENT_ID1);  // another one
#endif
#if MISTAKE == 14
    DataCopy(zg, z, N);  // before it is there
#endif
    outZ.EnQue(z);
    inX.FreeTensor(x);
#if MISTAKE == 15
    inX.FreeTensor(x);  // twice
#endif
    inY.FreeTensor(y);
  }
  __aicore__ inline void CopyOut() {
    LocalTensor<float> z = outZ.DeQue<float>();
    DataCopy(zg, z, N);
#if MISTAKE == 16
    DataCopy(zg, outZ.DeQue<float>(), N);  // nothing is in the queue
#endif
    outZ.FreeTensor(z);
  }

  GlobalTensor<float> xg, yg, zg, other;
  TQue<QuePosition::VECIN, 1> inX, inY;
  TQue<QuePosition::VECOUT, 1> outZ;
  TBuf<> calc;
  LocalTensor<float> x_, y_;
};

extern "C" __global__ __aicore__ void newcomers(GM_ADDR x, GM_ADDR y, GM_ADDR z) {
  TPipe pipe;
  KernelAdd op;
  op.Init(x, y, z, &pipe);
  op.Process();
}
