// Tokens from their experts' rows again: the rows' places, their weights, a bias of the expert and a skip
// added.
#include "kernel_operator.h"
using namespace AscendC;

struct FinalizeTiling {
  uint32_t tokens, k, hidden;  // hidden: a multiple of 64
};

template <typename T>
__aicore__ inline void Finalize(GM_ADDR rows, GM_ADDR skip, GM_ADDR bias, GM_ADDR weights, GM_ADDR places,
                                GM_ADDR ids, GM_ADDR y, const FinalizeTiling& t) {
  TPipe pipe;
  TQue<TPosition::VECIN, 1> in, inBias, inSkip;
  TQue<TPosition::VECOUT, 1> out;
  TBuf<> acc, wide;
  pipe.InitBuffer(in, 2, t.hidden * sizeof(T));
  pipe.InitBuffer(inBias, 2, t.hidden * sizeof(T));
  pipe.InitBuffer(inSkip, 2, t.hidden * sizeof(T));
  pipe.InitBuffer(out, 2, t.hidden * sizeof(T));
  pipe.InitBuffer(acc, t.hidden * sizeof(float));
  pipe.InitBuffer(wide, 2 * t.hidden * sizeof(float));
  GlobalTensor<T> rowsGm, skipGm, biasGm, yGm;
  GlobalTensor<float> weightsGm;
  GlobalTensor<int32_t> placesGm, idsGm;
  rowsGm.SetGlobalBuffer((__gm__ T*)rows);
  skipGm.SetGlobalBuffer((__gm__ T*)skip);
  biasGm.SetGlobalBuffer((__gm__ T*)bias);
  yGm.SetGlobalBuffer((__gm__ T*)y);
  weightsGm.SetGlobalBuffer((__gm__ float*)weights);
  placesGm.SetGlobalBuffer((__gm__ int32_t*)places);
  idsGm.SetGlobalBuffer((__gm__ int32_t*)ids);
  const int32_t n = t.hidden;
  LocalTensor<float> sum = acc.Get<float>(), f = wide.Get<float>(), b = f[n];
  for (uint32_t token = GetBlockIdx(); token < t.tokens; token += GetBlockNum()) {
    LocalTensor<T> s = inSkip.AllocTensor<T>();
    DataCopy(s, skipGm[token * n], n);
    inSkip.EnQue(s);
    s = inSkip.DeQue<T>();
    Cast(sum, s, RoundMode::CAST_NONE, n);
    inSkip.FreeTensor(s);
    for (uint32_t i = 0; i < t.k; ++i) {
      const int32_t place = placesGm.GetValue(token * t.k + i), expert = idsGm.GetValue(token * t.k + i);
      if (place < 0) continue;  // dropped
      LocalTensor<T> row = in.AllocTensor<T>(), own = inBias.AllocTensor<T>();
      DataCopy(row, rowsGm[place * n], n);
      DataCopy(own, biasGm[expert * n], n);
      in.EnQue(row);
      inBias.EnQue(own);
      row = in.DeQue<T>();
      own = inBias.DeQue<T>();
      PipeBarrier<PIPE_V>();
      Cast(f, row, RoundMode::CAST_NONE, n);
      Cast(b, own, RoundMode::CAST_NONE, n);
      PipeBarrier<PIPE_V>();
      Add(f, f, b, n);
      PipeBarrier<PIPE_V>();
      Axpy(sum, f, weightsGm.GetValue(token * t.k + i), n);
      PipeBarrier<PIPE_V>();
      in.FreeTensor(row);
      inBias.FreeTensor(own);
    }
    LocalTensor<T> o = out.AllocTensor<T>();
    Cast(o, sum, RoundMode::CAST_RINT, n);
    out.EnQue(o);
    o = out.DeQue<T>();
    DataCopy(yGm[token * n], o, n);
    out.FreeTensor(o);
  }
}

extern "C" __global__ __aicore__ void finalize_routing(GM_ADDR rows, GM_ADDR skip, GM_ADDR bias,
                                                       GM_ADDR weights, GM_ADDR places, GM_ADDR ids,
                                                       GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling) {
  GET_TILING_DATA_WITH_STRUCT(FinalizeTiling, t, tiling);
  if constexpr (std::is_same<DTYPE_Y, bfloat16_t>::value) {
    Finalize<bfloat16_t>(rows, skip, bias, weights, places, ids, y, t);
  } else {
    Finalize<half>(rows, skip, bias, weights, places, ids, y, t);
  }
}
