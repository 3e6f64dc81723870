// Running sums, and cores that take turns by words in memory. The scalar unit does the work, once the pipes
// are idle.
#pragma once

#include "cm384/data_copy.h"
#include "cm384/reduce.h"

namespace AscendC {

// `outter` rows of `inner` elements (a multiple of 32 B).
struct CumSumInfo {
  uint32_t outter = 0;
  uint32_t inner = 0;
};
struct CumSumConfig {
  bool isLastAxis = true;  // along rows; false: from row to row
  bool isReuseSource = false;
  bool outputLastRow = false;
};
inline constexpr CumSumConfig defaultCumSumConfig{};

// Each sum is rounded to T. `last_row` gets the last row of sums where the configuration asks for it.
template <typename T, const CumSumConfig& config = defaultCumSumConfig>
inline void CumSum(const LocalTensor<T>& dst, const LocalTensor<T>& last_row, const LocalTensor<T>& src,
                   const CumSumInfo& info) {
  static_assert(is_same_v<T, float> || is_same_v<T, half>, "CumSum: for float and half: docs/ascend-c.md");
  PipeBarrier<PIPE_ALL>();
  for (uint32_t row = 0; row < info.outter; ++row) {
    for (uint32_t n = 0; n < info.inner; ++n) {
      const uint32_t at = row * info.inner + n;
      const bool first = config.isLastAxis ? n == 0 : row == 0;
      const float before =
          first ? 0.0f : static_cast<float>(dst.GetValue(config.isLastAxis ? at - 1 : at - info.inner));
      const T sum = first ? src.GetValue(at) : static_cast<T>(before + static_cast<float>(src.GetValue(at)));
      dst.SetValue(at, sum);
      if (config.outputLastRow && row + 1 == info.outter) last_row.SetValue(n, sum);
    }
  }
  SetFlag<HardEvent::S_V>(EVENT_ID7);
  WaitFlag<HardEvent::S_V>(EVENT_ID7);
  SetFlag<HardEvent::S_MTE3>(EVENT_ID7);
  WaitFlag<HardEvent::S_MTE3>(EVENT_ID7);
}
template <typename T, const CumSumConfig& config = defaultCumSumConfig>
CM384_INLINE void CumSum(const LocalTensor<T>& dst, const LocalTensor<T>& last_row, const LocalTensor<T>& src,
                         const LocalTensor<uint8_t>&, const CumSumInfo& info) {
  CumSum<T, config>(dst, last_row, src, info);
}

// A word in memory that a core sets and another one waits for, through 32 B of the UBuffer.
CM384_INLINE void SetWord(const GlobalTensor<int32_t>& word, const LocalTensor<int32_t>& ub, int32_t value) {
  PipeBarrier<PIPE_ALL>();
  ub.SetValue(0, value);
  SetFlag<HardEvent::S_MTE3>(EVENT_ID7);
  WaitFlag<HardEvent::S_MTE3>(EVENT_ID7);
  DataCopy(word, ub, 8);
  PipeBarrier<PIPE_ALL>();
}
inline void AwaitWord(const GlobalTensor<int32_t>& word, const LocalTensor<int32_t>& ub, int32_t least) {
  PipeBarrier<PIPE_ALL>();
  for (;;) {
    DataCopy(ub, word, 8);
    PipeBarrier<PIPE_ALL>();
    if (ub.GetValue(0) >= least) break;
    PollMark(word.address(), ONE_BLK_SIZE);
  }
  PollEnd(word.address());
}

// Core `blockIdx` sets event `eventID`, any other waits for it and takes it back. `gm` is zero at first.
template <bool isAIVOnly = true>
CM384_INLINE void IBSet(const GlobalTensor<int32_t>& gm, const LocalTensor<int32_t>& ub, int32_t blockIdx,
                        int32_t eventID) {
  SetWord(gm[static_cast<uint64_t>((eventID * GetBlockNum() + blockIdx) * 8)], ub, 1);
}
template <bool isAIVOnly = true>
CM384_INLINE void IBWait(const GlobalTensor<int32_t>& gm, const LocalTensor<int32_t>& ub, int32_t blockIdx,
                         int32_t eventID) {
  const GlobalTensor<int32_t> word = gm[static_cast<uint64_t>((eventID * GetBlockNum() + blockIdx) * 8)];
  AwaitWord(word, ub, 1);
  SetWord(word, ub, 0);
}

// One core after another: each waits for the one before it, and core 0 from the second turn on for the last
// one. A core's word counts its turns; so does one at the end of `ub`.
CM384_INLINE void InitDetermineComputeWorkspace(const GlobalTensor<int32_t>& gm,
                                                const LocalTensor<int32_t>& ub) {
  ub.SetValue(static_cast<uint32_t>(GetBlockNum() * 8), 0);
  SetWord(gm[static_cast<uint64_t>(GetBlockIdx() * 8)], ub, 0);
  SyncAll();
}
CM384_INLINE void WaitPreBlock(const GlobalTensor<int32_t>& gm, const LocalTensor<int32_t>& ub) {
  const auto block = static_cast<int32_t>(GetBlockIdx()), blocks = static_cast<int32_t>(GetBlockNum());
  const int32_t turns = ub.GetValue(static_cast<uint32_t>(blocks * 8));
  const int32_t before = block == 0 ? blocks - 1 : block - 1;
  AwaitWord(gm[static_cast<uint64_t>(before * 8)], ub, block == 0 ? turns : turns + 1);
}
CM384_INLINE void NotifyNextBlock(const GlobalTensor<int32_t>& gm, const LocalTensor<int32_t>& ub) {
  const auto place = static_cast<uint32_t>(GetBlockNum() * 8);
  PipeBarrier<PIPE_ALL>();
  ub.SetValue(place, ub.GetValue(place) + 1);
  SetWord(gm[static_cast<uint64_t>(GetBlockIdx() * 8)], ub, ub.GetValue(place));
}

}  // namespace AscendC
