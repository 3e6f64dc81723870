// What dispatch and combine share: windows of both groups, states and their places.
#ifndef MOE_DISTRIBUTE_BASE_H
#define MOE_DISTRIBUTE_BASE_H

#if __has_include("lib/hccl/hccl.h")
#include "lib/hccl/hccl.h"
#endif
#include "kernel_operator.h"
#include "moe_distribute_tiling.h"

constexpr uint32_t UB_ALIGN = 32;
constexpr uint64_t WIN_STATE_OFFSET = 256 * 1024;  // from the begin of a half: rows behind it
constexpr uint64_t WIN_HALF = 4 * 1024 * 1024;
constexpr uint64_t TP_ROWS = 1024;

template <AscendC::HardEvent event>
__aicore__ inline void SyncFunc() {
  int32_t eventID = static_cast<int32_t>(GetTPipePtr()->FetchEventID(event));
  AscendC::SetFlag<event>(eventID);
  AscendC::WaitFlag<event>(eventID);
}

// Dispatch writes to the first half of a window, combine to the second.
template <int half>
class MoeWindows {
 public:
  __aicore__ inline void Init(const void* tiling) {
    ep_.InitV2(AscendC::GetHcclContext<AscendC::HCCL_GROUP_ID_0>(), tiling);
  }
  __aicore__ inline void InitTp(const void* tiling) { tp_.InitV2(AscendC::GetHcclContext<1>(), tiling); }
  __aicore__ inline GM_ADDR State(uint32_t rank, uint32_t n) {
    return ep_.GetWindowsInAddr(rank) + half * WIN_HALF + n * UB_ALIGN;
  }
  __aicore__ inline GM_ADDR Rows(uint32_t rank) {
    return ep_.GetWindowsInAddr(rank) + half * WIN_HALF + WIN_STATE_OFFSET;
  }
  __aicore__ inline GM_ADDR TpState(uint32_t rank) {
    return (GM_ADDR)tp_.GetWindowsInAddr(rank) + half * (WIN_HALF / 4);
  }
  __aicore__ inline GM_ADDR TpRows(uint32_t rank) { return TpState(rank) + TP_ROWS; }

 private:
  AscendC::Hccl<AscendC::HCCL_SERVER_TYPE_AICPU> ep_;
  AscendC::Hccl<AscendC::HCCL_SERVER_TYPE_AICPU> tp_;
};

// Polls `count` states of 32 B until each has 1.0 in its first word; leaves them in `states`.
__aicore__ inline void WaitStates(GM_ADDR at, uint32_t count, const AscendC::LocalTensor<float>& states,
                                  const AscendC::LocalTensor<float>& sum) {
  AscendC::GlobalTensor<float> from;
  from.SetGlobalBuffer((__gm__ float*)at);
  AscendC::SumParams params{1, count, count};
  params.inner = (count * UB_ALIGN + UB_ALIGN - 1) / UB_ALIGN * UB_ALIGN / sizeof(float);
  params.n = params.inner;
  const AscendC::LocalTensor<float> flags = states[count * 8];
  float seen = 0;
  while (seen < static_cast<float>(count)) {
    SyncFunc<AscendC::HardEvent::S_MTE2>();
    AscendC::DataCopy(states, from, count * 8);
    SyncFunc<AscendC::HardEvent::MTE2_V>();
    // Only the first words: a mask in each repeat of 8 states.
    AscendC::Duplicate(flags, 0.0f, params.inner);
    AscendC::PipeBarrier<PIPE_V>();
    uint64_t first[2] = {0x0101010101010101, 0};
    const uint8_t repeats = count / 8;
    if (repeats != 0) AscendC::Adds(flags, states, 0.0f, first, repeats, {1, 1, 8, 8});
    if (count % 8 != 0) {
      uint64_t rest[2] = {0x0101010101010101ull >> (64 - count % 8 * 8), 0};
      AscendC::Adds(flags[repeats * 64], states[repeats * 64], 0.0f, rest, 1, {1, 1, 8, 8});
    }
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Sum(sum, flags, params);
    SyncFunc<AscendC::HardEvent::V_S>();
    seen = sum.GetValue(0);
  }
}

// 1.0 and a number behind it.
__aicore__ inline void WriteState(GM_ADDR at, const AscendC::LocalTensor<float>& state, int32_t number) {
  SyncFunc<AscendC::HardEvent::MTE3_V>();
  AscendC::Duplicate(state, 0.0f, 8);
  SyncFunc<AscendC::HardEvent::V_S>();
  state.SetValue(0, 1.0f);
  state.ReinterpretCast<int32_t>().SetValue(1, number);
  SyncFunc<AscendC::HardEvent::S_MTE3>();
  AscendC::GlobalTensor<float> to;
  to.SetGlobalBuffer((__gm__ float*)at);
  AscendC::DataCopy(to, state, 8);
  AscendC::PipeBarrier<PIPE_ALL>();
}

#endif
