// Tokens to the ranks of their experts: expandX sorted by expert and source rank, expandIdx of each choice,
// counts summed up, and with two tensor ranks the other one's rows behind.
#include "moe_distribute_base.h"

using namespace AscendC;

namespace MoeDistributeDispatchImpl {

#define TemplateDispatchTypeClass typename XType, typename ExpandXOutType, bool DynamicQuant, bool IsNeedTp
#define TemplateDispatchTypeFunc XType, ExpandXOutType, DynamicQuant, IsNeedTp

template <TemplateDispatchTypeClass>
class MoeDistributeDispatch {
 public:
  __aicore__ inline MoeDistributeDispatch(){};
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR expertIds, GM_ADDR expandXOut, GM_ADDR dynamicScalesOut,
                              GM_ADDR expandIdxOut, GM_ADDR expertTokenNumsOut, GM_ADDR epRecvCountsOut,
                              GM_ADDR tpRecvCountsOut, GM_ADDR workspaceGM, TPipe* pipe,
                              const MoeDistributeDispatchTilingData* tilingData);
  __aicore__ inline void Process();

 private:
  __aicore__ inline void SendToMoeExperts();
  __aicore__ inline void SendRow(GM_ADDR to, uint32_t token);
  __aicore__ inline void SetStatus();
  __aicore__ inline void WaitStatus();
  __aicore__ inline void CopyOut();
  __aicore__ inline void ExchangeWithTp();
  __aicore__ inline uint64_t Slot(uint32_t localExpert, uint32_t source, uint32_t n) {
    return (static_cast<uint64_t>(localExpert * epWorldSize_ + source) * maxBs_ + n) * rowBytes_;
  }

  TPipe* tpipe_;
  MoeWindows<0> windows_;
  GlobalTensor<XType> xGM_;
  GlobalTensor<int32_t> expertIdsGM_, expandIdxGM_, epCountsGM_, tpCountsGM_, countsGM_;
  GlobalTensor<int64_t> tokenNumsGM_;
  GlobalTensor<ExpandXOutType> expandXGM_;
  GlobalTensor<float> scalesGM_;
  TQueBind<QuePosition::VECIN, QuePosition::VECOUT, 1> xQueue_;
  TQue<QuePosition::VECIN, 1> xInQueue_;
  TQue<QuePosition::VECOUT, 1> xOutQueue_;
  TBuf<> idsBuf_, idxBuf_, countBuf_, stateBuf_, sumBuf_, smallBuf_, castBuf_, absBuf_, halfBuf_;
  uint32_t bs_, maxBs_, k_, h_, aivId_, aivNum_, epWorldSize_, epRankId_, tpRankId_, expertNum_,
      localExpertNum_, rowBytes_, rows_{0}, begin_, end_;
};

