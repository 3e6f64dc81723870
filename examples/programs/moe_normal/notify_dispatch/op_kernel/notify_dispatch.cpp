// Tells every rank how many rows it gets from this one for each of its experts, and where they will stand;
// waits for what the others tell. Blocks share the ranks that are told; the first one waits and adds up.
#include "normal_window.h"

using namespace AscendC;

struct NotifyTiling {
  Mc2InitTiling init;
  Mc2CcTiling group;
  uint32_t ranks, rank, ranksOfServer, rankOfServer, sendWords, tokens, blocks;
  uint64_t ubufferBytes;
};

class Notify {
 public:
  __aicore__ inline void Init(GM_ADDR perExpert, GM_ADDR sendOffset, GM_ADDR total, GM_ADDR recvCount,
                              GM_ADDR recvOffset, GM_ADDR perOwnExpert, const NotifyTiling& tiling) {
    tiling_ = tiling;
    experts_ = tiling.sendWords / 3;
    own_ = experts_ / tiling.ranks;
    windows_.Init(&tiling);
    perExpert_ = normal::At<int32_t>(perExpert);
    sendOffset_ = normal::At<int32_t>(sendOffset);
    total_ = normal::At<int32_t>(total);
    recvCount_ = normal::At<int32_t>(recvCount);
    recvOffset_ = normal::At<int32_t>(recvOffset);
    perOwnExpert_ = normal::At<int64_t>(perOwnExpert);
    const uint32_t all = normal::Aligned(experts_ * sizeof(int32_t), 256);
    pipe_.InitBuffer(countsBuf_, all);
    pipe_.InitBuffer(offsetsBuf_, all);
    pipe_.InitBuffer(slotBuf_, normal::kCountBytes);
    pipe_.InitBuffer(flagBuf_, normal::kBlock);
    pipe_.InitBuffer(seenBuf_, normal::Aligned(tiling.ranks * normal::kBlock, 256));
    pipe_.InitBuffer(zerosBuf_, normal::Aligned(tiling.ranks * normal::kBlock, 256));
    pipe_.InitBuffer(arrivedBuf_, tiling.ranks * SlotBytes());
    pipe_.InitBuffer(sumsBuf_, normal::Aligned(own_ * sizeof(int64_t), normal::kBlock));
    pipe_.InitBuffer(totalBuf_, normal::kBlock);
  }

  __aicore__ inline void Process() {
    AddUp();
    Duplicate(flagBuf_.Get<int32_t>(), 1, normal::kFlagWords);
    Duplicate(zerosBuf_.Get<int32_t>(), 0, static_cast<int32_t>(tiling_.ranks * normal::kFlagWords));
    normal::Order<HardEvent::V_MTE3>();
    for (uint32_t rank = GetBlockIdx(); rank < tiling_.ranks; rank += GetBlockNum()) Tell(rank);
    if (GetBlockIdx() == 0) Hear();
  }

 private:
  // Counts of a rank's experts, then offsets, in whole blocks of 32 B.
  __aicore__ inline uint32_t SlotWords() const { return normal::Aligned(own_, normal::kFlagWords); }
  __aicore__ inline uint32_t SlotBytes() const { return 2 * SlotWords() * sizeof(int32_t); }

  // Rows stand by expert: those of an expert begin where all before it end.
  __aicore__ inline void AddUp() {
    const LocalTensor<int32_t> counts = countsBuf_.Get<int32_t>(), offsets = offsetsBuf_.Get<int32_t>();
    DataCopy(counts, perExpert_, experts_);
    normal::Order<HardEvent::MTE2_S>();
    int32_t sum = 0;
    for (uint32_t expert = 0; expert < experts_; ++expert) {
      offsets.SetValue(expert, sum);
      sum += counts.GetValue(expert);
    }
    if (GetBlockIdx() != 0) return;
    normal::Order<HardEvent::S_MTE3>();
    DataCopy(sendOffset_, offsets, experts_);
  }

