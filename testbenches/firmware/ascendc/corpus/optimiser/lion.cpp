// Lion: the sign of a mean of momentum and gradient, with decay; parameters in bfloat16_t beside a master
// copy.
#include "kernel_operator.h"
constexpr int32_t BUFFER_NUM = 2;

struct LionTiling {
  uint32_t total, tile;  // whole tiles, but for the last; tile: a multiple of 64
  float lr, beta1, beta2, decay;
};

class KernelLion {
 public:
  __aicore__ inline KernelLion() {}
  __aicore__ inline void Init(GM_ADDR param, GM_ADDR master, GM_ADDR grad, GM_ADDR momentum, LionTiling t,
                              AscendC::TPipe* pipe) {
    t_ = t;
    paramGm.SetGlobalBuffer((__gm__ bfloat16_t*)param, t.total);
    masterGm.SetGlobalBuffer((__gm__ float*)master, t.total);
    gradGm.SetGlobalBuffer((__gm__ bfloat16_t*)grad, t.total);
    momentumGm.SetGlobalBuffer((__gm__ float*)momentum, t.total);
    pipe->InitBuffer(inQueueGrad, BUFFER_NUM, t.tile * sizeof(bfloat16_t));
    pipe->InitBuffer(inQueueState, BUFFER_NUM, 2 * t.tile * sizeof(float));
    pipe->InitBuffer(outQueueState, BUFFER_NUM, 2 * t.tile * sizeof(float));
    pipe->InitBuffer(outQueueParam, BUFFER_NUM, t.tile * sizeof(bfloat16_t));
    pipe->InitBuffer(calcBuf, 2 * t.tile * sizeof(float));
    pipe->InitBuffer(tmpBuf, 8 * 1024);
  }
  __aicore__ inline void Process() {
    const uint32_t tiles = AscendC::CeilDivision(t_.total, t_.tile);
    for (uint32_t i = AscendC::GetBlockIdx(); i < tiles; i += AscendC::GetBlockNum()) {
      const uint32_t n = i + 1 == tiles ? t_.total - i * t_.tile : t_.tile;
      CopyIn(i * t_.tile, n);
      Compute(n);
      CopyOut(i * t_.tile, n);
    }
  }

 private:
  __aicore__ inline void CopyIn(uint32_t first, uint32_t n) {
    AscendC::LocalTensor<bfloat16_t> grad = inQueueGrad.AllocTensor<bfloat16_t>();
    AscendC::LocalTensor<float> state = inQueueState.AllocTensor<float>();
    AscendC::DataCopyExtParams of16{1, n * static_cast<uint32_t>(sizeof(bfloat16_t)), 0, 0, 0};
    AscendC::DataCopyExtParams of32{1, n * static_cast<uint32_t>(sizeof(float)), 0, 0, 0};
    AscendC::DataCopyPad(grad, gradGm[first], of16, AscendC::DataCopyPadExtParams<bfloat16_t>());
    AscendC::DataCopyPad(state, masterGm[first], of32, AscendC::DataCopyPadExtParams<float>());
    AscendC::DataCopyPad(state[t_.tile], momentumGm[first], of32, AscendC::DataCopyPadExtParams<float>());
    inQueueGrad.EnQue(grad);
    inQueueState.EnQue(state);
  }
  __aicore__ inline void Compute(uint32_t n) {
    AscendC::LocalTensor<bfloat16_t> grad = inQueueGrad.DeQue<bfloat16_t>();
    AscendC::LocalTensor<float> state = inQueueState.DeQue<float>(), out = outQueueState.AllocTensor<float>();
    AscendC::LocalTensor<bfloat16_t> param = outQueueParam.AllocTensor<bfloat16_t>();
    AscendC::LocalTensor<float> g = calcBuf.Get<float>(), update = g[t_.tile], master = state,
                                momentum = state[t_.tile], newMomentum = out[t_.tile];
    AscendC::Cast(g, grad, AscendC::RoundMode::CAST_NONE, n);
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Muls(update, momentum, t_.beta1, n);
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Axpy(update, g, 1 - t_.beta1, n);
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Sign(update, update, tmpBuf.Get<uint8_t>(), n);
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Muls(out, master, 1 - t_.lr * t_.decay, n);
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Axpy(out, update, -t_.lr, n);
    AscendC::Muls(newMomentum, momentum, t_.beta2, n);
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Axpy(newMomentum, g, 1 - t_.beta2, n);
    AscendC::Cast(param, out, AscendC::RoundMode::CAST_RINT, n);
    outQueueState.EnQue(out);
    outQueueParam.EnQue(param);
    inQueueGrad.FreeTensor(grad);
    inQueueState.FreeTensor(state);
  }
  __aicore__ inline void CopyOut(uint32_t first, uint32_t n) {
    AscendC::LocalTensor<float> out = outQueueState.DeQue<float>();
    AscendC::LocalTensor<bfloat16_t> param = outQueueParam.DeQue<bfloat16_t>();
    AscendC::DataCopyExtParams of16{1, n * static_cast<uint32_t>(sizeof(bfloat16_t)), 0, 0, 0};
    AscendC::DataCopyExtParams of32{1, n * static_cast<uint32_t>(sizeof(float)), 0, 0, 0};
    AscendC::DataCopyPad(masterGm[first], out, of32);
    AscendC::DataCopyPad(momentumGm[first], out[t_.tile], of32);
    AscendC::DataCopyPad(paramGm[first], param, of16);
    outQueueState.FreeTensor(out);
    outQueueParam.FreeTensor(param);
  }

  LionTiling t_;
  AscendC::GlobalTensor<bfloat16_t> paramGm, gradGm;
  AscendC::GlobalTensor<float> masterGm, momentumGm;
  AscendC::TQue<AscendC::QuePosition::VECIN, BUFFER_NUM> inQueueGrad, inQueueState;
  AscendC::TQue<AscendC::QuePosition::VECOUT, BUFFER_NUM> outQueueState, outQueueParam;
  AscendC::TBuf<AscendC::TPosition::VECCALC> calcBuf, tmpBuf;
};

extern "C" __global__ __aicore__ void lion(GM_ADDR param, GM_ADDR master, GM_ADDR grad, GM_ADDR momentum,
                                           GM_ADDR workspace, GM_ADDR tiling) {
  REGISTER_TILING_DEFAULT(LionTiling);
  GET_TILING_DATA(t, tiling);
  AscendC::TPipe pipe;
  KernelLion op;
  op.Init(param, master, grad, momentum, t, &pipe);
  op.Process();
}