template <TemplateDispatchTypeClass>
__aicore__ inline void MoeDistributeDispatch<TemplateDispatchTypeFunc>::Init(
    GM_ADDR x, GM_ADDR expertIds, GM_ADDR expandXOut, GM_ADDR dynamicScalesOut, GM_ADDR expandIdxOut,
    GM_ADDR expertTokenNumsOut, GM_ADDR epRecvCountsOut, GM_ADDR tpRecvCountsOut, GM_ADDR workspaceGM,
    TPipe* pipe, const MoeDistributeDispatchTilingData* tilingData) {
  const MoeDistributeInfo& info = tilingData->moeDistributeDispatchInfo;
  tpipe_ = pipe;
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
  rowBytes_ = DynamicQuant ? h_ + UB_ALIGN : h_ * sizeof(XType);
  windows_.Init(tilingData);
  if constexpr (IsNeedTp) windows_.InitTp(tilingData);
  xGM_.SetGlobalBuffer((__gm__ XType*)x);
  expertIdsGM_.SetGlobalBuffer((__gm__ int32_t*)expertIds);
  expandXGM_.SetGlobalBuffer((__gm__ ExpandXOutType*)expandXOut);
  scalesGM_.SetGlobalBuffer((__gm__ float*)dynamicScalesOut);
  expandIdxGM_.SetGlobalBuffer((__gm__ int32_t*)expandIdxOut);
  tokenNumsGM_.SetGlobalBuffer((__gm__ int64_t*)expertTokenNumsOut);
  epCountsGM_.SetGlobalBuffer((__gm__ int32_t*)epRecvCountsOut);
  tpCountsGM_.SetGlobalBuffer((__gm__ int32_t*)tpRecvCountsOut);
  countsGM_.SetGlobalBuffer((__gm__ int32_t*)GetUserWorkspace(workspaceGM));
  const uint32_t states = localExpertNum_ * epWorldSize_;
  tpipe_->InitBuffer(xQueue_, 1, rowBytes_);
  tpipe_->InitBuffer(xInQueue_, 1, h_ * sizeof(XType));
  tpipe_->InitBuffer(xOutQueue_, 1, rowBytes_);
  tpipe_->InitBuffer(idsBuf_, AlignUp(bs_ * k_ * sizeof(int32_t), UB_ALIGN));
  tpipe_->InitBuffer(idxBuf_, AlignUp(bs_ * k_ * sizeof(int32_t), UB_ALIGN));
  tpipe_->InitBuffer(countBuf_, AlignUp(expertNum_ * sizeof(int32_t), UB_ALIGN));
  tpipe_->InitBuffer(stateBuf_, 2 * states * UB_ALIGN + 512);
  tpipe_->InitBuffer(sumBuf_, 64);
  tpipe_->InitBuffer(smallBuf_, 64);
  tpipe_->InitBuffer(castBuf_, h_ * sizeof(float));
  tpipe_->InitBuffer(absBuf_, h_ * sizeof(float));
  tpipe_->InitBuffer(halfBuf_, h_ * sizeof(half));
  // Choices are dealt out to the cores.
  const uint32_t all = bs_ * k_, each = (all + aivNum_ - 1) / aivNum_;
  begin_ = min(aivId_ * each, all);
  end_ = min(begin_ + each, all);
}

template <TemplateDispatchTypeClass>
__aicore__ inline void MoeDistributeDispatch<TemplateDispatchTypeFunc>::SendRow(GM_ADDR to, uint32_t token) {
  if constexpr (!DynamicQuant) {
    LocalTensor<XType> row = xQueue_.template AllocTensor<XType>();
    DataCopy(row, xGM_[token * h_], h_);
    xQueue_.EnQue(row);
    row = xQueue_.template DeQue<XType>();
    GlobalTensor<XType> at;
    at.SetGlobalBuffer((__gm__ XType*)to);
    DataCopy(at, row, h_);
    xQueue_.FreeTensor(row);
    return;
  }
  LocalTensor<XType> in = xInQueue_.template AllocTensor<XType>();
  DataCopy(in, xGM_[token * h_], h_);
  xInQueue_.EnQue(in);
  in = xInQueue_.template DeQue<XType>();
  LocalTensor<float> value = castBuf_.Get<float>(), abs = absBuf_.Get<float>(), most = smallBuf_.Get<float>();
  LocalTensor<half> rounded = halfBuf_.Get<half>();
  LocalTensor<int8_t> out = xOutQueue_.template AllocTensor<int8_t>();
  Cast(value, in, RoundMode::CAST_NONE, h_);
  PipeBarrier<PIPE_V>();
  xInQueue_.FreeTensor(in);
  Abs(abs, value, h_);
  PipeBarrier<PIPE_V>();
  ReduceMax(most, abs, abs, h_, false);
  SyncFunc<HardEvent::V_S>();
  const float dynamicScale = 127.0f / most.GetValue(0);
  SyncFunc<HardEvent::S_V>();
  Muls(value, value, dynamicScale, h_);
  PipeBarrier<PIPE_V>();
  LocalTensor<int32_t> whole = abs.template ReinterpretCast<int32_t>();
  Cast(whole, value, RoundMode::CAST_RINT, h_);
  PipeBarrier<PIPE_V>();
  SetDeqScale((half)1.0f);
  Cast(rounded, whole, RoundMode::CAST_ROUND, h_);
  PipeBarrier<PIPE_V>();
  Cast(out, rounded, RoundMode::CAST_TRUNC, h_);
  LocalTensor<float> tail = out[h_].template ReinterpretCast<float>();
  SyncFunc<HardEvent::V_S>();
  tail.SetValue(0, 1.0f / dynamicScale);
  SyncFunc<HardEvent::S_MTE3>();
  xOutQueue_.EnQue(out);
  out = xOutQueue_.template DeQue<int8_t>();
  GlobalTensor<int8_t> at;
  at.SetGlobalBuffer((__gm__ int8_t*)to);
  DataCopyPad(at, out, DataCopyExtParams{1U, static_cast<uint32_t>(h_ + sizeof(float)), 0U, 0U, 0U});
  xOutQueue_.FreeTensor(out);
}

