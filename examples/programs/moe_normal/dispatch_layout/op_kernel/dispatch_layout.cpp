// Where the rows of a rank's tokens go: how many to each rank and expert, and for each token and expert of it
// which of the rank's rows for that expert it is. A block counts its tokens; blocks add up what those before
// them have counted, and number their rows from there.
#include "normal_window.h"

using namespace AscendC;

struct LayoutTiling {
  Mc2InitTiling init;
  Mc2CcTiling group;
  uint32_t tokens, ranks, experts, topK, ranksOfServer;
  uint64_t ubufferBytes;
};

class Layout {
 public:
  __aicore__ inline void Init(GM_ADDR chosen, GM_ADDR perRank, GM_ADDR perExpert, GM_ADDR inRank,
                              GM_ADDR perBlock, GM_ADDR index, GM_ADDR workspace,
                              const LayoutTiling& tiling) {
    tiling_ = tiling;
    chosen_ = normal::At<int64_t>(chosen);
    perRank_ = normal::At<int32_t>(perRank);
    perExpert_ = normal::At<int32_t>(perExpert);
    inRank_ = normal::At<int32_t>(inRank);
    perBlock_ = normal::At<int32_t>(perBlock);
    index_ = normal::At<int32_t>(index);
    const uint32_t pairs = kTokens * tiling.topK;
    pipe_.InitBuffer(chosenBuf_, pairs * sizeof(int64_t));
    pipe_.InitBuffer(indexBuf_, pairs * sizeof(int32_t));
    pipe_.InitBuffer(inRankBuf_, normal::Aligned(kTokens * tiling.ranks * sizeof(int32_t), normal::kBlock));
    pipe_.InitBuffer(expertsBuf_, normal::Aligned(tiling.experts * sizeof(int32_t), 256));
    pipe_.InitBuffer(ranksBuf_, normal::Aligned(tiling.ranks * sizeof(int32_t), 256));
    pipe_.InitBuffer(othersBuf_, normal::Aligned(tiling.experts * sizeof(int32_t), 256));
  }

  __aicore__ inline void Process() {
    LocalTensor<int32_t> experts = expertsBuf_.Get<int32_t>(), ranks = ranksBuf_.Get<int32_t>();
    Duplicate(experts, 0, static_cast<int32_t>(tiling_.experts));
    Duplicate(ranks, 0, static_cast<int32_t>(tiling_.ranks));
    if (GetBlockIdx() == 0) {
      normal::Order<HardEvent::V_MTE3>();
      Store(perExpert_, experts, tiling_.experts);
      Store(perRank_, ranks, tiling_.ranks);
      PipeBarrier<PIPE_ALL>();
    }
    normal::Order<HardEvent::V_S>();
    Count(experts, ranks);
    SyncAll();  // the sums are zero
    normal::Order<HardEvent::S_MTE3>();
    Store(perBlock_[GetBlockIdx() * tiling_.experts], experts, tiling_.experts);
    SetAtomicAdd<int32_t>();
    Store(perExpert_, experts, tiling_.experts);
    Store(perRank_, ranks, tiling_.ranks);
    SetAtomicNone();
    PipeBarrier<PIPE_ALL>();
    SyncAll();  // every block's counts stand in memory
    AddUp(experts);
    Number(experts);
  }

 private:
  static constexpr uint32_t kTokens = 32;  // looked at together

  __aicore__ inline void Store(const GlobalTensor<int32_t>& to, const LocalTensor<int32_t>& from,
                               uint32_t count) {
    DataCopyPad(to, from, DataCopyExtParams{1, static_cast<uint32_t>(count * sizeof(int32_t)), 0, 0, 0});
  }
  // Tokens from `first` on, at most to `end`; returns how many.
  __aicore__ inline uint32_t Load(uint32_t first, uint32_t end) {
    const uint32_t tokens = end - first < kTokens ? end - first : kTokens;
    normal::Order<HardEvent::S_MTE2>();
    const uint32_t bytes = static_cast<uint32_t>(tokens * tiling_.topK * sizeof(int64_t));
    DataCopyPad(chosenBuf_.Get<int64_t>(), chosen_[first * tiling_.topK],
                DataCopyExtParams{1, bytes, 0, 0, 0}, DataCopyPadExtParams<int64_t>{});
    normal::Order<HardEvent::MTE2_S>();
    return tokens;
  }

