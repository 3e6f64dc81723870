// Rows of experts' results back to their tokens, added up by their scales; with two tensor ranks each row is
// the sum of both ranks' first.
#include "moe_distribute_base.h"

using namespace AscendC;

namespace MoeDistributeCombineImpl {

template <typename T, bool IsNeedTp>
class MoeDistributeCombine {
 public:
  __aicore__ inline void Init(GM_ADDR expandX, GM_ADDR expertIds, GM_ADDR expandIdx, GM_ADDR epSendCount,
                              GM_ADDR tpSendCount, GM_ADDR scales, GM_ADDR XOut, GM_ADDR workspaceGM,
                              TPipe* pipe, const MoeDistributeCombineTilingData* tilingData) {
    const MoeDistributeInfo& info = tilingData->moeDistributeCombineInfo;
    aivId_ = GetBlockIdx();
    aivNum_ = info.aivNum;
    bs_ = info.bs;
    k_ = info.k;
    h_ = info.h;
    epWorldSize_ = info.epWorldSize;
    epRankId_ = info.epRankId;
    tpRankId_ = info.tpRankId;
    maxBs_ = info.globalBs / epWorldSize_;
    expertNum_ = info.moeExpertNum;
    localExpertNum_ = expertNum_ / epWorldSize_;
    windows_.Init(tilingData);
    if constexpr (IsNeedTp) windows_.InitTp(tilingData);
    expandXGM_.SetGlobalBuffer((__gm__ T*)expandX);
    expertIdsGM_.SetGlobalBuffer((__gm__ int32_t*)expertIds);
    expandIdxGM_.SetGlobalBuffer((__gm__ int32_t*)expandIdx);
    epSendCountGM_.SetGlobalBuffer((__gm__ int32_t*)epSendCount);
    tpSendCountGM_.SetGlobalBuffer((__gm__ int32_t*)tpSendCount);
    scalesGM_.SetGlobalBuffer((__gm__ float*)scales);
    xOutGM_.SetGlobalBuffer((__gm__ T*)XOut);
    sumsGM_.SetGlobalBuffer((__gm__ T*)GetUserWorkspace(workspaceGM));
    pipe->InitBuffer(moveQueue_, 2, h_ * sizeof(T));
    pipe->InitBuffer(inQueue_, 2, h_ * sizeof(T));
    pipe->InitBuffer(outQueue_, 1, h_ * sizeof(T));
    pipe->InitBuffer(sumBuf_, h_ * sizeof(float));
    pipe->InitBuffer(rowBuf_, h_ * sizeof(float));
    pipe->InitBuffer(stateBuf_, 2 * expertNum_ * UB_ALIGN + 512);
    pipe->InitBuffer(smallBuf_, 128);
  }
  __aicore__ inline void Process() {
    if constexpr (IsNeedTp) ReduceScatterTp();
    Send();
    WaitStates(windows_.State(epRankId_, 0), expertNum_, stateBuf_.template Get<float>(),
               smallBuf_.template GetWithOffset<float>(8, 64));
    for (uint32_t token = aivId_; token < bs_; token += aivNum_) AddUp(token);
  }

 private:
  __aicore__ inline uint64_t Slot(uint32_t expert, uint32_t n) {
    return (static_cast<uint64_t>(expert) * maxBs_ + n) * h_;
  }
  // The other tensor rank's rows go there; what comes for this one's is added.
  __aicore__ inline void ReduceScatterTp() {
    const uint32_t other = 1 - tpRankId_;
    const uint32_t mine = tpSendCountGM_.GetValue(tpRankId_), theirs = tpSendCountGM_.GetValue(other);
    GlobalTensor<T> away, here;
    away.SetGlobalBuffer((__gm__ T*)windows_.TpRows(other));
    here.SetGlobalBuffer((__gm__ T*)windows_.TpRows(tpRankId_));
    for (uint32_t n = aivId_; n < theirs; n += aivNum_) Move(away[n * h_], expandXGM_[(mine + n) * h_]);
    PipeBarrier<PIPE_ALL>();
    SyncAll<true>();
    if (aivId_ == 0) WriteState(windows_.TpState(other), smallBuf_.template Get<float>(), theirs);
    WaitStates(windows_.TpState(tpRankId_), 1, stateBuf_.template Get<float>(),
               smallBuf_.template GetWithOffset<float>(8, 64));
    for (uint32_t n = aivId_; n < mine; n += aivNum_) {
      Start();
      Add(expandXGM_[n * h_], 1.0f);
      Add(here[n * h_], 1.0f);
      Finish(sumsGM_[n * h_]);
    }
    PipeBarrier<PIPE_ALL>();
    SyncAll<true>();
  }
  __aicore__ inline void Send() {
    const GlobalTensor<T>& rows = IsNeedTp ? sumsGM_ : expandXGM_;
    for (uint32_t pair = aivId_; pair < localExpertNum_ * epWorldSize_; pair += aivNum_) {
      const uint32_t local = pair / epWorldSize_, source = pair % epWorldSize_;
      const uint32_t first = pair == 0 ? 0 : epSendCountGM_.GetValue(pair - 1),
                     end = epSendCountGM_.GetValue(pair);
      const uint32_t expert = epRankId_ * localExpertNum_ + local;
      GlobalTensor<T> to;
      to.SetGlobalBuffer((__gm__ T*)windows_.Rows(source));
      for (uint32_t n = first; n < end; ++n) Move(to[Slot(expert, n - first)], rows[n * h_]);
      PipeBarrier<PIPE_ALL>();
      WriteState(windows_.State(source, expert), smallBuf_.template Get<float>(), end - first);
    }
  }
  __aicore__ inline void AddUp(uint32_t token) {
    GlobalTensor<T> rows;
    rows.SetGlobalBuffer((__gm__ T*)windows_.Rows(epRankId_));
    Start();
    for (uint32_t k = 0; k < k_; ++k) {
      const uint32_t choice = token * k_ + k;
      Add(rows[Slot(expertIdsGM_.GetValue(choice), expandIdxGM_.GetValue(choice))],
          scalesGM_.GetValue(choice));
    }
    Finish(xOutGM_[token * h_]);
  }

