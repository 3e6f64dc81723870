// Rows of 1 at an index and 0 elsewhere, and where a row's index is none, of 0 alone: integers compared for
// equality, on and off value chosen; a scalar bound by value.
#include "kernel_operator.h"
using namespace AscendC;

extern "C" __global__ __aicore__ void one_hot(GM_ADDR index, GM_ADDR y, uint32_t rows, uint32_t depth,
                                              float on, float off) {
  TPipe pipe;
  TQue<TPosition::VECOUT, 2> out;
  TBuf<> place, bits, values;
  pipe.InitBuffer(out, 2, depth * sizeof(float));
  pipe.InitBuffer(place, depth * sizeof(int32_t));
  pipe.InitBuffer(bits, depth / 8 + 32);
  pipe.InitBuffer(values, depth * sizeof(float));
  GlobalTensor<int32_t> indexGm;
  GlobalTensor<float> yGm;
  indexGm.SetGlobalBuffer((__gm__ int32_t*)index, rows);
  yGm.SetGlobalBuffer((__gm__ float*)y, rows * depth);
  LocalTensor<int32_t> at = place.Get<int32_t>();
  LocalTensor<uint8_t> mask = bits.Get<uint8_t>();
  LocalTensor<float> ons = values.Get<float>();
  CreateVecIndex(at, 0, depth);
  Duplicate(ons, on, depth);
  PipeBarrier<PIPE_V>();
  for (uint32_t row = GetBlockIdx(); row < rows; row += GetBlockNum()) {
    LocalTensor<float> y1 = out.AllocTensor<float>();
    CompareScalar(mask, at, indexGm.GetValue(row), CMPMODE::EQ, depth);
    PipeBarrier<PIPE_V>();
    Select(y1, mask, ons, off, SELMODE::VSEL_TENSOR_SCALAR_MODE, depth);
    PipeBarrier<PIPE_V>();
    out.EnQue(y1);
    y1 = out.DeQue<float>();
    DataCopy(yGm[row * depth], y1, depth);
    out.FreeTensor(y1);
  }
}
