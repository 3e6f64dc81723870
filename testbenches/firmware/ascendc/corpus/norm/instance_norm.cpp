// Every plane normalised over its pixels: running means and variances of strips, brought together, then a
// second pass with them. Two strips in turns.
#include "kernel_operator.h"
using namespace AscendC;

struct InstanceNormTiling {
  uint32_t planes, pixels, strip;  // pixels: whole strips, a strip: a multiple of 64
  float epsilon;
};

template <typename T>
class InstanceNorm {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR gamma, GM_ADDR beta, GM_ADDR y, const InstanceNormTiling* t,
                              TPipe* pipe) {
    t_ = t;
    x_.SetGlobalBuffer((__gm__ T*)x);
    y_.SetGlobalBuffer((__gm__ T*)y);
    gamma_.SetGlobalBuffer((__gm__ float*)gamma);
    beta_.SetGlobalBuffer((__gm__ float*)beta);
    pipe->InitBuffer(inQue_, 2, t->strip * sizeof(T));
    pipe->InitBuffer(outQue_, 2, t->strip * sizeof(T));
    pipe->InitBuffer(mean_, t->strip * sizeof(float));
    pipe->InitBuffer(variance_, t->strip * sizeof(float));
    pipe->InitBuffer(work_, t->strip * sizeof(float));
    pipe->InitBuffer(result_, 64);
    pipe->InitBuffer(tmp_, 16 * 1024);
  }
  __aicore__ inline void Process() {
    for (uint32_t plane = GetBlockIdx(); plane < t_->planes; plane += GetBlockNum()) {
      float mean, rstd;
      Statistics(plane, mean, rstd);
      const float factor = rstd * gamma_.GetValue(plane), offset = beta_.GetValue(plane) - mean * factor;
      for (uint32_t first = 0; first < t_->pixels; first += t_->strip) {
        LocalTensor<T> in = Load(plane, first);
        LocalTensor<float> w = work_.Get<float>();
        Cast(w, in, RoundMode::CAST_NONE, t_->strip);
        PipeBarrier<PIPE_V>();
        inQue_.FreeTensor(in);
        Muls(w, w, factor, t_->strip);
        PipeBarrier<PIPE_V>();
        Adds(w, w, offset, t_->strip);
        PipeBarrier<PIPE_V>();
        LocalTensor<T> out = outQue_.AllocTensor<T>();
        Cast(out, w, RoundMode::CAST_RINT, t_->strip);
        outQue_.EnQue(out);
        out = outQue_.DeQue<T>();
        DataCopy(y_[static_cast<uint64_t>(plane) * t_->pixels + first], out, t_->strip);
        outQue_.FreeTensor(out);
      }
    }
  }

 private:
  __aicore__ inline LocalTensor<T> Load(uint32_t plane, uint32_t first) {
    LocalTensor<T> in = inQue_.AllocTensor<T>();
    DataCopy(in, x_[static_cast<uint64_t>(plane) * t_->pixels + first], t_->strip);
    inQue_.EnQue(in);
    return inQue_.DeQue<T>();
  }
  __aicore__ inline void Statistics(uint32_t plane, float& mean, float& rstd) {
    LocalTensor<float> m = mean_.Get<float>(), v = variance_.Get<float>(), r = result_.Get<float>();
    LocalTensor<uint8_t> tmp = tmp_.Get<uint8_t>();
    Duplicate(m, 0.0f, t_->strip);
    Duplicate(v, 0.0f, t_->strip);
    PipeBarrier<PIPE_V>();
    const uint32_t strips = t_->pixels / t_->strip;
    for (uint32_t n = 0; n < strips; ++n) {
      LocalTensor<T> in = Load(plane, n * t_->strip);
      const WelfordUpdateParam param{1, t_->strip, t_->strip, 1.0f / static_cast<float>(n + 1)};
      WelfordUpdate<T, float, true>(m, v, m, v, in, tmp, param);
      PipeBarrier<PIPE_V>();
      inQue_.FreeTensor(in);
    }
    WelfordFinalizePara para{};
    para.rnLength = strips;
    para.abLength = t_->strip;
    para.abRec = 1.0f / static_cast<float>(t_->strip);
    para.rRec = 1.0f / static_cast<float>(t_->pixels);
    WelfordFinalize(r, r[8], m, v, tmp, para);
    mean = r.GetValue(0);
    rstd = 1.0f / sqrt(r.GetValue(8) + t_->epsilon);
  }

  const InstanceNormTiling* t_;
  GlobalTensor<T> x_, y_;
  GlobalTensor<float> gamma_, beta_;
  TQue<QuePosition::VECIN, 2> inQue_;
  TQue<QuePosition::VECOUT, 2> outQue_;
  TBuf<> mean_, variance_, work_, result_, tmp_;
};

extern "C" __global__ __aicore__ void instance_norm(GM_ADDR x, GM_ADDR gamma, GM_ADDR beta, GM_ADDR y,
                                                    GM_ADDR workspace, GM_ADDR tiling) {
  REGISTER_TILING_DEFAULT(InstanceNormTiling);
  GET_TILING_DATA(t, tiling);
  TPipe pipe;
  if (TILING_KEY_IS(0)) {
    InstanceNorm<half> op;
    op.Init(x, gamma, beta, y, &t, &pipe);
    op.Process();
  } else if (TILING_KEY_IS(1)) {
    InstanceNorm<bfloat16_t> op;
    op.Init(x, gamma, beta, y, &t, &pipe);
    op.Process();
  }
}
