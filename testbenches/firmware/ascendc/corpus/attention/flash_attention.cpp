// softmax(Q K^T * scale) V of one head a group: the products by Matmul<> objects, the running maximum and sum
// on the vector cores, which take half of the queries each. Keys come in pieces; nothing of size s x s is
// kept.
#include "kernel_operator.h"
#include "lib/matmul_intf.h"

using namespace AscendC;
using namespace matmul;

struct FlashTiling {
  TCubeTiling scores;   // queries x piece
  TCubeTiling outputs;  // queries x d
  SoftMaxTiling softmax;
  uint32_t heads, queries, keys, d, piece;  // queries: of a vector core
  float scale;
};

constexpr MatmulConfig CFG = GetNormalConfig();

class FlashAttention {
 public:
  using Q = MatmulType<TPosition::GM, CubeFormat::ND, half>;
  using K = MatmulType<TPosition::GM, CubeFormat::ND, half, true>;
  using V = MatmulType<TPosition::GM, CubeFormat::ND, half>;
  using S = MatmulType<TPosition::GM, CubeFormat::ND, float>;
  matmul::Matmul<Q, K, S, S, CFG> bmm1;
  matmul::Matmul<Q, V, S, S, CFG> bmm2;

  __aicore__ inline FlashAttention() {}
  __aicore__ inline void Init(GM_ADDR q, GM_ADDR k, GM_ADDR v, GM_ADDR out, GM_ADDR workspace,
                              const FlashTiling* t, TPipe* pipe) {
    t_ = t;
    q_.SetGlobalBuffer((__gm__ half*)q);
    k_.SetGlobalBuffer((__gm__ half*)k);
    v_.SetGlobalBuffer((__gm__ half*)v);
    out_.SetGlobalBuffer((__gm__ half*)out);
    const uint64_t own =
        t->queries * (t->piece + t->d) * sizeof(float) + t->queries * t->piece * sizeof(half);
    GM_ADDR at = workspace + GetBlockIdx() * own;
    scores_.SetGlobalBuffer((__gm__ float*)at);
    part_.SetGlobalBuffer((__gm__ float*)at + t->queries * t->piece);
    p_.SetGlobalBuffer((__gm__ half*)(at + t->queries * (t->piece + t->d) * sizeof(float)));
    pipe->InitBuffer(scoreBuf_, t->queries * t->piece * sizeof(float));
    pipe->InitBuffer(halfBuf_, t->queries * (t->piece > t->d ? t->piece : t->d) * sizeof(half));
    pipe->InitBuffer(accBuf_, 2 * t->queries * t->d * sizeof(float));
    pipe->InitBuffer(stateBuf_, 6 * t->queries * 32);
    pipe->InitBuffer(tmpBuf_, 8 * 1024);
  }
  __aicore__ inline void Process() {
    // Vector cores of a group take halves of the same head.
    const uint32_t groups = GetBlockNum();
    for (uint32_t head = GetBlockIdx() / 2; head < t_->heads; head += groups) Head(head);
  }

