#include "kernel_operator.h"
#include "scale_shift_key.h"

using namespace AscendC;

template <bool NEGATE, int REPEAT>
__global__ __aicore__ void scale_shift(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling) {
  GET_TILING_DATA(t, tiling);
  TPipe pipe;
  TQue<TPosition::VECIN, 1> in;
  TQue<TPosition::VECOUT, 1> out;
  pipe.InitBuffer(in, 1, t.count * sizeof(DTYPE_X));
  pipe.InitBuffer(out, 1, t.count * sizeof(DTYPE_Y));
  GlobalTensor<DTYPE_X> from;
  GlobalTensor<DTYPE_Y> to;
  from.SetGlobalBuffer((__gm__ DTYPE_X*)x + GetBlockIdx() * t.count);
  to.SetGlobalBuffer((__gm__ DTYPE_Y*)y + GetBlockIdx() * t.count);

  LocalTensor<DTYPE_X> a = in.AllocTensor<DTYPE_X>();
  DataCopy(a, from, t.count);
  in.EnQue(a);
  a = in.DeQue<DTYPE_X>();
  LocalTensor<DTYPE_Y> b = out.AllocTensor<DTYPE_Y>();
  const float factor = (NEGATE ? -1.0f : 1.0f) * REPEAT * t.factor;
  Muls(b, a, static_cast<DTYPE_X>(factor), t.count);
  PipeBarrier<PIPE_V>();
  Adds(b, b, static_cast<DTYPE_Y>(t.offset.bias + t.shift[2]), t.count);
  in.FreeTensor(a);
  out.EnQue(b);
  b = out.DeQue<DTYPE_Y>();
  DataCopy(to, b, t.count);
  out.FreeTensor(b);
}
