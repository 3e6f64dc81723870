// y = x * cos + rotate_half(x) * sin, in place, of [tokens, heads, dim]: all heads of a token at once, cos
// and sin with a repeat stride of 0.
#include "kernel_operator.h"
using namespace AscendC;

struct RotaryTiling {
  uint32_t tokens, heads, dim;  // dim: 128
  uint32_t tokensPerCore;
};

template <typename T>
class RotaryHalf {
 public:
  __aicore__ inline RotaryHalf(const RotaryTiling& t) : t_(t) {}
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR cos, GM_ADDR sin) {
    x_.SetGlobalBuffer((__gm__ T*)x);
    cos_.SetGlobalBuffer((__gm__ T*)cos);
    sin_.SetGlobalBuffer((__gm__ T*)sin);
    pipe_.InitBuffer(x1_, 1, t_.heads * t_.dim * sizeof(T));
    pipe_.InitBuffer(y1_, 1, t_.heads * t_.dim * sizeof(T));
    pipe_.InitBuffer(angle_, 1, 2 * t_.dim * sizeof(T));
    pipe_.InitBuffer(f_, (3 * t_.heads + 2) * t_.dim * sizeof(float));
  }
  __aicore__ inline void Process() {
    const uint32_t first = GetBlockIdx() * t_.tokensPerCore;
    for (uint32_t token = first; token < first + t_.tokensPerCore && token < t_.tokens; ++token) {
      CopyIn(token);
      Compute();
      CopyOut(token);
    }
  }

 private:
  __aicore__ inline void CopyIn(uint32_t token) {
    LocalTensor<T> x = x1_.template AllocTensor<T>(), angle = angle_.template AllocTensor<T>();
    DataCopy(x, x_[token * t_.heads * t_.dim], t_.heads * t_.dim);
    DataCopy(angle, cos_[token * t_.dim], t_.dim);
    DataCopy(angle[t_.dim], sin_[token * t_.dim], t_.dim);
    x1_.EnQue(x);
    angle_.EnQue(angle);
  }
  __aicore__ inline void Compute() {
    const uint32_t d = t_.dim, half_d = d / 2, all = t_.heads * d;
    LocalTensor<T> x = x1_.template DeQue<T>(), angle = angle_.template DeQue<T>();
    LocalTensor<float> f = f_.Get<float>(), r = f[all], p = r[all], cos = p[all], sin = cos[d];
    Cast(f, x, RoundMode::CAST_NONE, all);
    Cast(cos, angle, RoundMode::CAST_NONE, 2 * d);
    x1_.FreeTensor(x);
    angle_.FreeTensor(angle);
    PipeBarrier<PIPE_V>();
    // The halves change places, the second one its sign.
    const uint16_t half_blocks = half_d * sizeof(float) / 32;
    DataCopyParams swap{(uint16_t)t_.heads, half_blocks, half_blocks, half_blocks};
    DataCopy(r, f[half_d], swap);
    DataCopy(r[half_d], f, swap);
    PipeBarrier<PIPE_V>();
    const uint8_t stride = d / 8;
    Muls(r, r, -1.0f, half_d, t_.heads, {1, 1, stride, stride});
    PipeBarrier<PIPE_V>();
    for (uint32_t part = 0; part < d; part += 64) {
      Mul(p[part], f[part], cos[part], 64, t_.heads, {1, 1, 1, stride, stride, 0});
      Mul(r[part], r[part], sin[part], 64, t_.heads, {1, 1, 1, stride, stride, 0});
    }
    PipeBarrier<PIPE_V>();
    Add(p, p, r, all);
    PipeBarrier<PIPE_V>();
    LocalTensor<T> y = y1_.template AllocTensor<T>();
    Cast(y, p, RoundMode::CAST_RINT, all);
    y1_.EnQue(y);
  }
  __aicore__ inline void CopyOut(uint32_t token) {
    LocalTensor<T> y = y1_.template DeQue<T>();
    DataCopy(x_[token * t_.heads * t_.dim], y, t_.heads * t_.dim);
    y1_.FreeTensor(y);
  }

  const RotaryTiling t_;
  TPipe pipe_;
  TQue<TPosition::VECIN, 1> x1_, angle_;
  TQue<TPosition::VECOUT, 1> y1_;
  TBuf<TPosition::VECCALC> f_;
  GlobalTensor<T> x_, cos_, sin_;
};

extern "C" __global__ __aicore__ void rotary_half(GM_ADDR x, GM_ADDR cos, GM_ADDR sin, GM_ADDR workspace,
                                                  GM_ADDR tiling) {
  GET_TILING_DATA_WITH_STRUCT(RotaryTiling, t, tiling);
  if (TILING_KEY_IS(10)) {
    RotaryHalf<half> op(t);
    op.Init(x, cos, sin);
    op.Process();
  } else if (TILING_KEY_IS(11)) {
    RotaryHalf<bfloat16_t> op(t);
    op.Init(x, cos, sin);
    op.Process();
  }
}
