// Pieces of two rows out of three copied side by side, and back into the middle of another matrix.
#include "kernel_operator.h"
using namespace AscendC;

struct SliceTiling {
  uint32_t width, outWidth;  // of x and y: at least 71 and 64
};

extern "C" __global__ __aicore__ void slice_copy(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling) {
  GET_TILING_DATA_WITH_STRUCT(SliceTiling, t, tiling);
  TPipe pipe;
  TQueBind<TPosition::VECIN, TPosition::VECOUT, 1> que;
  pipe.InitBuffer(que, 1, 96 * sizeof(float));
  GlobalTensor<float> from, to;
  from.SetGlobalBuffer((__gm__ float*)x);
  to.SetGlobalBuffer((__gm__ float*)y);
  LocalTensor<float> local = que.AllocTensor<float>();
  // Two pieces of 24 in rows 0 and 2.
  SliceInfo source[] = {{16, 70, 7, 3, t.width}, {0, 2, 1, 1, 3}};
  SliceInfo packed[] = {{0, 47, 0, 3, 48}, {0, 1, 0, 1, 2}};
  DataCopy(local, from, packed, source, 2);
  que.EnQue(local);
  local = que.DeQue<float>();
  SliceInfo target[] = {{8, 55, 0, 3, t.outWidth}, {1, 2, 0, 1, 4}};
  DataCopy(to, local, target, packed, 2);
  que.FreeTensor(local);
}