template <TemplateDispatchTypeClass>
__aicore__ inline void MoeDistributeDispatch<TemplateDispatchTypeFunc>::SendToMoeExperts() {
  LocalTensor<int32_t> ids = idsBuf_.Get<int32_t>(), idx = idxBuf_.Get<int32_t>(),
                       counts = countBuf_.Get<int32_t>();
  const DataCopyExtParams idsParams{1U, static_cast<uint32_t>(bs_ * k_ * sizeof(int32_t)), 0U, 0U, 0U};
  DataCopyPad(ids, expertIdsGM_, idsParams, DataCopyPadExtParams<int32_t>{false, 0U, 0U, 0U});
  Duplicate<int32_t>(counts, 0, expertNum_);
  SyncFunc<HardEvent::MTE2_S>();
  SyncFunc<HardEvent::V_S>();
  for (uint32_t i = 0; i < end_; ++i) {
    const int32_t expert = ids(i);
    const int32_t place = counts(expert);
    counts(expert) = place + 1;
    if (i < begin_) continue;
    idx.SetValue(i - begin_, place);
    GM_ADDR to = windows_.Rows(expert / localExpertNum_) + Slot(expert % localExpertNum_, epRankId_, place);
    SendRow(to, i / k_);
  }
  SyncFunc<HardEvent::S_MTE3>();
  if (end_ > begin_) {
    DataCopyPad(expandIdxGM_[begin_], idx,
                {1U, static_cast<uint32_t>((end_ - begin_) * sizeof(int32_t)), 0U, 0U, 0U});
  }
  // The last core has counted all.
  if (end_ == bs_ * k_ && begin_ < end_) {
    DataCopyPad(countsGM_, counts, {1U, static_cast<uint32_t>(expertNum_ * sizeof(int32_t)), 0U, 0U, 0U});
  }
  PipeBarrier<PIPE_ALL>();
}

template <TemplateDispatchTypeClass>
__aicore__ inline void MoeDistributeDispatch<TemplateDispatchTypeFunc>::SetStatus() {
  LocalTensor<int32_t> counts = countBuf_.Get<int32_t>();
  DataCopyPad(counts, countsGM_, {1U, static_cast<uint32_t>(expertNum_ * sizeof(int32_t)), 0U, 0U, 0U},
              {false, 0U, 0U, 0});
  SyncFunc<HardEvent::MTE2_S>();
  for (uint32_t expert = aivId_; expert < expertNum_; expert += aivNum_) {
    const uint32_t local = expert % localExpertNum_;
    WriteState(windows_.State(expert / localExpertNum_, local * epWorldSize_ + epRankId_),
               smallBuf_.Get<float>(), counts.GetValue(expert));
  }
}

template <TemplateDispatchTypeClass>
__aicore__ inline void MoeDistributeDispatch<TemplateDispatchTypeFunc>::WaitStatus() {
  WaitStates(windows_.State(epRankId_, 0), localExpertNum_ * epWorldSize_, stateBuf_.Get<float>(),
             sumBuf_.Get<float>());
}

