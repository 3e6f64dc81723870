// Running sums over a whole tensor: rows by the library's call, the sum before a core's part handed on from
// core to core by a flag in memory.
#include "kernel_operator.h"
#include "lib/math/cumsum.h"
using namespace AscendC;

struct CumSumTiling {
  uint32_t perCore;  // a multiple of 8
};

constexpr CumSumConfig ALONG_ROW{true, false, false};

extern "C" __global__ __aicore__ void cum_sum(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIV_1_0);
  GET_TILING_DATA_WITH_STRUCT(CumSumTiling, t, tiling);
  const uint32_t n = t.perCore;
  const int32_t core = GetBlockIdx();
  TPipe pipe;
  TBuf<> in, out, last, sync, carry;
  pipe.InitBuffer(in, n * sizeof(float));
  pipe.InitBuffer(out, n * sizeof(float));
  pipe.InitBuffer(last, n * sizeof(float));
  pipe.InitBuffer(sync, 32);
  pipe.InitBuffer(carry, 32);
  GlobalTensor<float> xGm, yGm, carried;
  GlobalTensor<int32_t> flags;
  xGm.SetGlobalBuffer((__gm__ float*)x + core * n, n);
  yGm.SetGlobalBuffer((__gm__ float*)y + core * n, n);
  flags.SetGlobalBuffer((__gm__ int32_t*)workspace);
  carried.SetGlobalBuffer((__gm__ float*)workspace + GetBlockNum() * 8);
  LocalTensor<float> xl = in.Get<float>(), yl = out.Get<float>(), c = carry.Get<float>();
  LocalTensor<int32_t> s = sync.Get<int32_t>();
  DataCopy(xl, xGm, n);
  PipeBarrier<PIPE_ALL>();
  CumSum<float, ALONG_ROW>(yl, last.Get<float>(), xl, {1, n});
  float before = 0;
  if (core != 0) {
    IBWait(flags, s, core - 1, 0);
    DataCopy(c, carried[(core - 1) * 8], 8);
    PipeBarrier<PIPE_ALL>();
    before = c.GetValue(0);
    Adds(yl, yl, before, n);
  }
  PipeBarrier<PIPE_ALL>();
  if (core + 1 < GetBlockNum()) {
    Duplicate(c, yl.GetValue(n - 1), 8);
    PipeBarrier<PIPE_ALL>();
    DataCopy(carried[core * 8], c, 8);
    PipeBarrier<PIPE_ALL>();
    IBSet(flags, s, core, 0);
  }
  DataCopy(yGm, yl, n);
}
