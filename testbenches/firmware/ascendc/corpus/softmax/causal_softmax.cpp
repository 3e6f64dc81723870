// Softmax of scores [heads, s, s] under a causal mask and a scale: the masked part becomes -inf, the largest
// and the sum of a row are broadcast as blocks.
#include "kernel_operator.h"
using namespace AscendC;

struct CausalTiling {
  uint32_t heads, s;  // s: a multiple of 64, at most 512
  float scale;
};
constexpr float MIN_VALUE = -3.4028235e38f;

class CausalSoftmax {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, const CausalTiling& t, TPipe& pipe) {
    t_ = t;
    x_.SetGlobalBuffer((__gm__ half*)x);
    y_.SetGlobalBuffer((__gm__ half*)y);
    pipe.InitBuffer(in_, 2, t.s * sizeof(half));
    pipe.InitBuffer(out_, 2, t.s * sizeof(half));
    pipe.InitBuffer(calc_, (3 * t.s + 128) * sizeof(float));
    pipe.InitBuffer(bits_, 256);
    ArithProgression<float>(calc_.Get<float>(), 0.0f, 1.0f, t.s);
  }
  __aicore__ inline void Process() {
    for (uint32_t row = GetBlockIdx(); row < t_.heads * t_.s; row += GetBlockNum()) {
      CopyIn(row);
      Compute(row % t_.s);
      CopyOut(row);
    }
  }

 private:
  __aicore__ inline void CopyIn(uint32_t row) {
    LocalTensor<half> in = in_.AllocTensor<half>();
    DataCopy(in, x_[row * t_.s], t_.s);
    in_.EnQue(in);
  }
  __aicore__ inline void Compute(uint32_t query) {
    LocalTensor<half> in = in_.DeQue<half>(), out = out_.AllocTensor<half>();
    LocalTensor<float> place = calc_.Get<float>(), x = place[t_.s], work = x[t_.s], one = work[t_.s],
                       block = one[64];
    LocalTensor<uint8_t> bits = bits_.Get<uint8_t>();
    const int32_t n = t_.s;
    Cast(x, in, RoundMode::CAST_NONE, n);
    in_.FreeTensor(in);
    PipeBarrier<PIPE_V>();
    Muls(x, x, t_.scale, n);
    CompareScalar(bits, place, static_cast<float>(query), CMPMODE::LE, n);
    PipeBarrier<PIPE_V>();
    Select(x, bits, x, MIN_VALUE, SELMODE::VSEL_TENSOR_SCALAR_MODE, n);
    PipeBarrier<PIPE_V>();
    // The largest: pairs of repeats, then blocks, then one.
    DataCopy(work, x, n);
    PipeBarrier<PIPE_V>();
    for (int32_t c = 64; c < n; c += 64) {
      Max(work, work, work[c], 64);
      PipeBarrier<PIPE_V>();
    }
    BlockReduceMax<float>(one, work, 1, 64, 1, 1, 8);
    PipeBarrier<PIPE_V>();
    WholeReduceMax<float>(one, one, 8, 1, 1, 1, 8, ReduceOrder::ORDER_ONLY_VALUE);
    PipeBarrier<PIPE_V>();
    Brcb(block, one, 1, {1, 8});
    PipeBarrier<PIPE_V>();
    const uint8_t repeats = n / 64;
    Sub(x, x, block, 64, repeats, {1, 1, 0, 8, 8, 0});
    PipeBarrier<PIPE_V>();
    Exp(x, x, n);
    PipeBarrier<PIPE_V>();
    BlockReduceSum<float>(work, x, repeats, 64, 1, 1, 8);
    PipeBarrier<PIPE_V>();
    WholeReduceSum<float>(one, work, repeats * 8, 1, 1, 1, 8);
    PipeBarrier<PIPE_V>();
    Brcb(block, one, 1, {1, 8});
    PipeBarrier<PIPE_V>();
    Div(x, x, block, 64, repeats, {1, 1, 0, 8, 8, 0});
    PipeBarrier<PIPE_V>();
    Cast(out, x, RoundMode::CAST_ROUND, n);
    out_.EnQue(out);
  }
  __aicore__ inline void CopyOut(uint32_t row) {
    LocalTensor<half> out = out_.DeQue<half>();
    DataCopy(y_[row * t_.s], out, t_.s);
    out_.FreeTensor(out);
  }

  CausalTiling t_;
  TQue<TPosition::VECIN, 2> in_;
  TQue<TPosition::VECOUT, 2> out_;
  TBuf<> calc_, bits_;
  GlobalTensor<half> x_, y_;
};

extern "C" __global__ __aicore__ void causal_softmax(GM_ADDR x, GM_ADDR y, GM_ADDR workspace,
                                                     GM_ADDR tiling) {
  GET_TILING_DATA_WITH_STRUCT(CausalTiling, t, tiling);
  TPipe pipe;
  CausalSoftmax op;
  op.Init(x, y, t, pipe);
  op.Process();
}