 private:
  __aicore__ inline void Head(uint32_t head) {
    const uint32_t m = t_->queries, n = t_->piece, d = t_->d;
    const uint64_t first = (static_cast<uint64_t>(head) * 2 + GetSubBlockIdx()) * m * d;
    LocalTensor<float> s = scoreBuf_.Get<float>(), acc = accBuf_.Get<float>(), part = acc[m * d];
    LocalTensor<half> h = halfBuf_.Get<half>();
    LocalTensor<float> max[2] = {stateBuf_.Get<float>(), stateBuf_.GetWithOffset<float>(m * 8, m * 32)};
    LocalTensor<float> sum[2] = {stateBuf_.GetWithOffset<float>(m * 8, 2 * m * 32),
                                 stateBuf_.GetWithOffset<float>(m * 8, 3 * m * 32)};
    LocalTensor<float> expMax = stateBuf_.GetWithOffset<float>(m * 8, 4 * m * 32);
    LocalTensor<uint8_t> tmp = tmpBuf_.Get<uint8_t>();
    const SoftMaxShapeInfo shape{m, n, m, n};
    uint32_t turn = 0;
    for (uint32_t key = 0; key < t_->keys; key += n, turn ^= 1) {
      const uint64_t of_key = (static_cast<uint64_t>(head) * t_->keys + key) * d;
      bmm1.SetTensorA(q_[first]);
      bmm1.SetTensorB(k_[of_key], true);
      bmm1.IterateAll(scores_);
      DataCopy(s, scores_, m * n);
      SetFlag<HardEvent::MTE2_V>(EVENT_ID3);
      WaitFlag<HardEvent::MTE2_V>(EVENT_ID3);
      Muls(s, s, t_->scale, m * n);
      PipeBarrier<PIPE_V>();
      if (key == 0) {
        SoftmaxFlashV2<float, false>(s, sum[turn], max[turn], s, expMax, sum[turn ^ 1], max[turn ^ 1], tmp,
                                     t_->softmax, shape);
      } else {
        SoftmaxFlashV2<float, true>(s, sum[turn], max[turn], s, expMax, sum[turn ^ 1], max[turn ^ 1], tmp,
                                    t_->softmax, shape);
      }
      PipeBarrier<PIPE_V>();
      Cast(h, s, RoundMode::CAST_ROUND, m * n);
      SetFlag<HardEvent::V_MTE3>(EVENT_ID3);
      WaitFlag<HardEvent::V_MTE3>(EVENT_ID3);
      DataCopy(p_, h, m * n);
      SetFlag<HardEvent::MTE3_MTE2>(EVENT_ID3);
      WaitFlag<HardEvent::MTE3_MTE2>(EVENT_ID3);
      bmm2.SetTensorA(p_);
      bmm2.SetTensorB(v_[of_key]);
      bmm2.template IterateAll<true>(part_);
      DataCopy(part, part_, m * d);
      SetFlag<HardEvent::MTE2_V>(EVENT_ID3);
      WaitFlag<HardEvent::MTE2_V>(EVENT_ID3);
      if (key == 0) {
        DataCopy(acc, part, m * d);
      } else {
        const uint8_t rows = m;
        const uint8_t stride = d / 8;
        for (uint32_t c = 0; c < d; c += 64)
          Mul(acc[c], acc[c], expMax, d - c < 64 ? d - c : 64, rows, {1, 1, 0, stride, stride, 1});
        PipeBarrier<PIPE_V>();
        Add(acc, acc, part, m * d);
      }
      PipeBarrier<PIPE_ALL>();
    }
    const uint8_t stride = d / 8;
    for (uint32_t c = 0; c < d; c += 64)
      Div(acc[c], acc[c], sum[turn ^ 1], d - c < 64 ? d - c : 64, (uint8_t)m, {1, 1, 0, stride, stride, 1});
    PipeBarrier<PIPE_V>();
    Cast(h, acc, RoundMode::CAST_ROUND, m * d);
    SetFlag<HardEvent::V_MTE3>(EVENT_ID3);
    WaitFlag<HardEvent::V_MTE3>(EVENT_ID3);
    DataCopy(out_[first], h, m * d);
    PipeBarrier<PIPE_ALL>();
  }

  const FlashTiling* t_;
  TBuf<> scoreBuf_, halfBuf_, accBuf_, stateBuf_, tmpBuf_;
  GlobalTensor<half> q_, k_, v_, out_, p_;
  GlobalTensor<float> scores_, part_;
};

extern "C" __global__ __aicore__ void flash_attention(GM_ADDR q, GM_ADDR k, GM_ADDR v, GM_ADDR out,
                                                      GM_ADDR workspace, GM_ADDR tiling) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
  SetSysWorkspace(workspace);
  GM_ADDR user = GetUserWorkspace(workspace);
  if (user == nullptr) return;
  GET_TILING_DATA_WITH_STRUCT(FlashTiling, t, tiling);
  TPipe pipe;
  FlashAttention op;
  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), op.bmm1, &t.scores, op.bmm2, &t.outputs);
  op.Init(q, k, v, out, user, &t, &pipe);
  op.Process();
}