template <TemplateDispatchTypeClass>
__aicore__ inline void MoeDistributeDispatch<TemplateDispatchTypeFunc>::CopyOut() {
  LocalTensor<int32_t> states = stateBuf_.Get<int32_t>();
  LocalTensor<int64_t> number = smallBuf_.Get<int64_t>();
  LocalTensor<int32_t> sum = sumBuf_.Get<int32_t>();
  const uint32_t pairs = localExpertNum_ * epWorldSize_;
  uint32_t before = 0;
  for (uint32_t pair = 0; pair < pairs; ++pair) {
    const uint32_t count = states.GetValue(pair * 8 + 1);
    if (pair % aivNum_ == aivId_) {
      for (uint32_t n = 0; n < count; ++n) {
        LocalTensor<int8_t> row = xQueue_.template AllocTensor<int8_t>();
        GlobalTensor<int8_t> from, to;
        from.SetGlobalBuffer(
            (__gm__ int8_t*)(windows_.Rows(epRankId_) + Slot(pair / epWorldSize_, pair % epWorldSize_, n)));
        to.SetGlobalBuffer((__gm__ int8_t*)expandXGM_[static_cast<uint64_t>(before + n) * h_].GetPhyAddr());
        DataCopy(row, from, rowBytes_);
        xQueue_.EnQue(row);
        row = xQueue_.template DeQue<int8_t>();
        DataCopy(to, row, h_ * sizeof(ExpandXOutType));
        if constexpr (DynamicQuant) {
          DataCopyPad(scalesGM_[before + n], row[h_].template ReinterpretCast<float>(), {1U, 4U, 0U, 0U, 0U});
        }
        xQueue_.FreeTensor(row);
      }
      SyncFunc<HardEvent::MTE3_S>();
      sum.SetValue(0, before + count);
      SyncFunc<HardEvent::S_MTE3>();
      DataCopyPad(epCountsGM_[pair], sum, {1U, 4U, 0U, 0U, 0U});
      if (pair % epWorldSize_ == epWorldSize_ - 1) {  // of an expert all that have come, those before inside
        SyncFunc<HardEvent::MTE3_S>();
        number.SetValue(0, before + count);
        SyncFunc<HardEvent::S_MTE3>();
        DataCopyPad(tokenNumsGM_[pair / epWorldSize_], number, {1U, 8U, 0U, 0U, 0U});
      }
      PipeBarrier<PIPE_ALL>();
    }
    before += count;
  }
  rows_ = before;
}

template <TemplateDispatchTypeClass>
__aicore__ inline void MoeDistributeDispatch<TemplateDispatchTypeFunc>::ExchangeWithTp() {
  // Rows of both tensor ranks, those of this one first; every core moves some.
  SyncAll<true>();
  const uint32_t other = 1 - tpRankId_;
  for (uint32_t n = aivId_; n < rows_; n += aivNum_) {
    LocalTensor<ExpandXOutType> row = xQueue_.template AllocTensor<ExpandXOutType>();
    DataCopy(row, expandXGM_[static_cast<uint64_t>(n) * h_], h_);
    xQueue_.EnQue(row);
    row = xQueue_.template DeQue<ExpandXOutType>();
    GlobalTensor<ExpandXOutType> to;
    to.SetGlobalBuffer((__gm__ ExpandXOutType*)windows_.TpRows(other));
    DataCopy(to[static_cast<uint64_t>(n) * h_], row, h_);
    xQueue_.FreeTensor(row);
  }
  PipeBarrier<PIPE_ALL>();
  SyncAll<true>();
  if (aivId_ == 0) WriteState(windows_.TpState(other), smallBuf_.Get<float>(), rows_);
  WaitStates(windows_.TpState(tpRankId_), 1, stateBuf_.Get<float>(), sumBuf_.Get<float>());
  const uint32_t theirs = stateBuf_.Get<int32_t>().GetValue(1);
  for (uint32_t n = aivId_; n < theirs; n += aivNum_) {
    LocalTensor<ExpandXOutType> row = xQueue_.template AllocTensor<ExpandXOutType>();
    GlobalTensor<ExpandXOutType> from;
    from.SetGlobalBuffer((__gm__ ExpandXOutType*)windows_.TpRows(tpRankId_));
    DataCopy(row, from[static_cast<uint64_t>(n) * h_], h_);
    xQueue_.EnQue(row);
    row = xQueue_.template DeQue<ExpandXOutType>();
    DataCopy(expandXGM_[static_cast<uint64_t>(rows_ + n) * h_], row, h_);
    xQueue_.FreeTensor(row);
  }
  if (aivId_ != 0) return;
  LocalTensor<int32_t> counts = smallBuf_.Get<int32_t>();
  PipeBarrier<PIPE_ALL>();
  counts.SetValue(tpRankId_, rows_);
  counts.SetValue(other, theirs);
  SyncFunc<HardEvent::S_MTE3>();
  DataCopyPad(tpCountsGM_, counts, {1U, 8U, 0U, 0U, 0U});
}

