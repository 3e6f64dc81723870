// The 2-norm of a whole tensor: each core adds its sum of squares to one word of the workspace, the first one
// takes the root once all have.
#include "kernel_operator.h"

using namespace AscendC;

struct NormTiling {
  uint32_t total;
  uint32_t tile;
};

extern "C" __global__ __aicore__ void norm_of_all(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIV_1_0);
  SetSysWorkspace(workspace);
  GET_TILING_DATA_WITH_STRUCT(NormTiling, t, tiling);
  TPipe pipe;
  TQue<TPosition::VECIN, 2> in;
  TBuf<TPosition::VECCALC> square, partial, work;
  pipe.InitBuffer(in, 2, t.tile * sizeof(half));
  pipe.InitBuffer(square, t.tile * sizeof(float));
  pipe.InitBuffer(work, t.tile * sizeof(float));
  pipe.InitBuffer(partial, 64);
  GlobalTensor<half> from;
  GlobalTensor<float> sum, to;
  from.SetGlobalBuffer((__gm__ half*)x, t.total);
  sum.SetGlobalBuffer((__gm__ float*)GetUserWorkspace(workspace), 8);
  to.SetGlobalBuffer((__gm__ float*)y, 1);

  if (GetBlockIdx() == 0) InitGlobalMemory(sum, 8, 0.0f);
  SyncAll();

  LocalTensor<float> f = square.Get<float>(), all = partial.Get<float>(), one = all[8];
  Duplicate<float>(all, 0.0f, 8);
  for (uint32_t at = GetBlockIdx() * t.tile; at < t.total; at += GetBlockNum() * t.tile) {
    const uint32_t n = t.total - at < t.tile ? t.total - at : t.tile;
    LocalTensor<half> h = in.AllocTensor<half>();
    DataCopyPad(h, from[at], DataCopyExtParams{1, n * (uint32_t)sizeof(half), 0, 0, 0},
                DataCopyPadExtParams<half>{false, 0, 0, 0});
    in.EnQue(h);
    h = in.DeQue<half>();
    Cast(f, h, RoundMode::CAST_NONE, n);
    PipeBarrier<PIPE_V>();
    Mul(f, f, f, n);
    PipeBarrier<PIPE_V>();
    ReduceSum<float>(one, f, work.Get<float>(), n);
    PipeBarrier<PIPE_V>();
    Add(all, all, one, 1);
    PipeBarrier<PIPE_V>();
    in.FreeTensor(h);
  }
  SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
  WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
  SetAtomicAdd<float>();
  DataCopy(sum, all, 8);
  SetAtomicNone();
  SyncAll();
  if (GetBlockIdx() == 0) {
    DataCopy(all, sum, 8);
    SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
    WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
    Sqrt(all, all, 8);
    SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
    WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
    DataCopyPad(to, all, DataCopyExtParams{1, sizeof(float), 0, 0, 0});
  }
}