  __aicore__ inline void Move(const GlobalTensor<T>& to, const GlobalTensor<T>& from) {
    LocalTensor<T> row = moveQueue_.template AllocTensor<T>();
    DataCopy(row, from, h_);
    moveQueue_.EnQue(row);
    row = moveQueue_.template DeQue<T>();
    DataCopy(to, row, h_);
    moveQueue_.FreeTensor(row);
  }
  __aicore__ inline void Start() {
    Duplicate(sumBuf_.template Get<float>(), 0.0f, h_);
    PipeBarrier<PIPE_V>();
  }
  __aicore__ inline void Add(const GlobalTensor<T>& from, float scale) {
    LocalTensor<T> in = inQueue_.template AllocTensor<T>();
    DataCopy(in, from, h_);
    inQueue_.EnQue(in);
    in = inQueue_.template DeQue<T>();
    LocalTensor<float> row = rowBuf_.template Get<float>(), sum = sumBuf_.template Get<float>();
    Cast(row, in, RoundMode::CAST_NONE, h_);
    inQueue_.FreeTensor(in);
    PipeBarrier<PIPE_V>();
    Muls(row, row, scale, h_);
    PipeBarrier<PIPE_V>();
    AscendC::Add(sum, sum, row, h_);
    PipeBarrier<PIPE_V>();
  }
  __aicore__ inline void Finish(const GlobalTensor<T>& to) {
    LocalTensor<T> out = outQueue_.template AllocTensor<T>();
    Cast(out, sumBuf_.template Get<float>(), RoundMode::CAST_RINT, h_);
    outQueue_.EnQue(out);
    out = outQueue_.template DeQue<T>();
    DataCopy(to, out, h_);
    outQueue_.FreeTensor(out);
  }

  MoeWindows<1> windows_;
  GlobalTensor<T> expandXGM_, xOutGM_, sumsGM_;
  GlobalTensor<int32_t> expertIdsGM_, expandIdxGM_, epSendCountGM_, tpSendCountGM_;
  GlobalTensor<float> scalesGM_;
  TQueBind<QuePosition::VECIN, QuePosition::VECOUT, 2> moveQueue_;
  TQue<QuePosition::VECIN, 2> inQueue_;
  TQue<QuePosition::VECOUT, 1> outQueue_;
  TBuf<> sumBuf_, rowBuf_, stateBuf_, smallBuf_;
  uint32_t bs_, maxBs_, k_, h_, aivId_, aivNum_, epWorldSize_, epRankId_, tpRankId_, expertNum_,
      localExpertNum_;
};

}  // namespace MoeDistributeCombineImpl

extern "C" __global__ __aicore__ void moe_distribute_combine(GM_ADDR expandX, GM_ADDR expertIds,
                                                             GM_ADDR expandIdx, GM_ADDR epSendCount,
                                                             GM_ADDR scales, GM_ADDR tpSendCount,
                                                             GM_ADDR XOut, GM_ADDR workspaceGM,
                                                             GM_ADDR tilingGM) {
  REGISTER_TILING_DEFAULT(MoeDistributeCombineTilingData);
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIV_1_0);
  TPipe pipe;
#if (ORIG_DTYPE_EXPAND_X == DT_BF16)
  using X = bfloat16_t;
#elif (ORIG_DTYPE_EXPAND_X == DT_FLOAT16)
  using X = half;
#endif
  GET_TILING_DATA_WITH_STRUCT(MoeDistributeCombineTilingData, tilingData, tilingGM);
  if (TILING_KEY_IS(1000)) {
    MoeDistributeCombineImpl::MoeDistributeCombine<X, false> op;
    op.Init(expandX, expertIds, expandIdx, epSendCount, tpSendCount, scales, XOut, workspaceGM, &pipe,
            &tilingData);
    op.Process();
  } else if (TILING_KEY_IS(1100)) {
    MoeDistributeCombineImpl::MoeDistributeCombine<X, true> op;
    op.Init(expandX, expertIds, expandIdx, epSendCount, tpSendCount, scales, XOut, workspaceGM, &pipe,
            &tilingData);
    op.Process();
  }
}