template <TemplateDispatchTypeClass>
__aicore__ inline void MoeDistributeDispatch<TemplateDispatchTypeFunc>::Process() {
  if ASCEND_IS_AIV {
    SendToMoeExperts();
    SyncAll<true>();
    SetStatus();
    WaitStatus();
    CopyOut();
    if constexpr (IsNeedTp) ExchangeWithTp();
  }
}

}  // namespace MoeDistributeDispatchImpl

extern "C" __global__ __aicore__ void moe_distribute_dispatch(
    GM_ADDR x, GM_ADDR expertIds, GM_ADDR scales, GM_ADDR xActiveMask, GM_ADDR expandXOut,
    GM_ADDR dynamicScalesOut, GM_ADDR expandIdxOut, GM_ADDR expertTokenNumsOut, GM_ADDR epRecvCountsOut,
    GM_ADDR tpRecvCountsOut, GM_ADDR workspaceGM, GM_ADDR tilingGM) {
  REGISTER_TILING_DEFAULT(MoeDistributeDispatchTilingData);
  TPipe pipe;
#if (ORIG_DTYPE_X == DT_FLOAT16)
  using X = half;
#else
  using X = bfloat16_t;
#endif
  using namespace MoeDistributeDispatchImpl;
  if (TILING_KEY_IS(1000)) {
    GET_TILING_DATA_WITH_STRUCT(MoeDistributeDispatchTilingData, tilingData, tilingGM);
    MoeDistributeDispatch<X, X, false, false> op;
    op.Init(x, expertIds, expandXOut, dynamicScalesOut, expandIdxOut, expertTokenNumsOut, epRecvCountsOut,
            tpRecvCountsOut, workspaceGM, &pipe, &tilingData);
    op.Process();
    return;
  }
  if (TILING_KEY_IS(1002)) {
    GET_TILING_DATA_WITH_STRUCT(MoeDistributeDispatchTilingData, tilingData, tilingGM);
    MoeDistributeDispatch<X, int8_t, true, false> op;
    op.Init(x, expertIds, expandXOut, dynamicScalesOut, expandIdxOut, expertTokenNumsOut, epRecvCountsOut,
            tpRecvCountsOut, workspaceGM, &pipe, &tilingData);
    op.Process();
    return;
  }
  if (TILING_KEY_IS(1100)) {
    GET_TILING_DATA_WITH_STRUCT(MoeDistributeDispatchTilingData, tilingData, tilingGM);
    MoeDistributeDispatch<X, X, false, true> op;
    op.Init(x, expertIds, expandXOut, dynamicScalesOut, expandIdxOut, expertTokenNumsOut, epRecvCountsOut,
            tpRecvCountsOut, workspaceGM, &pipe, &tilingData);
    op.Process();
  }
}
