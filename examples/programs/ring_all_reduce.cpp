// Sums x over all ranks, in place: a ring of reduce-scatter and then all-gather. Each block has its own slice
// of every chunk and its own flags, so that blocks never wait for each other.
#include "kernel_operator.h"

using namespace AscendC;

struct RingTiling {
  uint32_t rank, ranks;
  uint32_t count;  // floats of x: a multiple of 8 x ranks x blocks, at most 8192 a slice
};

class Ring {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR xs, GM_ADDR inboxes, GM_ADDR flags,
                              const RingTiling& tiling) {
    tiling_ = tiling;
    slice_ = tiling.count / tiling.ranks / GetBlockNum();
    const uint32_t next = (tiling.rank + 1) % tiling.ranks, steps = 2 * (tiling.ranks - 1);
    const auto at = [](GM_ADDR table, uint32_t rank) { return ((__gm__ uint64_t*)table)[rank]; };
    x_.SetGlobalBuffer((__gm__ float*)x);
    nextX_.SetGlobalBuffer((__gm__ float*)at(xs, next));
    inbox_.SetGlobalBuffer((__gm__ float*)at(inboxes, tiling.rank) + GetBlockIdx() * tiling.ranks * slice_);
    nextInbox_.SetGlobalBuffer((__gm__ float*)at(inboxes, next) + GetBlockIdx() * tiling.ranks * slice_);
    flags_.SetGlobalBuffer((__gm__ int32_t*)at(flags, tiling.rank) + GetBlockIdx() * steps * 8);
    nextFlags_.SetGlobalBuffer((__gm__ int32_t*)at(flags, next) + GetBlockIdx() * steps * 8);
    pipe_.InitBuffer(copies_, 1, slice_ * sizeof(float));
    pipe_.InitBuffer(mine_, 1, slice_ * sizeof(float));
    pipe_.InitBuffer(theirs_, 1, slice_ * sizeof(float));
    pipe_.InitBuffer(sums_, 1, slice_ * sizeof(float));
    pipe_.InitBuffer(one_, 32);
    pipe_.InitBuffer(seen_, 32);
    LocalTensor<int32_t> one = one_.Get<int32_t>();
    Duplicate<int32_t>(one, 1, 8);
    PipeBarrier<PIPE_ALL>();
  }

  __aicore__ inline void Process() {
    const uint32_t ranks = tiling_.ranks;
    for (uint32_t s = 0; s + 1 < ranks; ++s) {
      Send(x_[Place(ranks - s)], nextInbox_[s * slice_], s);
      Wait(s);
      Add(Place(ranks - s - 1), inbox_[s * slice_]);
    }
    for (uint32_t s = 0; s + 1 < ranks; ++s) {
      const uint32_t place = Place(ranks + 1 - s);
      Send(x_[place], nextX_[place], ranks - 1 + s);
      Wait(ranks - 1 + s);
    }
  }

 private:
  // First element of this block's slice of the chunk that is `ahead` of the rank's own.
  __aicore__ inline uint32_t Place(uint32_t ahead) {
    const uint32_t chunk = (tiling_.rank + ahead) % tiling_.ranks;
    return (chunk * GetBlockNum() + GetBlockIdx()) * slice_;
  }
  __aicore__ inline void Send(const GlobalTensor<float>& from, const GlobalTensor<float>& to, uint32_t step) {
    LocalTensor<float> tile = copies_.AllocTensor<float>();
    DataCopy(tile, from, slice_);
    copies_.EnQue(tile);
    tile = copies_.DeQue<float>();
    DataCopy(to, tile, slice_);
    copies_.FreeTensor(tile);
    PipeBarrier<PIPE_MTE3>();  // the flag follows when all of the slice has arrived
    DataCopy(nextFlags_[step * 8], one_.Get<int32_t>(), 8);
  }
  __aicore__ inline void Wait(uint32_t step) {
    LocalTensor<int32_t> seen = seen_.Get<int32_t>();
    do {
      DataCopy(seen, flags_[step * 8], 8);
      SetFlag<HardEvent::MTE2_S>(EVENT_ID7);
      WaitFlag<HardEvent::MTE2_S>(EVENT_ID7);
    } while (seen.GetValue(0) == 0);
  }
  __aicore__ inline void Add(uint32_t place, const GlobalTensor<float>& inbox) {
    LocalTensor<float> mine = mine_.AllocTensor<float>(), theirs = theirs_.AllocTensor<float>();
    DataCopy(mine, x_[place], slice_);
    DataCopy(theirs, inbox, slice_);
    mine_.EnQue(mine);
    theirs_.EnQue(theirs);
    mine = mine_.DeQue<float>();
    theirs = theirs_.DeQue<float>();
    LocalTensor<float> sum = sums_.AllocTensor<float>();
    AscendC::Add(sum, mine, theirs, static_cast<int32_t>(slice_));
    mine_.FreeTensor(mine);
    theirs_.FreeTensor(theirs);
    sums_.EnQue(sum);
    sum = sums_.DeQue<float>();
    DataCopy(x_[place], sum, slice_);
    sums_.FreeTensor(sum);
    PipeBarrier<PIPE_ALL>();  // the next step sends it on
  }

  RingTiling tiling_{};
  uint32_t slice_ = 0;
  GlobalTensor<float> x_, nextX_, inbox_, nextInbox_;
  GlobalTensor<int32_t> flags_, nextFlags_;
  TPipe pipe_;
  TQueBind<QuePosition::VECIN, QuePosition::VECOUT, 1> copies_;
  TQue<QuePosition::VECIN, 1> mine_, theirs_;
  TQue<QuePosition::VECOUT, 1> sums_;
  TBuf<> one_, seen_;
};

extern "C" __global__ __aicore__ void ring_all_reduce(GM_ADDR x, GM_ADDR xs, GM_ADDR inboxes, GM_ADDR flags,
                                                      GM_ADDR tiling) {
  GET_TILING_DATA_WITH_STRUCT(RingTiling, data, tiling);
  Ring ring;
  ring.Init(x, xs, inboxes, flags, data);
  ring.Process();
}
