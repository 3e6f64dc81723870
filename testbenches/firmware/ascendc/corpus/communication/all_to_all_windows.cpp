// All ranks to all by windows: each block writes its rows into a peer's window, then a flag behind them;
// whoever has seen all flags copies its window out.
#include "kernel_operator.h"

#if __has_include("lib/hccl/hccl.h")
#include "lib/hccl/hccl.h"
#endif

using namespace AscendC;

struct AllToAllTiling {
  Mc2InitTiling mc2InitTiling;
  Mc2CcTiling mc2CcTiling;
  uint32_t count;  // int32 for each peer, a multiple of 8
  uint32_t turn;   // above 0, another one for each call
};

class AllToAllWindows {
 public:
  static constexpr uint64_t kFlags = 1024;  // bytes at the head of a window: 32 B of each rank

  __aicore__ inline void Init(GM_ADDR send, GM_ADDR recv, const AllToAllTiling* t) {
    t_ = t;
    GM_ADDR context = GetHcclContext<HCCL_GROUP_ID_0>();
    hccl_.InitV2(context, t);
    rank_ = hccl_.GetRankId();
    ranks_ = hccl_.GetRankDim();
    send_.SetGlobalBuffer((__gm__ int32_t*)send, t->count * ranks_);
    recv_.SetGlobalBuffer((__gm__ int32_t*)recv, t->count * ranks_);
    pipe_.InitBuffer(bind_, 2, t->count * sizeof(int32_t));
    pipe_.InitBuffer(flag_, 64);
  }
  __aicore__ inline void Process() {
    for (uint32_t peer = GetBlockIdx(); peer < ranks_; peer += GetBlockNum()) Send(peer);
    for (uint32_t peer = GetBlockIdx(); peer < ranks_; peer += GetBlockNum()) Receive(peer);
  }

 private:
  __aicore__ inline void Send(uint32_t peer) {
    GlobalTensor<int32_t> window, flag;
    window.SetGlobalBuffer((__gm__ int32_t*)(hccl_.GetWindowsInAddr(peer) + kFlags));
    flag.SetGlobalBuffer((__gm__ int32_t*)(hccl_.GetWindowsInAddr(peer) + rank_ * 32));
    Copy(window[rank_ * t_->count], send_[peer * t_->count]);
    LocalTensor<int32_t> f = flag_.Get<int32_t>();
    Duplicate<int32_t>(f, static_cast<int32_t>(t_->turn), 8);
    PipeBarrier<PIPE_ALL>();  // the rows are there first
    DataCopy(flag, f, 8);
    PipeBarrier<PIPE_ALL>();
  }
  __aicore__ inline void Receive(uint32_t peer) {
    GM_ADDR own = hccl_.GetWindowsInAddr(rank_);
    GlobalTensor<int32_t> window, flag;
    window.SetGlobalBuffer((__gm__ int32_t*)(own + kFlags));
    flag.SetGlobalBuffer((__gm__ int32_t*)(own + peer * 32));
    LocalTensor<int32_t> f = flag_.GetWithOffset<int32_t>(8, 32);
    int32_t seen = 0;
    do {
      DataCopy(f, flag, 8);
      SetFlag<HardEvent::MTE2_S>(EVENT_ID0);
      WaitFlag<HardEvent::MTE2_S>(EVENT_ID0);
      seen = f.GetValue(0);
    } while (seen != static_cast<int32_t>(t_->turn));
    Copy(recv_[peer * t_->count], window[peer * t_->count]);
  }
  __aicore__ inline void Copy(const GlobalTensor<int32_t>& to, const GlobalTensor<int32_t>& from) {
    LocalTensor<int32_t> in = bind_.AllocTensor<int32_t>();
    DataCopy(in, from, t_->count);
    bind_.EnQue(in);
    LocalTensor<int32_t> out = bind_.DeQue<int32_t>();
    DataCopy(to, out, t_->count);
    bind_.FreeTensor(out);
  }

  const AllToAllTiling* t_;
  Hccl<HCCL_SERVER_TYPE_AICPU> hccl_;
  uint32_t rank_, ranks_;
  TPipe pipe_;
  TQueBind<TPosition::VECIN, TPosition::VECOUT, 2> bind_;
  TBuf<> flag_;
  GlobalTensor<int32_t> send_, recv_;
};

extern "C" __global__ __aicore__ void all_to_all_windows(GM_ADDR send, GM_ADDR recv, GM_ADDR workspace,
                                                         GM_ADDR tiling) {
  REGISTER_TILING_DEFAULT(AllToAllTiling);
  GET_TILING_DATA_WITH_STRUCT(AllToAllTiling, t, tiling);
  AllToAllWindows op;
  op.Init(send, recv, &t);
  op.Process();
}