  // Rows for each expert, tokens for each rank, and which ranks a token goes to.
  __aicore__ inline void Count(const LocalTensor<int32_t>& experts, const LocalTensor<int32_t>& ranks) {
    const normal::Share mine(tiling_.tokens);
    const LocalTensor<int64_t> chosen = chosenBuf_.Get<int64_t>();
    const LocalTensor<int32_t> inRank = inRankBuf_.Get<int32_t>();
    const uint32_t own = tiling_.experts / tiling_.ranks;
    for (uint32_t first = mine.begin; first < mine.end;) {
      const uint32_t tokens = Load(first, mine.end);
      normal::Order<HardEvent::MTE3_V>();  // the last ones have left
      Duplicate(inRank, 0, static_cast<int32_t>(tokens * tiling_.ranks));
      normal::Order<HardEvent::V_S>();
      for (uint32_t token = 0; token < tokens; ++token) {
        for (uint32_t k = 0; k < tiling_.topK; ++k) {
          const auto expert = static_cast<uint32_t>(chosen.GetValue(token * tiling_.topK + k));
          experts.SetValue(expert, experts.GetValue(expert) + 1);
          const uint32_t rank = expert / own, place = token * tiling_.ranks + rank;
          if (inRank.GetValue(place) != 0) continue;
          inRank.SetValue(place, 1);
          ranks.SetValue(rank, ranks.GetValue(rank) + 1);
        }
      }
      normal::Order<HardEvent::S_MTE3>();
      Store(inRank_[static_cast<uint64_t>(first) * tiling_.ranks], inRank, tokens * tiling_.ranks);
      first += tokens;
    }
  }

  // The rows of earlier blocks for each expert.
  __aicore__ inline void AddUp(const LocalTensor<int32_t>& experts) {
    const LocalTensor<int32_t> others = othersBuf_.Get<int32_t>();
    Duplicate(experts, 0, static_cast<int32_t>(tiling_.experts));
    for (int64_t block = 0; block < GetBlockIdx(); ++block) {
      normal::Order<HardEvent::V_MTE2>();
      DataCopy(others, perBlock_[block * tiling_.experts], tiling_.experts);
      normal::Order<HardEvent::MTE2_V>();
      Add(experts, experts, others, static_cast<int32_t>(tiling_.experts));
    }
    normal::Order<HardEvent::V_S>();
  }

  __aicore__ inline void Number(const LocalTensor<int32_t>& experts) {
    const normal::Share mine(tiling_.tokens);
    const LocalTensor<int64_t> chosen = chosenBuf_.Get<int64_t>();
    const LocalTensor<int32_t> index = indexBuf_.Get<int32_t>();
    for (uint32_t first = mine.begin; first < mine.end;) {
      const uint32_t tokens = Load(first, mine.end), pairs = tokens * tiling_.topK;
      normal::Order<HardEvent::MTE3_S>();
      for (uint32_t pair = 0; pair < pairs; ++pair) {
        const auto expert = static_cast<uint32_t>(chosen.GetValue(pair));
        const int32_t number = experts.GetValue(expert);
        index.SetValue(pair, number);
        experts.SetValue(expert, number + 1);
      }
      normal::Order<HardEvent::S_MTE3>();
      Store(index_[first * tiling_.topK], index, pairs);
      first += tokens;
    }
  }

  LayoutTiling tiling_;
  GlobalTensor<int64_t> chosen_;
  GlobalTensor<int32_t> perRank_, perExpert_, inRank_, perBlock_, index_;
  TPipe pipe_;
  TBuf<> chosenBuf_, indexBuf_, inRankBuf_, expertsBuf_, ranksBuf_, othersBuf_;
};

extern "C" __global__ __aicore__ void dispatch_layout(GM_ADDR chosen, GM_ADDR perRank, GM_ADDR perExpert,
                                                      GM_ADDR inRank, GM_ADDR perBlock, GM_ADDR index,
                                                      GM_ADDR workspace, GM_ADDR tiling) {
  REGISTER_TILING_DEFAULT(LayoutTiling);
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  GET_TILING_DATA_WITH_STRUCT(LayoutTiling, data, tiling);
  Layout layout;
  layout.Init(chosen, perRank, perExpert, inRank, perBlock, index, workspace, data);
  layout.Process();
}
