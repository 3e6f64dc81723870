// The largest of windows of 2 x 2, stride 2, of [rows, width, 16 channels] in half, and their mean: strides
// of blocks take every other place.
#include "kernel_operator.h"
using namespace AscendC;

struct PoolTiling {
  uint32_t rows, width;  // width: a multiple of 16, rows even
};

extern "C" __global__ __aicore__ void max_pool(GM_ADDR x, GM_ADDR most, GM_ADDR mean, GM_ADDR workspace,
                                               GM_ADDR tiling) {
  GET_TILING_DATA_WITH_STRUCT(PoolTiling, t, tiling);
  TPipe pipe;
  TQue<TPosition::VECIN, 1> in;
  TQue<TPosition::VECOUT, 1> out;
  TBuf<> tmp;
  const uint32_t row = t.width * 16, half_row = row / 2;
  pipe.InitBuffer(in, 2, 2 * row * sizeof(half));
  pipe.InitBuffer(out, 2, 2 * half_row * sizeof(half));
  pipe.InitBuffer(tmp, row * sizeof(half));
  GlobalTensor<half> xGm, mostGm, meanGm;
  xGm.SetGlobalBuffer((__gm__ half*)x);
  mostGm.SetGlobalBuffer((__gm__ half*)most);
  meanGm.SetGlobalBuffer((__gm__ half*)mean);
  for (uint32_t r = GetBlockIdx(); r < t.rows / 2; r += GetBlockNum()) {
    LocalTensor<half> a = in.AllocTensor<half>();
    DataCopy(a, xGm[2 * r * row], 2 * row);
    in.EnQue(a);
    a = in.DeQue<half>();
    LocalTensor<half> b = out.AllocTensor<half>(), w = tmp.Get<half>(), second = b[half_row];
    const uint8_t repeats = t.width / 16;
    // Of both rows, then of neighbours: 8 blocks of a repeat from 16.
    Max(w, a, a[row], row);
    PipeBarrier<PIPE_V>();
    Max(b, w, w[16], 128, repeats, BinaryRepeatParams(1, 2, 2, 8, 16, 16));
    PipeBarrier<PIPE_V>();
    Add(w, a, a[row], row);
    PipeBarrier<PIPE_V>();
    Add(second, w, w[16], 128, repeats, BinaryRepeatParams(1, 2, 2, 8, 16, 16));
    PipeBarrier<PIPE_V>();
    Muls(second, second, half(0.25f), half_row);
    out.EnQue(b);
    in.FreeTensor(a);
    b = out.DeQue<half>();
    DataCopy(mostGm[r * half_row], b, half_row);
    DataCopy(meanGm[r * half_row], b[half_row], half_row);
    out.FreeTensor(b);
  }
}