  __aicore__ inline void Tell(uint32_t rank) {
    const LocalTensor<int32_t> slot = slotBuf_.Get<int32_t>();
    normal::Order<HardEvent::MTE3_S>();
    for (uint32_t e = 0; e < own_; ++e) {
      slot.SetValue(e, countsBuf_.Get<int32_t>().GetValue(rank * own_ + e));
      slot.SetValue(SlotWords() + e, offsetsBuf_.Get<int32_t>().GetValue(rank * own_ + e));
    }
    normal::Order<HardEvent::S_MTE3>();
    DataCopy(normal::At<int32_t>(windows_.Of(rank, tiling_.rank * normal::kCountBytes)), slot,
             2 * SlotWords());
    PipeBarrier<PIPE_MTE3>();  // the flag follows when the counts have arrived
    DataCopy(normal::At<int32_t>(windows_.Of(rank, normal::kCountFlags + tiling_.rank * normal::kBlock)),
             flagBuf_.Get<int32_t>(), normal::kFlagWords);
  }

  // By expert, then source: rows up to and with this source, and where they begin in its window.
  __aicore__ inline void Hear() {
    const LocalTensor<int32_t> arrived = arrivedBuf_.Get<int32_t>(), counts = countsBuf_.Get<int32_t>(),
                               offsets = offsetsBuf_.Get<int32_t>(), total = totalBuf_.Get<int32_t>();
    normal::AwaitFlags(windows_.Of(tiling_.rank, normal::kCountFlags), seenBuf_.Get<int32_t>(),
                       zerosBuf_.Get<int32_t>(), tiling_.ranks);
    DataCopyPad(arrived, normal::At<int32_t>(windows_.Of(tiling_.rank, 0)),
                DataCopyExtParams{static_cast<uint16_t>(tiling_.ranks), SlotBytes(),
                                  static_cast<uint32_t>(normal::kCountBytes) - SlotBytes(), 0, 0},
                DataCopyPadExtParams<int32_t>{});
    normal::Order<HardEvent::MTE2_S>();
    normal::Order<HardEvent::MTE3_S>();
    int32_t sum = 0;
    for (uint32_t e = 0; e < own_; ++e) {
      const int32_t before = sum;
      for (uint32_t source = 0; source < tiling_.ranks; ++source) {
        const uint32_t slot = source * 2 * SlotWords() + e;
        sum += arrived.GetValue(slot);
        counts.SetValue(e * tiling_.ranks + source, sum);
        offsets.SetValue(e * tiling_.ranks + source, arrived.GetValue(slot + SlotWords()));
      }
      sumsBuf_.Get<int64_t>().SetValue(e, sum - before);
    }
    total.SetValue(0, sum);
    normal::Order<HardEvent::S_MTE3>();
    DataCopy(recvCount_, counts, experts_);
    DataCopy(recvOffset_, offsets, experts_);
    DataCopyPad(total_, total, DataCopyExtParams{1, sizeof(int32_t), 0, 0, 0});
    DataCopyPad(perOwnExpert_, sumsBuf_.Get<int64_t>(),
                DataCopyExtParams{1, static_cast<uint32_t>(own_ * sizeof(int64_t)), 0, 0, 0});
  }

  NotifyTiling tiling_;
  uint32_t experts_ = 0, own_ = 0;
  normal::Windows windows_;
  GlobalTensor<int32_t> perExpert_, sendOffset_, total_, recvCount_, recvOffset_;
  GlobalTensor<int64_t> perOwnExpert_;
  TPipe pipe_;
  TBuf<> countsBuf_, offsetsBuf_, slotBuf_, flagBuf_, seenBuf_, zerosBuf_, arrivedBuf_, sumsBuf_, totalBuf_;
};

// `send`, `recv` and `mostTokens` are of the interface: these kernels need no copies of what is exchanged.
extern "C" __global__ __aicore__ void notify_dispatch(GM_ADDR send, GM_ADDR perExpert, GM_ADDR sendOffset,
                                                      GM_ADDR recv, GM_ADDR total, GM_ADDR recvCount,
                                                      GM_ADDR recvOffset, GM_ADDR mostTokens,
                                                      GM_ADDR perOwnExpert, GM_ADDR workspace,
                                                      GM_ADDR tiling) {
  REGISTER_TILING_DEFAULT(NotifyTiling);
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  GET_TILING_DATA_WITH_STRUCT(NotifyTiling, data, tiling);
  Notify notify;
  notify.Init(perExpert, sendOffset, total, recvCount, recvOffset, perOwnExpert, data);
  notify.Process();
}
