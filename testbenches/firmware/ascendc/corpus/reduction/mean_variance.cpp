// Mean and variance along the first axis: cores take columns, partial sums of groups of rows are joined in a
// fixed order (Chan's formula), all in FP32.
#include "kernel_operator.h"

using namespace AscendC;

struct MeanVarianceTiling {
  uint32_t rows, columns;  // columns: a multiple of 16
  uint32_t group;          // rows read at once
};

template <typename T>
class MeanVariance {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR mean, GM_ADDR variance, const MeanVarianceTiling& tiling,
                              TPipe* pipe) {
    t_ = tiling;
    const uint32_t each = AlignUp(DivCeil(t_.columns, (uint32_t)GetBlockNum()), 16u);
    first_ = GetBlockIdx() * each;
    n_ = first_ >= t_.columns ? 0 : (t_.columns - first_ < each ? t_.columns - first_ : each);
    x_.SetGlobalBuffer((__gm__ T*)x + first_);
    mean_.SetGlobalBuffer((__gm__ float*)mean + first_);
    variance_.SetGlobalBuffer((__gm__ float*)variance + first_);
    if (n_ == 0) return;
    pipe->InitBuffer(in_, 2, t_.group * n_ * sizeof(T));
    pipe->InitBuffer(out_, 2, n_ * sizeof(float));
    pipe->InitBuffer(wide_, t_.group * n_ * sizeof(float));
    pipe->InitBuffer(state_, 4 * n_ * sizeof(float));
  }
  __aicore__ inline void Process() {
    if (n_ == 0) return;
    LocalTensor<float> m = state_.Get<float>(), m2 = m[n_], gm = m2[n_], delta = gm[n_];
    Duplicate(m, 0.0f, 2 * n_);
    PipeBarrier<PIPE_V>();
    uint32_t seen = 0;
    for (uint32_t row = 0; row < t_.rows; row += t_.group) {
      const uint32_t now = t_.rows - row < t_.group ? t_.rows - row : t_.group;
      LocalTensor<T> in = in_.template AllocTensor<T>();
      DataCopyParams rows;
      rows.blockCount = now;
      rows.blockLen = n_ * sizeof(T) / ONE_BLK_SIZE;
      rows.srcStride = (t_.columns - n_) * sizeof(T) / ONE_BLK_SIZE;
      rows.dstStride = 0;
      DataCopy(in, x_[row * t_.columns], rows);
      in_.EnQue(in);
      in = in_.template DeQue<T>();
      LocalTensor<float> f = wide_.Get<float>();
      Cast(f, in, RoundMode::CAST_NONE, now * n_);
      PipeBarrier<PIPE_V>();
      in_.FreeTensor(in);
      // The group's own mean and sum of squares about it.
      Duplicate(gm, 0.0f, n_);
      PipeBarrier<PIPE_V>();
      for (uint32_t i = 0; i < now; ++i) {
        Add(gm, gm, f[i * n_], n_);
        PipeBarrier<PIPE_V>();
      }
      Muls(gm, gm, 1.0f / now, n_);
      PipeBarrier<PIPE_V>();
      for (uint32_t i = 0; i < now; ++i) {
        Sub(f[i * n_], f[i * n_], gm, n_);
        PipeBarrier<PIPE_V>();
        MulAddDst(m2, f[i * n_], f[i * n_], n_);
        PipeBarrier<PIPE_V>();
      }
      const float all = seen + now;
      Sub(delta, gm, m, n_);
      PipeBarrier<PIPE_V>();
      Axpy(m, delta, now / all, n_);
      Mul(delta, delta, delta, n_);
      PipeBarrier<PIPE_V>();
      Axpy(m2, delta, seen * (now / all), n_);
      PipeBarrier<PIPE_V>();
      seen += now;
    }
    Result(mean_, m, 1.0f);
    Result(variance_, m2, 1.0f / t_.rows);
  }

 private:
  __aicore__ inline void Result(const GlobalTensor<float>& to, const LocalTensor<float>& from, float factor) {
    LocalTensor<float> out = out_.AllocTensor<float>();
    Muls(out, from, factor, n_);
    out_.EnQue(out);
    out = out_.DeQue<float>();
    DataCopy(to, out, n_);
    out_.FreeTensor(out);
  }

  MeanVarianceTiling t_;
  uint32_t first_, n_;
  TQue<TPosition::VECIN, 2> in_;
  TQue<TPosition::VECOUT, 2> out_;
  TBuf<> wide_, state_;
  GlobalTensor<T> x_;
  GlobalTensor<float> mean_, variance_;
};

extern "C" __global__ __aicore__ void mean_variance(GM_ADDR x, GM_ADDR mean, GM_ADDR variance,
                                                    GM_ADDR workspace, GM_ADDR tiling) {
  GET_TILING_DATA_WITH_STRUCT(MeanVarianceTiling, data, tiling);
  TPipe pipe;
#if (ORIG_DTYPE_X == DT_FLOAT16)
  MeanVariance<half> op;
#elif (ORIG_DTYPE_X == DT_BF16)
  MeanVariance<bfloat16_t> op;
#endif
  op.Init(x, mean, variance, data, &pipe);
  op.Process();
}
