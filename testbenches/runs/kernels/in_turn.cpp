// Running sums, and cores one after another: each adds its number to a list that the one before left.
#include "kernel_operator.h"

using namespace AscendC;

inline constexpr CumSumConfig kDown{false, false, true};

extern "C" __global__ __aicore__ void in_turn(GM_ADDR sums, GM_ADDR list, GM_ADDR words, GM_ADDR others) {
  TPipe pipe;
  TBuf<TPosition::VECCALC> buffer, wait;
  pipe.InitBuffer(buffer, 4096);
  pipe.InitBuffer(wait, GetBlockNum() * 32 + 32);
  LocalTensor<float> x = buffer.Get<float>(), y = x[256], last = x[512];
  LocalTensor<int32_t> ub = wait.Get<int32_t>();
  GlobalTensor<float> out;
  out.SetGlobalBuffer((__gm__ float*)sums);
  GlobalTensor<int32_t> word, order, pairs;
  word.SetGlobalBuffer((__gm__ int32_t*)words);
  order.SetGlobalBuffer((__gm__ int32_t*)list);
  pairs.SetGlobalBuffer((__gm__ int32_t*)others);

  if (GetBlockIdx() == 0) {
    CreateVecIndex(x, 1.0f, 64);  // 4 rows of 16: 1 to 64
    CumSum(y, last, x, CumSumInfo{4, 16});
    Adds(y, y, 0.5f, 64);
    PipeBarrier<PIPE_ALL>();
    DataCopy(out, y, 64);
    CumSum<float, kDown>(y, last, x, CumSumInfo{4, 16});
    DataCopy(out[64], y, 64);
    DataCopy(out[128], last, 16);
    PipeBarrier<PIPE_ALL>();
  }
  // Core 1 writes once core 0 has.
  if (GetBlockIdx() == 0) IBSet(pairs, ub, 0, 2);
  if (GetBlockIdx() == 1) IBWait(pairs, ub, 0, 2);
  if (GetBlockIdx() == 1) {
    Duplicate(x, 3.0f, 16);
    PipeBarrier<PIPE_ALL>();
    DataCopy(out[128], x, 8);
    PipeBarrier<PIPE_ALL>();
  }

  InitDetermineComputeWorkspace(word, ub);
  LocalTensor<int32_t> n = buffer.Get<int32_t>();
  for (int turn = 0; turn < 3; ++turn) {
    WaitPreBlock(word, ub);
    DataCopy(n, order, 256);
    PipeBarrier<PIPE_ALL>();
    const int32_t count = n.GetValue(0);
    n.SetValue(count + 1, 100 * turn + GetBlockIdx());
    n.SetValue(0, count + 1);
    PipeBarrier<PIPE_ALL>();
    DataCopy(order, n, 256);
    NotifyNextBlock(word, ub);
  }
}
