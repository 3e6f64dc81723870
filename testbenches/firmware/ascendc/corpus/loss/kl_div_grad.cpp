// d = -grad * target where target is above 0, else 0; the reduction's factor, log targets by exp, as
// templates.
#include "kernel_operator.h"
using namespace AscendC;

struct KlTiling {
  uint32_t total, tile;
  float factor;
};

template <typename T, bool LOG_TARGET>
class KlDivGrad {
 public:
  __aicore__ inline void Init(GM_ADDR grad, GM_ADDR target, GM_ADDR d, KlTiling* t) {
    t_ = t;
    const uint32_t core = GetBlockIdx(), each = (t->total + GetBlockNum() - 1) / GetBlockNum();
    first_ = core * each;
    last_ = first_ + each < t->total ? first_ + each : t->total;
    grad_.SetGlobalBuffer((__gm__ T*)grad, t->total);
    target_.SetGlobalBuffer((__gm__ T*)target, t->total);
    d_.SetGlobalBuffer((__gm__ T*)d, t->total);
    pipe_.InitBuffer(gradQue_, 2, t->tile * sizeof(T));
    pipe_.InitBuffer(targetQue_, 2, t->tile * sizeof(T));
    pipe_.InitBuffer(dQue_, 2, t->tile * sizeof(T));
    pipe_.InitBuffer(maskBuf_, t->tile / 8 + 32);
  }
  __aicore__ inline void Process() {
    for (uint32_t at = first_; at < last_; at += t_->tile) {
      const uint32_t n = last_ - at < t_->tile ? last_ - at : t_->tile;
      const DataCopyExtParams copy{1, static_cast<uint32_t>(n * sizeof(T)), 0, 0, 0};
      const DataCopyPadExtParams<T> pad{true, 0, 0, T(0)};
      LocalTensor<T> g = gradQue_.template AllocTensor<T>(), y = targetQue_.template AllocTensor<T>();
      DataCopyPad(g, grad_[at], copy, pad);
      DataCopyPad(y, target_[at], copy, pad);
      gradQue_.template EnQue<T>(g);
      targetQue_.template EnQue<T>(y);
      g = gradQue_.template DeQue<T>();
      y = targetQue_.template DeQue<T>();
      LocalTensor<T> d = dQue_.template AllocTensor<T>();
      const uint32_t whole = AlignUp(n, 256 / sizeof(T));
      if constexpr (LOG_TARGET) {
        Exp(d, y, n);
        PipeBarrier<PIPE_V>();
        Mul(d, d, g, n);
        PipeBarrier<PIPE_V>();
        Muls(d, d, static_cast<T>(-t_->factor), n);
      } else {
        LocalTensor<uint8_t> mask = maskBuf_.Get<uint8_t>();
        Mul(d, y, g, n);
        CompareScalar(mask, y, static_cast<T>(0), CMPMODE::GT, whole);
        PipeBarrier<PIPE_V>();
        Muls(d, d, static_cast<T>(-t_->factor), n);
        PipeBarrier<PIPE_V>();
        Select(d, mask, d, static_cast<T>(0), SELMODE::VSEL_TENSOR_SCALAR_MODE, n);
      }
      dQue_.template EnQue<T>(d);
      gradQue_.FreeTensor(g);
      targetQue_.FreeTensor(y);
      d = dQue_.template DeQue<T>();
      DataCopyPad(d_[at], d, copy);
      dQue_.FreeTensor(d);
    }
  }

 private:
  KlTiling* t_;
  uint32_t first_, last_;
  TPipe pipe_;
  TQue<TPosition::VECIN, 1> gradQue_, targetQue_;
  TQue<TPosition::VECOUT, 1> dQue_;
  TBuf<> maskBuf_;
  GlobalTensor<T> grad_, target_, d_;
};

#define KL_DIV_GRAD(T, LOG)        \
  KlDivGrad<T, LOG> op;            \
  op.Init(grad, target, d, &data); \
  op.Process()

extern "C" __global__ __aicore__ void kl_div_grad(GM_ADDR grad, GM_ADDR target, GM_ADDR d, GM_ADDR workspace,
                                                  GM_ADDR tiling) {
  GET_TILING_DATA_WITH_STRUCT(KlTiling, data, tiling);
  if (TILING_KEY_IS(0)) {
    KL_DIV_GRAD(float, false);
  } else if (TILING_KEY_IS(1)) {
    KL_DIV_GRAD(float, true);
  } else if (TILING_KEY_IS(2)) {
    KL_DIV_GRAD(half, false);
  }
}
