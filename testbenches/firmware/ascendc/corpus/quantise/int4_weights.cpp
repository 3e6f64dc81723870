// Weights to int4 by groups of a row, two in a byte, with a scale a group; and what they stand for, back in
// half.
#include "kernel_operator.h"
using namespace AscendC;

struct Int4WeightsTiling {
  uint32_t rows, groups, group;  // elements of a group: a multiple of 64
};

class Int4Weights {
 public:
  __aicore__ inline Int4Weights() {}
  __aicore__ inline void Init(GM_ADDR w, GM_ADDR packed, GM_ADDR scale, GM_ADDR back,
                              const Int4WeightsTiling& t, TPipe* pipe) {
    t_ = t;
    w_.SetGlobalBuffer((__gm__ half*)w);
    packed_.SetGlobalBuffer((__gm__ int4b_t*)packed);
    scale_.SetGlobalBuffer((__gm__ half*)scale);
    back_.SetGlobalBuffer((__gm__ half*)back);
    pipe->InitBuffer(inQueue_, 2, t.group * sizeof(half));
    pipe->InitBuffer(outQueue_, 2, t.group / 2);
    pipe->InitBuffer(backQueue_, 2, t.group * sizeof(half));
    pipe->InitBuffer(scaleQueue_, 1, 32);
    pipe->InitBuffer(absBuf_, t.group * sizeof(half));
  }
  __aicore__ inline void Process() {
    const uint32_t all = t_.rows * t_.groups;
    for (uint32_t g = GetBlockIdx(); g < all; g += GetBlockNum()) One(g);
  }

 private:
  __aicore__ inline void One(uint32_t g) {
    const uint64_t first = static_cast<uint64_t>(g) * t_.group;
    LocalTensor<half> x = inQueue_.AllocTensor<half>();
    DataCopy(x, w_[first], t_.group);
    inQueue_.EnQue(x);
    x = inQueue_.DeQue<half>();
    LocalTensor<half> most = absBuf_.Get<half>();
    LocalTensor<half> scale = scaleQueue_.AllocTensor<half>();
    Abs(most, x, t_.group);
    PipeBarrier<PIPE_V>();
    ReduceMax(scale, most, most, t_.group);
    const event_t done = static_cast<event_t>(GetTPipePtr()->FetchEventID(HardEvent::V_S));
    SetFlag<HardEvent::V_S>(done);
    WaitFlag<HardEvent::V_S>(done);
    // A power of two, so that what is packed and what comes back is exact.
    float step = 0.0078125f;
    while (step * 7 < static_cast<float>(scale.GetValue(0))) step *= 2;
    Muls(x, x, static_cast<half>(1 / step), t_.group);
    PipeBarrier<PIPE_V>();
    LocalTensor<int4b_t> q = outQueue_.AllocTensor<int4b_t>();
    Cast(q, x, RoundMode::CAST_ROUND, t_.group);
    PipeBarrier<PIPE_V>();
    LocalTensor<half> back = backQueue_.AllocTensor<half>();
    Cast(back, q, RoundMode::CAST_NONE, t_.group);
    PipeBarrier<PIPE_V>();
    Muls(back, back, static_cast<half>(step), t_.group);
    Duplicate(scale, static_cast<half>(step), 16);
    inQueue_.FreeTensor(x);
    outQueue_.EnQue(q);
    backQueue_.EnQue(back);
    scaleQueue_.EnQue(scale);
    q = outQueue_.DeQue<int4b_t>();
    DataCopy(packed_[first], q, t_.group);
    outQueue_.FreeTensor(q);
    back = backQueue_.DeQue<half>();
    DataCopy(back_[first], back, t_.group);
    backQueue_.FreeTensor(back);
    scale = scaleQueue_.DeQue<half>();
    DataCopyPad(scale_[g], scale, {1, sizeof(half), 0, 0, 0});
    scaleQueue_.FreeTensor(scale);
  }

  Int4WeightsTiling t_;
  GlobalTensor<half> w_, scale_, back_;
  GlobalTensor<int4b_t> packed_;
  TQue<QuePosition::VECIN, 2> inQueue_;
  TQue<QuePosition::VECOUT, 2> outQueue_, backQueue_;
  TQue<QuePosition::VECOUT, 1> scaleQueue_;
  TBuf<QuePosition::VECCALC> absBuf_;
};

extern "C" __global__ __aicore__ void int4_weights(GM_ADDR w, GM_ADDR packed, GM_ADDR scale, GM_ADDR back,
                                                   GM_ADDR workspace, GM_ADDR tiling) {
  REGISTER_TILING_DEFAULT(Int4WeightsTiling);
  GET_TILING_DATA(tilingData, tiling);
  TPipe pipe;
  Int4Weights op;
  op.Init(w, packed, scale, back, tilingData, &pipe);
  op.Process();
}
