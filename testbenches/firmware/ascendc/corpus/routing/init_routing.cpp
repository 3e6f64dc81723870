// Rows of tokens sorted by expert: every core counts its experts, the counts of all are added up in memory,
// then every core finds its rows' places and copies them.
#include "kernel_operator.h"
using namespace AscendC;

struct InitRoutingTiling {
  uint32_t tokens, k, experts, hidden, perCore;  // experts: a multiple of 8; perCore: tokens
};

class InitRouting {
 public:
  __aicore__ inline InitRouting(const InitRoutingTiling* t, TPipe* pipe) : t_(t), pipe_(pipe) {}
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR ids, GM_ADDR sorted, GM_ADDR places, GM_ADDR ends,
                              GM_ADDR workspace) {
    x_.SetGlobalBuffer((__gm__ half*)x);
    sorted_.SetGlobalBuffer((__gm__ half*)sorted);
    ids_.SetGlobalBuffer((__gm__ int32_t*)ids);
    places_.SetGlobalBuffer((__gm__ int32_t*)places);
    ends_.SetGlobalBuffer((__gm__ int32_t*)ends);
    counts_.SetGlobalBuffer((__gm__ int32_t*)workspace);
    const uint32_t all = t_->perCore * t_->k;
    pipe_->InitBuffer(idQue_, 1, AlignUp(all, 8) * 4);
    pipe_->InitBuffer(placeQue_, 1, AlignUp(all, 8) * 4);
    pipe_->InitBuffer(countBuf_, t_->experts * 4);
    pipe_->InitBuffer(allBuf_, GetBlockNum() * t_->experts * 4);
    pipe_->InitBuffer(rowQue_, 2, t_->hidden * sizeof(half));
    first_ = GetBlockIdx() * t_->perCore;
    mine_ =
        first_ >= t_->tokens ? 0 : (t_->tokens - first_ < t_->perCore ? t_->tokens - first_ : t_->perCore);
  }
  __aicore__ inline void Process() {
    LocalTensor<int32_t> ids;
    const uint32_t n = mine_ * t_->k;
    if (n != 0) {
      ids = idQue_.AllocTensor<int32_t>();
      DataCopyPad(ids, ids_[first_ * t_->k], {1, n * 4, 0, 0, 0}, {false, 0, 0, 0});
      idQue_.EnQue(ids);
      ids = idQue_.DeQue<int32_t>();
    }
    Count(ids, n);
    SyncAll();
    Offsets();
    if (n == 0) return;
    Move(ids, n);
    idQue_.FreeTensor(ids);
  }

 private:
  __aicore__ inline void Count(const LocalTensor<int32_t>& ids, uint32_t n) {
    LocalTensor<int32_t> counts = countBuf_.Get<int32_t>();
    Duplicate(counts, 0, t_->experts);
    SetFlag<HardEvent::V_S>(EVENT_ID0);
    WaitFlag<HardEvent::V_S>(EVENT_ID0);
    SetFlag<HardEvent::MTE2_S>(EVENT_ID0);
    WaitFlag<HardEvent::MTE2_S>(EVENT_ID0);
    for (uint32_t i = 0; i < n; ++i) {
      const int32_t e = ids.GetValue(i);
      counts.SetValue(e, counts.GetValue(e) + 1);
    }
    SetFlag<HardEvent::S_MTE3>(EVENT_ID0);
    WaitFlag<HardEvent::S_MTE3>(EVENT_ID0);
    DataCopy(counts_[GetBlockIdx() * t_->experts], counts, t_->experts);
  }
  // Where this core's first row of each expert goes; the last core says where each expert's rows end.
  __aicore__ inline void Offsets() {
    LocalTensor<int32_t> all = allBuf_.Get<int32_t>(), offset = countBuf_.Get<int32_t>();
    DataCopy(all, counts_, GetBlockNum() * t_->experts);
    SetFlag<HardEvent::MTE2_S>(EVENT_ID1);
    WaitFlag<HardEvent::MTE2_S>(EVENT_ID1);
    int32_t before = 0;
    for (uint32_t e = 0; e < t_->experts; ++e) {
      for (uint32_t core = 0; core < GetBlockNum(); ++core) {
        if (core == GetBlockIdx()) offset(e) = before;
        before += all.GetValue(core * t_->experts + e);
      }
      if (GetBlockIdx() == 0) ends_.SetValue(e, before);
    }
    if (GetBlockIdx() == 0)
      DataCacheCleanAndInvalid<int32_t, CacheLine::ENTIRE_DATA_CACHE, DcciDst::CACHELINE_OUT>(ends_);
  }
  __aicore__ inline void Move(const LocalTensor<int32_t>& ids, uint32_t n) {
    LocalTensor<int32_t> offset = countBuf_.Get<int32_t>(), places = placeQue_.AllocTensor<int32_t>();
    for (uint32_t i = 0; i < n; ++i) {
      const int32_t e = ids.GetValue(i), place = offset.GetValue(e);
      offset.SetValue(e, place + 1);
      places.SetValue(i, place);
      LocalTensor<half> row = rowQue_.AllocTensor<half>();
      DataCopy(row, x_[(first_ + i / t_->k) * t_->hidden], t_->hidden);
      rowQue_.EnQue(row);
      row = rowQue_.DeQue<half>();
      DataCopy(sorted_[place * t_->hidden], row, t_->hidden);
      rowQue_.FreeTensor(row);
    }
    SetFlag<HardEvent::S_MTE3>(EVENT_ID2);
    WaitFlag<HardEvent::S_MTE3>(EVENT_ID2);
    placeQue_.EnQue(places);
    places = placeQue_.DeQue<int32_t>();
    DataCopyPad(places_[first_ * t_->k], places, {1, n * 4, 0, 0, 0});
    placeQue_.FreeTensor(places);
  }

  const InitRoutingTiling* t_;
  TPipe* pipe_;
  uint32_t first_, mine_;
  TQue<TPosition::VECIN, 1> idQue_;
  TQue<TPosition::VECOUT, 1> placeQue_;
  TQueBind<TPosition::VECIN, TPosition::VECOUT, 2> rowQue_;
  TBuf<> countBuf_, allBuf_;
  GlobalTensor<half> x_, sorted_;
  GlobalTensor<int32_t> ids_, places_, ends_, counts_;
};

extern "C" __global__ __aicore__ void init_routing(GM_ADDR x, GM_ADDR ids, GM_ADDR sorted, GM_ADDR places,
                                                   GM_ADDR ends, GM_ADDR workspace, GM_ADDR tiling) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIV_1_0);
  GET_TILING_DATA_WITH_STRUCT(InitRoutingTiling, t, tiling);
  TPipe pipe;
  InitRouting op(&t, &pipe);
  op.Init(x, ids, sorted, places, ends, GetUserWorkspace(workspace));
  op.Process();
}
