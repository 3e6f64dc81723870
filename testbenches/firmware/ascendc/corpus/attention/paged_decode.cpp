// One query a sequence over a paged cache, on vector cores: a block of keys at a time, scores by products and
// sums of repeats, values joined by Axpy.
#include "kernel_operator.h"
using namespace AscendC;

struct PagedDecodeTiling {
  uint32_t batch, heads, kvHeads, d, blockSize, maxBlocks;  // d: 64; blockSize: a multiple of 8, at most 128
  float scale;
};

class PagedDecode {
 public:
  __aicore__ inline PagedDecode(const PagedDecodeTiling& t, TPipe* pipe) : t_(t) {
    pipe->InitBuffer(kv_, 2, t.blockSize * t.d * sizeof(half));
    pipe->InitBuffer(out_, 1, t.d * sizeof(half));
    pipe->InitBuffer(q_, 1, t.d * sizeof(half));
    pipe->InitBuffer(wide_, t.blockSize * t.d * sizeof(float));
    pipe->InitBuffer(small_, (2 * t.d + 2 * t.blockSize + 192) * sizeof(float));
  }
  __aicore__ inline void Init(GM_ADDR q, GM_ADDR k, GM_ADDR v, GM_ADDR table, GM_ADDR lengths, GM_ADDR y) {
    qGm_.SetGlobalBuffer((__gm__ half*)q);
    kGm_.SetGlobalBuffer((__gm__ half*)k);
    vGm_.SetGlobalBuffer((__gm__ half*)v);
    yGm_.SetGlobalBuffer((__gm__ half*)y);
    table_.SetGlobalBuffer((__gm__ int32_t*)table);
    lengths_.SetGlobalBuffer((__gm__ int32_t*)lengths);
  }
  __aicore__ inline void Process() {
    for (uint32_t i = GetBlockIdx(); i < t_.batch * t_.heads; i += GetBlockNum())
      One(i / t_.heads, i % t_.heads);
  }

 private:
  __aicore__ inline LocalTensor<float> Block(const GlobalTensor<half>& cache, uint32_t block, uint32_t head,
                                             uint32_t n) {
    // [block, token, head, d]
    LocalTensor<half> in = kv_.AllocTensor<half>();
    DataCopyParams rows;
    rows.blockCount = n;
    rows.blockLen = t_.d * sizeof(half) / 32;
    rows.srcStride = (t_.kvHeads - 1) * t_.d * sizeof(half) / 32;
    DataCopy(in, cache[(static_cast<uint64_t>(block) * t_.blockSize * t_.kvHeads + head) * t_.d], rows);
    kv_.EnQue(in);
    in = kv_.DeQue<half>();
    LocalTensor<float> f = wide_.Get<float>();
    PipeBarrier<PIPE_V>();
    Cast(f, in, RoundMode::CAST_NONE, n * t_.d);
    PipeBarrier<PIPE_V>();
    kv_.FreeTensor(in);
    return f;
  }
  __aicore__ inline float Read(const LocalTensor<float>& value) {
    SetFlag<HardEvent::V_S>(EVENT_ID5);
    WaitFlag<HardEvent::V_S>(EVENT_ID5);
    return value.GetValue(0);
  }
  __aicore__ inline void One(uint32_t sequence, uint32_t head) {
    const uint32_t d = t_.d, kvHead = head / (t_.heads / t_.kvHeads);
    LocalTensor<float> q = small_.Get<float>(), acc = q[d], score = acc[d], work = score[t_.blockSize],
                       one = work[t_.blockSize];
    LocalTensor<half> in = q_.AllocTensor<half>();
    DataCopy(in, qGm_[(sequence * t_.heads + head) * d], d);
    q_.EnQue(in);
    in = q_.DeQue<half>();
    Cast(q, in, RoundMode::CAST_NONE, d);
    Duplicate(acc, 0.0f, d);
    PipeBarrier<PIPE_V>();
    Muls(q, q, t_.scale, d);
    q_.FreeTensor(in);
    PipeBarrier<PIPE_V>();
    const uint32_t length = lengths_.GetValue(sequence);
    float most = -3.0e38f, sum = 0;
    for (uint32_t token = 0; token < length; token += t_.blockSize) {
      const uint32_t n = length - token < t_.blockSize ? length - token : t_.blockSize;
      const uint32_t block = table_.GetValue(sequence * t_.maxBlocks + token / t_.blockSize);
      LocalTensor<float> f = Block(kGm_, block, kvHead, n);
      Mul(f, f, q, d, n, {1, 1, 1, 8, 8, 0});
      PipeBarrier<PIPE_V>();
      RepeatReduceSum(score, f, n, d, 0, 1, 1, 8);
      PipeBarrier<PIPE_V>();
      ReduceMax(one, score, work, (int32_t)n);
      const float now = Read(one), next = now > most ? now : most;
      Duplicate(one, most - next, 8);
      Adds(score, score, -next, n);
      PipeBarrier<PIPE_V>();
      Exp(one, one, 8);
      Exp(score, score, n);
      PipeBarrier<PIPE_V>();
      const float factor = Read(one);
      ReduceSum(one, score, work, (int32_t)n);
      sum = sum * factor + Read(one);
      most = next;
      Muls(acc, acc, factor, d);
      f = Block(vGm_, block, kvHead, n);
      for (uint32_t i = 0; i < n; ++i) {
        Axpy(acc, f[i * d], score.GetValue(i), d);
        PipeBarrier<PIPE_V>();
      }
    }
    Muls(acc, acc, 1.0f / sum, d);
    PipeBarrier<PIPE_V>();
    LocalTensor<half> y = out_.AllocTensor<half>();
    Cast(y, acc, RoundMode::CAST_NONE, d);
    out_.EnQue(y);
    y = out_.DeQue<half>();
    DataCopy(yGm_[(sequence * t_.heads + head) * d], y, d);
    out_.FreeTensor(y);
  }

  const PagedDecodeTiling t_;
  TQue<QuePosition::VECIN, 1> kv_, q_;
  TQue<QuePosition::VECOUT, 1> out_;
  TBuf<> wide_, small_;
  GlobalTensor<half> qGm_, kGm_, vGm_, yGm_;
  GlobalTensor<int32_t> table_, lengths_;
};

extern "C" __global__ __aicore__ void paged_decode(GM_ADDR q, GM_ADDR k, GM_ADDR v, GM_ADDR table,
                                                   GM_ADDR lengths, GM_ADDR y, GM_ADDR workspace,
                                                   GM_ADDR tiling) {
  GET_TILING_DATA_WITH_STRUCT(PagedDecodeTiling, t, tiling);
  TPipe pipe;
  PagedDecode op(t, &pipe);
  op.Init(q, k, v, table, lengths, y);
  op.Process();
}
