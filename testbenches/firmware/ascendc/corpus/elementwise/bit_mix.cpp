// Whole numbers: (x << s) & a | ~x >> s, and x modulo n by way of float.
#include "kernel_operator.h"
using namespace AscendC;

struct BitMixTiling {
  uint32_t total, tile;
  int32_t shift, modulus;
};

class BitMix {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR a, GM_ADDR bits, GM_ADDR rest, BitMixTiling t) {
    t_ = t;
    const uint32_t each = t.total / GetBlockNum();
    x_.SetGlobalBuffer((__gm__ int32_t*)x + GetBlockIdx() * each, each);
    a_.SetGlobalBuffer((__gm__ int32_t*)a + GetBlockIdx() * each, each);
    bits_.SetGlobalBuffer((__gm__ int32_t*)bits + GetBlockIdx() * each, each);
    rest_.SetGlobalBuffer((__gm__ int32_t*)rest + GetBlockIdx() * each, each);
    pipe_.InitBuffer(inX_, 2, t.tile * sizeof(int32_t));
    pipe_.InitBuffer(inA_, 2, t.tile * sizeof(int32_t));
    pipe_.InitBuffer(outBits_, 1, t.tile * sizeof(int32_t));
    pipe_.InitBuffer(outRest_, 1, t.tile * sizeof(int32_t));
    pipe_.InitBuffer(work_, 2 * t.tile * sizeof(int32_t));
  }
  __aicore__ inline void Process() {
    const uint32_t tiles = t_.total / GetBlockNum() / t_.tile;
    CopyIn(0);
    for (uint32_t i = 0; i < tiles; ++i) {
      if (i + 1 < tiles) CopyIn(i + 1);  // ahead of the computation
      Compute();
      CopyOut(i);
    }
  }

 private:
  __aicore__ inline void CopyIn(uint32_t i) {
    LocalTensor<int32_t> x = inX_.AllocTensor<int32_t>(), a = inA_.AllocTensor<int32_t>();
    DataCopy(x, x_[i * t_.tile], t_.tile);
    DataCopy(a, a_[i * t_.tile], t_.tile);
    inX_.EnQue(x);
    inA_.EnQue(a);
  }
  __aicore__ inline void Compute() {
    LocalTensor<int32_t> x = inX_.DeQue<int32_t>(), a = inA_.DeQue<int32_t>();
    LocalTensor<int32_t> bits = outBits_.AllocTensor<int32_t>(), rest = outRest_.AllocTensor<int32_t>();
    LocalTensor<int32_t> t0 = work_.Get<int32_t>(), t1 = t0[t_.tile];
    const int32_t n = t_.tile;
    // Bits move 16 at a time.
    LocalTensor<uint16_t> x16 = x.ReinterpretCast<uint16_t>(), t16 = t0.ReinterpretCast<uint16_t>(),
                          u16 = t1.ReinterpretCast<uint16_t>(), a16 = a.ReinterpretCast<uint16_t>(),
                          b16 = bits.ReinterpretCast<uint16_t>();
    ShiftLeft(t0.ReinterpretCast<uint32_t>(), x.ReinterpretCast<uint32_t>(), (uint32_t)t_.shift, n);
    PipeBarrier<PIPE_V>();
    And(t16, t16, a16, 2 * n);
    Not(u16, x16, 2 * n);
    PipeBarrier<PIPE_V>();
    ShiftRight(t1, t1, t_.shift, n);
    PipeBarrier<PIPE_V>();
    Or(b16, t16, u16, 2 * n);

    LocalTensor<float> f = t0.ReinterpretCast<float>(), q = t1.ReinterpretCast<float>();
    Cast(f, x, RoundMode::CAST_NONE, n);
    PipeBarrier<PIPE_V>();
    Muls(q, f, 1.0f / t_.modulus, n);
    PipeBarrier<PIPE_V>();
    Cast(rest, q, RoundMode::CAST_FLOOR, n);
    PipeBarrier<PIPE_V>();
    Muls(rest, rest, -t_.modulus, n);
    PipeBarrier<PIPE_V>();
    Add(rest, x, rest, n);
    outBits_.EnQue(bits);
    outRest_.EnQue(rest);
    inX_.FreeTensor(x);
    inA_.FreeTensor(a);
  }
  __aicore__ inline void CopyOut(uint32_t i) {
    LocalTensor<int32_t> bits = outBits_.DeQue<int32_t>(), rest = outRest_.DeQue<int32_t>();
    DataCopy(bits_[i * t_.tile], bits, t_.tile);
    DataCopy(rest_[i * t_.tile], rest, t_.tile);
    outBits_.FreeTensor(bits);
    outRest_.FreeTensor(rest);
  }

  BitMixTiling t_;
  TPipe pipe_;
  TQue<TPosition::VECIN, 2> inX_, inA_;
  TQue<TPosition::VECOUT, 1> outBits_, outRest_;
  TBuf<> work_;
  GlobalTensor<int32_t> x_, a_, bits_, rest_;
};

extern "C" __global__ __aicore__ void bit_mix(GM_ADDR x, GM_ADDR a, GM_ADDR bits, GM_ADDR rest,
                                              GM_ADDR tiling) {
  GET_TILING_DATA_WITH_STRUCT(BitMixTiling, t, tiling);
  BitMix op;
  op.Init(x, a, bits, rest, t);
  op.Process();
}
