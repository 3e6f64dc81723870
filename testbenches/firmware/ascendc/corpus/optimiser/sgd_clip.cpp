// Gradient clipping by the norm over all cores, then momentum and step, in one launch: partial sums to the
// workspace, a barrier, everyone adds all of them in order.
#include "kernel_operator.h"
using namespace AscendC;

struct SgdTiling {
  int32_t total, perCore;  // perCore: a multiple of 64, at most 4096
  float lr, momentum, most;
};

// As kernels without the macros read it.
__aicore__ inline void CopyTilingOf(SgdTiling* to, GM_ADDR from) {
  auto words = reinterpret_cast<uint32_t*>(to);
  auto source = reinterpret_cast<__gm__ uint32_t*>(from);
  for (uint32_t i = 0; i < sizeof(SgdTiling) / sizeof(uint32_t); ++i, ++words) *words = *(source + i);
}

extern "C" __global__ __aicore__ void sgd_clip(GM_ADDR param, GM_ADDR grad, GM_ADDR velocity,
                                               GM_ADDR workspace, GM_ADDR tiling) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIV_1_0);
  SgdTiling t;
  CopyTilingOf(&t, tiling);
  TPipe pipe;
  TBuf<> p, g, v, w, small;
  pipe.InitBuffer(p, t.perCore * sizeof(float));
  pipe.InitBuffer(g, t.perCore * sizeof(float));
  pipe.InitBuffer(v, t.perCore * sizeof(float));
  pipe.InitBuffer(w, t.perCore * sizeof(float));
  pipe.InitBuffer(small, 64 * 32);
  const int32_t first = GetBlockIdx() * t.perCore,
                n = t.total - first < t.perCore ? t.total - first : t.perCore;
  GlobalTensor<float> pGm, gGm, vGm, sums;
  pGm.SetGlobalBuffer((__gm__ float*)param + first, n);
  gGm.SetGlobalBuffer((__gm__ float*)grad + first, n);
  vGm.SetGlobalBuffer((__gm__ float*)velocity + first, n);
  sums.SetGlobalBuffer((__gm__ float*)workspace, GetBlockNum() * 8);
  LocalTensor<float> pl = p.Get<float>(), gl = g.Get<float>(), vl = v.Get<float>(), wl = w.Get<float>(),
                     s = small.Get<float>();
  const DataCopyExtParams copy{1, (uint32_t)(n * sizeof(float)), 0, 0, 0};
  const DataCopyPadExtParams<float> pad{false, 0, 0, 0.0f};
  DataCopyPad(gl, gGm, copy, pad);
  DataCopyPad(pl, pGm, copy, pad);
  DataCopyPad(vl, vGm, copy, pad);
  SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
  WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
  SetMaskCount();
  SetVectorMask<float, MaskMode::COUNTER>(n);
  Mul<float, false>(wl, gl, gl, MASK_PLACEHOLDER, 1, {1, 1, 1, 8, 8, 8});
  PipeBarrier<PIPE_V>();
  SetMaskNorm();
  ResetMask();
  Duplicate(s, 0.0f, 8);
  PipeBarrier<PIPE_V>();
  ReduceSum(s, wl, wl, n);
  SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
  WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
  DataCopy(sums[GetBlockIdx() * 8], s, 8);
  SyncAll();
  DataCopy(s, sums, GetBlockNum() * 8);
  SetFlag<HardEvent::MTE2_S>(EVENT_ID0);
  WaitFlag<HardEvent::MTE2_S>(EVENT_ID0);
  float all = 0;
  for (uint32_t core = 0; core < GetBlockNum(); ++core) all += s(core * 8);
  const float norm = std::sqrt(all), factor = norm > t.most ? t.most / norm : 1.0f;
  // v = momentum * v + factor * g; p -= lr * v
  Muls(vl, vl, t.momentum, n);
  PipeBarrier<PIPE_V>();
  Axpy(vl, gl, factor, n);
  PipeBarrier<PIPE_V>();
  Axpy(pl, vl, -t.lr, n);
  SetFlag<HardEvent::V_MTE3>(EVENT_ID1);
  WaitFlag<HardEvent::V_MTE3>(EVENT_ID1);
  DataCopyPad(vGm, vl, copy);
  DataCopyPad(pGm, pl, copy);
}
