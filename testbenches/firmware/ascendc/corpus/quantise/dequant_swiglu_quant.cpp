// int32 sums of a product to int8 again: times the scales of columns and rows, silu of the left half times
// the right one, quantised with a scale for each row.
#include "kernel_operator.h"
#include "lib/activation/swiglu.h"
#include "lib/quantization/ascend_quant.h"

using namespace AscendC;

struct DequantSwigluQuantTiling {
  uint32_t rows, h;  // rows of 2 h, h a multiple of 32
};

extern "C" __global__ __aicore__ void dequant_swiglu_quant(GM_ADDR x, GM_ADDR weightScale,
                                                           GM_ADDR activationScale, GM_ADDR y, GM_ADDR scale,
                                                           GM_ADDR workspace, GM_ADDR tiling) {
  GET_TILING_DATA_WITH_STRUCT(DequantSwigluQuantTiling, t, tiling);
  const uint32_t n = t.h;
  TPipe pipe;
  TQue<TPosition::VECIN, 2> in;
  TQue<TPosition::VECOUT, 2> out;
  TBuf<> weights, left, wide, tmp;
  pipe.InitBuffer(in, 2, 2 * n * sizeof(int32_t));
  pipe.InitBuffer(out, 2, n + 32);
  pipe.InitBuffer(weights, 2 * n * sizeof(float));
  pipe.InitBuffer(left, 2 * n * sizeof(float));
  pipe.InitBuffer(wide, n * sizeof(float));
  pipe.InitBuffer(tmp, 16 * 1024);
  GlobalTensor<int32_t> xGm;
  GlobalTensor<float> wGm, aGm, sGm;
  GlobalTensor<int8_t> yGm;
  xGm.SetGlobalBuffer((__gm__ int32_t*)x);
  wGm.SetGlobalBuffer((__gm__ float*)weightScale);
  aGm.SetGlobalBuffer((__gm__ float*)activationScale);
  sGm.SetGlobalBuffer((__gm__ float*)scale);
  yGm.SetGlobalBuffer((__gm__ int8_t*)y);
  LocalTensor<float> w = weights.Get<float>(), f = left.Get<float>(), g = wide.Get<float>();
  DataCopy(w, wGm, 2 * n);
  SetFlag<HardEvent::MTE2_V>(EVENT_ID4);
  WaitFlag<HardEvent::MTE2_V>(EVENT_ID4);
  for (uint32_t row = GetBlockIdx(); row < t.rows; row += GetBlockNum()) {
    LocalTensor<int32_t> sums = in.AllocTensor<int32_t>();
    DataCopy(sums, xGm[row * 2 * n], 2 * n);
    in.EnQue(sums);
    sums = in.DeQue<int32_t>();
    Cast(f, sums, RoundMode::CAST_NONE, 2 * n);
    in.FreeTensor(sums);
    PipeBarrier<PIPE_V>();
    Mul(f, f, w, 2 * n);
    PipeBarrier<PIPE_V>();
    Muls(f, f, aGm.GetValue(row), 2 * n);
    PipeBarrier<PIPE_V>();
    const float beta = 1.0f;
    SwiGLU<float, false>(g, f[n], f, beta, tmp.Get<uint8_t>(), n);
    PipeBarrier<PIPE_V>();
    Abs(f, g, n);
    PipeBarrier<PIPE_V>();
    ReduceMax(f, f, f[n], n);
    SetFlag<HardEvent::V_S>(EVENT_ID4);
    WaitFlag<HardEvent::V_S>(EVENT_ID4);
    const float most = f.GetValue(0);
    LocalTensor<int8_t> q = out.AllocTensor<int8_t>();
    AscendQuant<float>(q, g, tmp.Get<uint8_t>(), 127.0f / most, 0.0f, n);
    LocalTensor<float> one = q[n].ReinterpretCast<float>();
    Duplicate(one, most / 127.0f, 8);
    out.EnQue(q);
    q = out.DeQue<int8_t>();
    DataCopy(yGm[row * n], q, n);
    DataCopyPad(sGm[row], q[n].ReinterpretCast<float>(), {1, 4, 0, 0, 0});
    out.FreeTensor(q);
  }
}
