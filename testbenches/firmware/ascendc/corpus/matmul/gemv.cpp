// y = W x of half with sums in FP32 on vector cores: rows of W in pieces, products added to one repeat each.
#include "kernel_operator.h"
using namespace AscendC;

struct GemvTiling {
  uint32_t m, k, rows;  // k: a multiple of 64; rows of a core
};

extern "C" __global__ __aicore__ void gemv(GM_ADDR w, GM_ADDR x, GM_ADDR y, GM_ADDR workspace,
                                           GM_ADDR tiling) {
  GET_TILING_DATA_WITH_STRUCT(GemvTiling, t, tiling);
  TPipe pipe;
  TQue<TPosition::VECIN, 2> in;
  TQue<TPosition::VECIN, 1> whole;
  TQue<TPosition::VECOUT, 1> out;
  TBuf<> acc;
  pipe.InitBuffer(in, 2, t.k * sizeof(half));
  pipe.InitBuffer(whole, 1, t.k * sizeof(half));
  pipe.InitBuffer(out, 1, AlignUp(t.rows, 8) * sizeof(float));
  pipe.InitBuffer(acc, t.rows * 64 * sizeof(float));
  GlobalTensor<half> wGm, xGm;
  GlobalTensor<float> yGm;
  const uint32_t first = GetBlockIdx() * t.rows, rows = first >= t.m           ? 0
                                                        : t.m - first < t.rows ? t.m - first
                                                                               : t.rows;
  if (rows == 0) return;
  wGm.SetGlobalBuffer((__gm__ half*)w + (uint64_t)first * t.k);
  xGm.SetGlobalBuffer((__gm__ half*)x, t.k);
  yGm.SetGlobalBuffer((__gm__ float*)y + first);
  LocalTensor<half> xl = whole.AllocTensor<half>();
  DataCopy(xl, xGm, t.k);
  whole.EnQue(xl);
  xl = whole.DeQue<half>();
  LocalTensor<float> sums = acc.Get<float>();
  Duplicate(sums, 0.0f, rows * 64);
  for (uint32_t row = 0; row < rows; ++row) {
    LocalTensor<half> wl = in.AllocTensor<half>();
    DataCopy(wl, wGm[row * t.k], t.k);
    in.EnQue(wl);
    wl = in.DeQue<half>();
    PipeBarrier<PIPE_V>();
    // Every repeat onto the same 64 sums.
    MulAddDst<float, half>(sums[row * 64], wl, xl, 64, t.k / 64, {1, 1, 1, 0, 4, 4});
    in.FreeTensor(wl);
  }
  PipeBarrier<PIPE_V>();
  LocalTensor<float> yl = out.AllocTensor<float>();
  WholeReduceSum<float>(yl, sums, 64, rows, 1, 1, 8);
  out.EnQue(yl);
  yl = out.DeQue<float>();
  DataCopyPad(yGm, yl, DataCopyParams{1, (uint16_t)(rows * sizeof(float)), 0, 0});
  out.FreeTensor(yl);
  whole.FreeTensor(xl);
}
