// The gradient of a layer norm by the library's calls: of x row by row, of gamma and beta by sums over all
// rows, which the cores add up in memory.
#include "kernel_operator.h"
#include "lib/normalization/layernormgrad.h"
using namespace AscendC;

struct LayerNormGradOpTiling {
  uint32_t rows, n, perCore;  // n: a multiple of 8
  float epsilon;
};

extern "C" __global__ __aicore__ void layer_norm_grad(GM_ADDR dy, GM_ADDR x, GM_ADDR variance, GM_ADDR mean,
                                                      GM_ADDR gamma, GM_ADDR dx, GM_ADDR dgamma,
                                                      GM_ADDR dbeta, GM_ADDR workspace, GM_ADDR tiling) {
  REGISTER_TILING_DEFAULT(LayerNormGradOpTiling);
  GET_TILING_DATA_WITH_STRUCT(LayerNormGradOpTiling, t, tiling);
  TPipe pipe;
  const uint32_t first = GetBlockIdx() * t.perCore;
  if (first >= t.rows) return;
  const uint32_t rows = t.rows - first < t.perCore ? t.rows - first : t.perCore, all = rows * t.n;
  GlobalTensor<float> dyGm, xGm, varianceGm, meanGm, gammaGm, dxGm, dgammaGm, dbetaGm;
  dyGm.SetGlobalBuffer((__gm__ float*)dy + first * t.n);
  xGm.SetGlobalBuffer((__gm__ float*)x + first * t.n);
  varianceGm.SetGlobalBuffer((__gm__ float*)variance + first);
  meanGm.SetGlobalBuffer((__gm__ float*)mean + first);
  gammaGm.SetGlobalBuffer((__gm__ float*)gamma);
  dxGm.SetGlobalBuffer((__gm__ float*)dx + first * t.n);
  dgammaGm.SetGlobalBuffer((__gm__ float*)dgamma);
  dbetaGm.SetGlobalBuffer((__gm__ float*)dbeta);

  TQue<TPosition::VECIN, 1> inQueue;
  TQue<TPosition::VECOUT, 1> outQueue, sumQueue;
  TBuf<TPosition::VECCALC> hat, tmp;
  const uint32_t words = AlignUp(t.perCore, 8u);
  pipe.InitBuffer(inQueue, 1, (2 * t.perCore * t.n + 2 * words + t.n) * sizeof(float));
  pipe.InitBuffer(outQueue, 1, t.perCore * t.n * sizeof(float));
  pipe.InitBuffer(sumQueue, 1, 2 * t.n * sizeof(float));
  pipe.InitBuffer(hat, t.perCore * t.n * sizeof(float));
  pipe.InitBuffer(tmp, 8 * 1024);

  LocalTensor<float> in = inQueue.AllocTensor<float>();
  LocalTensor<float> dyL = in, xL = dyL[t.perCore * t.n], varianceL = xL[t.perCore * t.n],
                     meanL = varianceL[words], gammaL = meanL[words];
  DataCopy(dyL, dyGm, all);
  DataCopy(xL, xGm, all);
  const DataCopyExtParams some{1, static_cast<uint32_t>(rows * sizeof(float)), 0, 0, 0};
  const DataCopyPadExtParams<float> pad{true, 0, static_cast<uint8_t>(AlignUp(rows, 8u) - rows), 0.0f};
  DataCopyPad(varianceL, varianceGm, some, pad);
  DataCopyPad(meanL, meanGm, some, pad);
  DataCopy(gammaL, gammaGm, t.n);
  inQueue.EnQue(in);
  inQueue.DeQue<float>();

  LayerNormGradTiling gradTiling;
  gradTiling.bLength = 1;
  gradTiling.sLength = rows;
  gradTiling.hLength = t.n;
  gradTiling.originalHLength = t.n;
  LocalTensor<float> out = outQueue.AllocTensor<float>(), normalised = hat.Get<float>();
  LocalTensor<uint8_t> temporary = tmp.Get<uint8_t>();
  LayerNormGrad<float, false>(out, normalised, dyL, xL, varianceL, meanL, gammaL, temporary, t.epsilon,
                              gradTiling, {DataFormat::ND});
  PipeBarrier<PIPE_V>();
  LayerNormGradBetaTiling betaTiling;
  betaTiling.bLength = 1;
  betaTiling.sLength = rows;
  betaTiling.hLength = t.n;
  betaTiling.originalHLength = t.n;
  LocalTensor<float> sums = sumQueue.AllocTensor<float>();
  LayerNormGradBeta<float>(sums, sums[t.n], normalised, dyL, temporary, betaTiling);
  outQueue.EnQue(out);
  sumQueue.EnQue(sums);
  out = outQueue.DeQue<float>();
  DataCopy(dxGm, out, all);
  sums = sumQueue.DeQue<float>();
  SetAtomicAdd<float>();
  DataCopy(dgammaGm, sums, t.n);
  DataCopy(dbetaGm, sums[t.n], t.n);
  SetAtomicNone();
  outQueue.FreeTensor(out);
  sumQueue.FreeTensor(sums);
  inQueue.FreeTensor(in);
}
