// Where the ranks of a low-latency exchange write to each other: two halves of every rank's window, used in
// turn, each with slots for rows and words for counts.
#ifndef LOW_LATENCY_WINDOW_H
#define LOW_LATENCY_WINDOW_H

#include "kernel_operator.h"

namespace low_latency {

constexpr uint32_t kMaxRanks = 512;

// The group's resources as the runtime hands them out.
struct RemoteResource {
  uint32_t remoteRank;
  uint32_t remoteWorldRank;
  uint64_t windowsIn;
  uint64_t windowsOut;
  uint64_t windowsExp;
};
struct RemotePointer {
  uint64_t nextHostPtr;
  uint64_t nextDevicePtr;
};
struct OpResource {
  uint64_t workSpace;
  uint64_t workSpaceSize;
  uint32_t localUsrRankId;
  uint32_t rankSize;
  uint64_t winSize;
  uint64_t localWindowsIn;
  uint64_t localWindowsOut;
  char hcomId[128];
  uint64_t winExpSize;
  uint64_t localWindowsExp;
  uint8_t others[2984 - 192];
  RemotePointer remoteRes[kMaxRanks];
};
static_assert(offsetof(OpResource, remoteRes) == 2984);

struct TilingData {
  uint32_t tokens;     // of this rank, at most maxTokens
  uint32_t maxTokens;  // of any rank: slots an expert and source rank
  uint32_t hidden;     // elements, a multiple of 32
  uint32_t topk;
  uint32_t experts;  // of all ranks
  uint32_t round;    // 0, 1, 2, ..: which half of the window
};

// A row on its way: int8 elements, then 32 B with the scale and where it comes from.
struct Shape {
  uint32_t rowBytes, localExperts, ranks;
  uint64_t half;

  __aicore__ inline Shape(const TilingData& t, uint32_t rankSize) {
    ranks = rankSize;
    localExperts = t.experts / rankSize;
    rowBytes = t.hidden + 32;
    half = Counts(t) + 2 * static_cast<uint64_t>(t.experts) * rankSize * 32;
  }
  __aicore__ inline uint64_t Rows(const TilingData& t) const {
    return static_cast<uint64_t>(localExperts) * ranks * t.maxTokens * rowBytes;
  }
  // Results come back to a token's k-th slot, of bfloat16_t.
  __aicore__ inline uint64_t Back(const TilingData& t) const {
    return static_cast<uint64_t>(t.maxTokens) * t.topk * t.hidden * 2;
  }
  __aicore__ inline uint64_t Counts(const TilingData& t) const { return Rows(t) + Back(t); }
  __aicore__ inline uint64_t Slot(const TilingData& t, uint32_t localExpert, uint32_t source,
                                  uint32_t n) const {
    return ((static_cast<uint64_t>(localExpert) * ranks + source) * t.maxTokens + n) * rowBytes;
  }
  __aicore__ inline uint64_t Count(const TilingData& t, uint32_t localExpert, uint32_t source) const {
    return Counts(t) + (static_cast<uint64_t>(localExpert) * ranks + source) * 32;
  }
  __aicore__ inline uint64_t Answer(const TilingData& t, uint32_t expert) const {
    return Counts(t) + (static_cast<uint64_t>(t.experts) * ranks + expert) * 32;
  }
};

class Window {
 public:
  __aicore__ inline void Init() {
    context_ = (__gm__ OpResource*)AscendC::GetHcclContext<AscendC::HCCL_GROUP_ID_0>();
    rank = context_->localUsrRankId;
    ranks = context_->rankSize;
  }
  __aicore__ inline GM_ADDR Of(uint32_t other) const {
    if (other == rank) return (GM_ADDR)context_->localWindowsIn;
    auto* remote = (__gm__ RemoteResource*)context_->remoteRes[other].nextDevicePtr;
    return (GM_ADDR)remote->windowsIn;
  }
  uint32_t rank, ranks;

 private:
  __gm__ OpResource* context_;
};

// Waits for `event` at once.
template <AscendC::HardEvent event>
__aicore__ inline void SyncFunc() {
  const event_t id = static_cast<event_t>(GetTPipePtr()->FetchEventID(event));
  AscendC::SetFlag<event>(id);
  AscendC::WaitFlag<event>(id);
}

}  // namespace low_latency

#endif
