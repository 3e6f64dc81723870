// y[t] = silu(sum of w[j] * x[t - 3 + j] + bias) along tokens, each channel by itself, with the state of
// three tokens before in and out.
#include "kernel_operator.h"
using namespace AscendC;

struct CausalConvTiling {
  uint32_t tokens, channels, perCore;  // perCore: channels, a multiple of 64
};

class CausalConv1d {
 public:
  static constexpr uint32_t WIDTH = 4;

  __aicore__ inline CausalConv1d(GM_ADDR x, GM_ADDR w, GM_ADDR bias, GM_ADDR state, GM_ADDR y,
                                 const CausalConvTiling* t)
      : t_(t), n_(t->perCore) {
    const uint32_t first = GetBlockIdx() * n_;
    x_.SetGlobalBuffer((__gm__ half*)x + first);
    w_.SetGlobalBuffer((__gm__ float*)w + first);
    bias_.SetGlobalBuffer((__gm__ float*)bias + first);
    state_.SetGlobalBuffer((__gm__ half*)state + first);
    y_.SetGlobalBuffer((__gm__ half*)y + first);
    pipe_.InitBuffer(in_, 2, n_ * sizeof(half));
    pipe_.InitBuffer(out_, 2, n_ * sizeof(half));
    pipe_.InitBuffer(weights_, (WIDTH + 1) * n_ * sizeof(float));
    pipe_.InitBuffer(ring_, WIDTH * n_ * sizeof(float));
    pipe_.InitBuffer(calc_, 2 * n_ * sizeof(float));
  }
  __aicore__ inline void Process() {
    LocalTensor<float> w = weights_.Get<float>(), ring = ring_.Get<float>();
    const DataCopyParams rows{WIDTH, (uint16_t)(n_ * sizeof(float) / 32),
                              (uint16_t)((t_->channels - n_) * sizeof(float) / 32), 0};
    DataCopy(w, w_, rows);
    DataCopy(w[WIDTH * n_], bias_, n_);
    SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
    WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
    for (uint32_t i = 0; i + 1 < WIDTH; ++i) Next(ring[i * n_], state_[i * t_->channels]);
    for (uint32_t token = 0; token < t_->tokens; ++token) {
      Next(ring[(token + WIDTH - 1) % WIDTH * n_], x_[token * t_->channels]);
      Token(w, ring, token);
    }
    for (uint32_t i = 0; i + 1 < WIDTH; ++i) {
      LocalTensor<half> s = out_.AllocTensor<half>();
      Cast(s, ring[(t_->tokens + i) % WIDTH * n_], RoundMode::CAST_NONE, n_);
      Out(s, state_[i * t_->channels]);
    }
  }

 private:
  __aicore__ inline void Next(const LocalTensor<float>& to, const GlobalTensor<half>& from) {
    LocalTensor<half> h = in_.AllocTensor<half>();
    DataCopy(h, from, n_);
    in_.EnQue(h);
    h = in_.DeQue<half>();
    PipeBarrier<PIPE_V>();
    Cast(to, h, RoundMode::CAST_NONE, n_);
    PipeBarrier<PIPE_V>();
    in_.FreeTensor(h);
  }
  __aicore__ inline void Token(const LocalTensor<float>& w, const LocalTensor<float>& ring, uint32_t token) {
    LocalTensor<float> sum = calc_.Get<float>(), e = sum[n_];
    Adds(sum, w[WIDTH * n_], 0.0f, n_);
    PipeBarrier<PIPE_V>();
#pragma unroll
    for (uint32_t j = 0; j < WIDTH; ++j) {
      MulAddDst(sum, w[j * n_], ring[(token + j) % WIDTH * n_], n_);
      PipeBarrier<PIPE_V>();
    }
    Muls(e, sum, -1.0f, n_);
    PipeBarrier<PIPE_V>();
    Exp(e, e, n_);
    PipeBarrier<PIPE_V>();
    Adds(e, e, 1.0f, n_);
    PipeBarrier<PIPE_V>();
    Div(sum, sum, e, n_);
    PipeBarrier<PIPE_V>();
    LocalTensor<half> y = out_.AllocTensor<half>();
    Cast(y, sum, RoundMode::CAST_NONE, n_);
    Out(y, y_[token * t_->channels]);
  }
  __aicore__ inline void Out(LocalTensor<half>& y, const GlobalTensor<half>& to) {
    out_.EnQue(y);
    LocalTensor<half> h = out_.DeQue<half>();
    DataCopy(to, h, n_);
    out_.FreeTensor(h);
  }

  const CausalConvTiling* t_;
  const uint32_t n_;
  TPipe pipe_;
  TQue<TPosition::VECIN, 2> in_;
  TQue<TPosition::VECOUT, 2> out_;
  TBuf<> weights_, ring_, calc_;
  GlobalTensor<half> x_, state_, y_;
  GlobalTensor<float> w_, bias_;
};

extern "C" __global__ __aicore__ void causal_conv1d(GM_ADDR x, GM_ADDR w, GM_ADDR bias, GM_ADDR state,
                                                    GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling) {
  GET_TILING_DATA_PTR_WITH_STRUCT(CausalConvTiling, t, tiling);
  CausalConv1d op(x, w, bias, state, y, t);
  op.Process();
}
