// Softmax of a token's scores, the k largest with their experts, normalised by their sum: Sort32, MrgSort,
// Extract.
#include "kernel_operator.h"
using namespace AscendC;

struct GatingTiling {
  uint32_t tokens, experts, k, perCore;  // experts: 128
};

class GatingTopK {
 public:
  static constexpr uint32_t EXPERTS = 128;

  __aicore__ inline void Init(GM_ADDR scores, GM_ADDR weights, GM_ADDR ids, const GatingTiling& t) {
    t_ = t;
    scores_.SetGlobalBuffer((__gm__ float*)scores);
    weights_.SetGlobalBuffer((__gm__ float*)weights);
    ids_.SetGlobalBuffer((__gm__ int32_t*)ids);
    pipe_.InitBuffer(in_, 2, EXPERTS * sizeof(float));
    pipe_.InitBuffer(outW_, 2, 32);
    pipe_.InitBuffer(outI_, 2, 32);
    pipe_.InitBuffer(index_, EXPERTS * sizeof(uint32_t));
    pipe_.InitBuffer(sorted_, 2 * EXPERTS * sizeof(float));
    pipe_.InitBuffer(merged_, 2 * EXPERTS * sizeof(float));
    pipe_.InitBuffer(work_, 2 * EXPERTS * sizeof(float));
    CreateVecIndex(index_.Get<int32_t>(), 0, EXPERTS);
  }
  __aicore__ inline void Process() {
    const uint32_t first = GetBlockIdx() * t_.perCore;
    for (uint32_t token = first; token < first + t_.perCore && token < t_.tokens; ++token) {
      LocalTensor<float> s = in_.AllocTensor<float>();
      DataCopy(s, scores_[token * EXPERTS], EXPERTS);
      in_.EnQue(s);
      Softmax();
      Choose();
      LocalTensor<float> w = outW_.DeQue<float>();
      LocalTensor<int32_t> i = outI_.DeQue<int32_t>();
      DataCopyPad(weights_[token * t_.k], w, {1, (uint32_t)(t_.k * sizeof(float)), 0, 0, 0});
      DataCopyPad(ids_[token * t_.k], i, {1, (uint32_t)(t_.k * sizeof(int32_t)), 0, 0, 0});
      outW_.FreeTensor(w);
      outI_.FreeTensor(i);
    }
  }

 private:
  __aicore__ inline float Scalar(const LocalTensor<float>& t) {
    const auto id = GetTPipePtr()->FetchEventID(HardEvent::V_S);
    SetFlag<HardEvent::V_S>(id);
    WaitFlag<HardEvent::V_S>(id);
    return t.GetValue(0);
  }
  __aicore__ inline void Softmax() {
    LocalTensor<float> s = in_.DeQue<float>(), w = work_.Get<float>();
    ReduceMax<float>(w, s, w[64], EXPERTS, false);
    const float most = Scalar(w);
    Adds(s, s, -most, EXPERTS);
    PipeBarrier<PIPE_V>();
    Exp(s, s, EXPERTS);
    PipeBarrier<PIPE_V>();
    ReduceSum<float>(w, s, w[64], EXPERTS);
    const float sum = Scalar(w);
    Muls(s, s, 1.0f / sum, EXPERTS);
    PipeBarrier<PIPE_V>();
    in_.EnQue(s);
  }
  __aicore__ inline void Choose() {
    LocalTensor<float> s = in_.DeQue<float>(), sorted = sorted_.Get<float>(), merged = merged_.Get<float>();
    Sort32<float>(sorted, s, index_.Get<uint32_t>(), EXPERTS / 32);
    PipeBarrier<PIPE_V>();
    MrgSortSrcList<float> list(sorted[0], sorted[64], sorted[128], sorted[192]);
    uint16_t lengths[4] = {32, 32, 32, 32};
    MrgSort4Info info(lengths, false, 0b1111, 1);
    MrgSort<float>(merged, list, info);
    PipeBarrier<PIPE_V>();
    in_.FreeTensor(s);
    LocalTensor<float> values = work_.Get<float>();
    LocalTensor<uint32_t> places = values[32].ReinterpretCast<uint32_t>();
    Extract(values, places, merged, 1);
    PipeBarrier<PIPE_V>();
    LocalTensor<float> w = outW_.AllocTensor<float>();
    LocalTensor<int32_t> i = outI_.AllocTensor<int32_t>();
    ReduceSum<float>(values[128], values, values[192], t_.k);
    const float sum = Scalar(values[128]);
    Muls(w, values, 1.0f / sum, t_.k);
    Adds(i, places.ReinterpretCast<int32_t>(), 0, t_.k);
    PipeBarrier<PIPE_V>();
    outW_.EnQue(w);
    outI_.EnQue(i);
  }

  GatingTiling t_;
  TPipe pipe_;
  TQueBind<TPosition::VECIN, TPosition::VECCALC, 2> in_;
  TQue<TPosition::VECOUT, 2> outW_, outI_;
  TBuf<> index_, sorted_, merged_, work_;
  GlobalTensor<float> scores_, weights_;
  GlobalTensor<int32_t> ids_;
};

extern "C" __global__ __aicore__ void gating_top_k(GM_ADDR scores, GM_ADDR weights, GM_ADDR ids,
                                                   GM_ADDR workspace, GM_ADDR tiling) {
  GET_TILING_DATA_WITH_STRUCT(GatingTiling, t, tiling);
  GatingTopK op;
  op.Init(scores, weights, ids, t);
  op.Process();
}
