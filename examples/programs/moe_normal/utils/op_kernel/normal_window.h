// What the four kernels of "normal" mode share: where things stand in a rank's window, and waits.
//
// In the window of rank r, which its peers read and write:
//   counts   slot s, kCountBytes apart: what rank s sends to each expert of r, and where its rows for it
//   begin
//            in the window of s
//   flags    32 B each: counts of s have arrived; rows of s stand in its window, one for each block that
//   waits for
//            them; result k of token t has arrived
//   rows     the rank's own rows to send, by expert, then token; dense
//   notes    64 B beside each of them: source, token and place among the token's experts; in the second half
//   the scale results  [tokens][top-k] rows that come back from the experts
// A waiter sets its flags back to 0, so the window is ready for the next call.
#pragma once

#include <type_traits>

#include "kernel_operator.h"

namespace normal {

using namespace AscendC;

constexpr uint32_t kBlock = 32, kFlagWords = kBlock / sizeof(int32_t);
constexpr uint32_t kNoteBytes = 2 * kBlock, kNoteWords = 2 * kFlagWords;
constexpr uint64_t kCountBytes = 1024, kRanks = 256, kBlocks = 64;  // ranks and blocks: at most
constexpr uint64_t kCountFlags = kRanks * kCountBytes;
constexpr uint64_t kRowFlags = kCountFlags + kRanks * kBlock;             // [source][block]
constexpr uint64_t kResultFlags = kRowFlags + kRanks * kBlocks * kBlock;  // [token][k]

// What depends on the sizes of a call. Rows are BF16, or INT8 on their way to the experts; 2 x hidden bytes
// are a multiple of 32.
struct Sizes {
  uint32_t tokens, topK, hidden;

  __aicore__ inline uint64_t Pairs() const { return static_cast<uint64_t>(tokens) * topK; }
  __aicore__ inline uint64_t Notes() const { return kResultFlags + Pairs() * kBlock; }
  __aicore__ inline uint64_t Rows() const { return Notes() + Pairs() * kNoteBytes; }
  __aicore__ inline uint64_t Results() const {
    return Rows() + Pairs() * static_cast<uint64_t>(hidden) * sizeof(bfloat16_t);
  }
  __aicore__ inline uint64_t Result(uint32_t token, uint32_t k) const {
    return Results() + (static_cast<uint64_t>(token) * topK + k) * hidden * sizeof(bfloat16_t);
  }
};

__aicore__ inline uint32_t Aligned(uint32_t count, uint32_t unit) {
  return (count + unit - 1) / unit * unit;
}

// What a block does of `count` things: those from `begin` to before `end`.
struct Share {
  uint32_t begin, end;
  __aicore__ inline explicit Share(uint32_t count) {
    const uint32_t each = (count + GetBlockNum() - 1) / GetBlockNum(), first = each * GetBlockIdx();
    begin = first < count ? first : count;
    end = begin + each < count ? begin + each : count;
  }
};

// One pipe waits for another.
template <HardEvent event>
__aicore__ inline void Order() {
  const int32_t id = static_cast<int32_t>(GetTPipePtr()->FetchEventID(event));
  SetFlag<event>(id);
  WaitFlag<event>(id);
}

template <typename T>
__aicore__ inline GlobalTensor<T> At(GM_ADDR address) {
  GlobalTensor<T> tensor;
  tensor.SetGlobalBuffer((__gm__ T*)address);
  return tensor;
}

// Waits until `count` flags that follow each other stand at 1, and sets them back. `seen` has room for them;
// `zeros` is as large.
__aicore__ inline void AwaitFlags(GM_ADDR flags, const LocalTensor<int32_t>& seen,
                                  const LocalTensor<int32_t>& zeros, uint32_t count) {
  const GlobalTensor<int32_t> words = At<int32_t>(flags);
  for (uint32_t arrived = 0; arrived < count;) {
    Order<HardEvent::S_MTE2>();
    DataCopy(seen, words, count * kFlagWords);
    Order<HardEvent::MTE2_S>();
    for (arrived = 0; arrived < count && seen.GetValue(arrived * kFlagWords) == 1;) ++arrived;
  }
  DataCopy(words, zeros, count * kFlagWords);
}

// Whose window, and where.
class Windows {
 public:
  __aicore__ inline void Init(const void* tiling) { hccl_.InitV2(GetHcclContext<HCCL_GROUP_ID_0>(), tiling); }
  __aicore__ inline GM_ADDR Of(uint32_t rank, uint64_t offset) const {
    return hccl_.GetWindowsInAddr(rank) + offset;
  }

 private:
  Hccl<HCCL_SERVER_TYPE_AICPU> hccl_;
};

}  // namespace normal
