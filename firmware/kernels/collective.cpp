// All-gather, reduce-scatter and all-reduce by AIV-Direct. Arguments, flags: firmware/abi/collective.h.
#include "firmware/abi/collective.h"

#include "collective_parts.h"

using namespace AscendC;

namespace {

constexpr uint32_t kChunk = 16 * 1024;  // bytes in the UBuffer at a time
constexpr uint32_t kFlag = CM384_COLLECTIVE_FLAG;
// UBuffer: the flag that is sent, flags that are read, the arguments, then buffers.
constexpr uint32_t kOwnFlag = 0, kReadFlags = 512, kArguments = 2560, kBuffers = 4096;
static_assert(kArguments + sizeof(cm384_collective) <= kBuffers);

class Collective {
 public:
  explicit Collective(const cm384_collective& a)
      : a_(a),
        block_(static_cast<uint32_t>(GetBlockIdx())),
        blocks_(static_cast<uint32_t>(GetBlockNum())),
        slices_(blocks_ / a.ranks),
        slice_(block_ / a.ranks),
        turn_(block_ - slice_ * a.ranks),
        peers_(a.peers) {
    LocalTensor<uint32_t>(kOwnFlag).SetValue(0, a.launch);
#ifdef CM384_CLEARS_ITS_FLAG
    for (uint32_t n = 1; n < 8; ++n) LocalTensor<uint32_t>(kOwnFlag).SetValue(n, 0);
#endif
    SetFlag<HardEvent::S_MTE3>(0);
    WaitFlag<HardEvent::S_MTE3>(0);
  }

  // Each block writes a slice to one peer, once that is ready, and waits for the same slice of the peer's.
  void AllGather() {
    if (slice_ >= slices_) return;
    const uint32_t peer = Peer(turn_);
    const Bytes part = Slice({0, a_.bytes}, slices_, slice_);
    if (slice_ == 0) Signal(peer, a_.rank);
    Await(peer, 1);
    Copy(peers_[peer].window + a_.rank * a_.bytes, peers_[a_.rank].in, part);
    PipeBarrier<PIPE_ALL>();
    Signal(peer, Done(slice_, a_.rank));
    Await(Done(slice_, peer), 1);
  }

  // Each block writes a slice of what it has for one peer to the peer's window. When that slice has come from
  // all ranks, the blocks that wrote it sum a portion each.
  void Reduce() {
    if (slice_ >= slices_) return;
    const uint32_t peer = Peer(turn_);
    const Bytes part = Slice({0, a_.bytes}, slices_, slice_);
    if (peer != a_.rank) {
      Copy(peers_[peer].window + a_.rank * a_.bytes, peers_[a_.rank].in + For(peer), part);
      PipeBarrier<PIPE_ALL>();
    }
    Signal(peer, Done(slice_, a_.rank));
    Await(Done(slice_, 0), a_.ranks);
    Sum sum{*this, Slice(part, a_.ranks, turn_)};
    sum.Run();
  }

 private:
  // Every rank begins with another one.
  uint32_t Peer(uint32_t turn) const {
    const uint32_t peer = a_.rank + turn;
    return peer < a_.ranks ? peer : peer - a_.ranks;
  }
  uint32_t Done(uint32_t slice, uint32_t rank) const {
    return CM384_COLLECTIVE_RANKS + slice * a_.ranks + rank;
  }
  // Where a rank's input has what it has for `peer`.
  uint64_t For(uint32_t peer) const {
    return a_.kind == CM384_REDUCE_SCATTER ? peer * a_.bytes : 0;
  }
  uint64_t Arrived(uint32_t rank) const {
    return rank == a_.rank ? peers_[rank].in + For(rank) : peers_[a_.rank].window + rank * a_.bytes;
  }

  void Signal(uint32_t peer, uint32_t flag) const {
    DataCopy(GlobalAt<uint32_t>(peers_[peer].flags + flag * kFlag), LocalTensor<uint32_t>(kOwnFlag), 8);
  }
  // Polls until `count` own flags from `flag` on say this launch, or a later one.
  void Await(uint32_t flag, uint32_t count) const {
    const uint64_t address = peers_[a_.rank].flags + flag * kFlag;
    const LocalTensor<uint32_t> words(kReadFlags);
    for (;;) {
      SetFlag<HardEvent::S_MTE2>(0);
      WaitFlag<HardEvent::S_MTE2>(0);
      DataCopy(words, GlobalAt<uint32_t>(address), count * kFlag / 4);
      SetFlag<HardEvent::MTE2_S>(0);
      WaitFlag<HardEvent::MTE2_S>(0);
      uint32_t arrived = 0;
      for (uint32_t n = 0; n < count; ++n) arrived += words.GetValue(n * kFlag / 4) >= a_.launch ? 1 : 0;
      if (arrived == count) break;
      PollMark(address, count * kFlag);
    }
    PollEnd(address);
  }

  void Copy(uint64_t to, uint64_t from, Bytes part) const {
    CopyChunks(to, from, part, kBuffers, kChunk);
  }

  // Of all ranks' values of a portion, in their order: item n is chunk n / ranks of rank n % ranks.
  struct Sum {
    const Collective& of;
    Bytes portion;

    void Run() {
      const uint64_t bytes = portion.last - portion.first;
      RunRows(*this, {0, static_cast<uint32_t>((bytes + kChunk - 1) / kChunk) * of.a_.ranks}, 2);
    }
    void Load(uint32_t item, uint32_t b) {
      const uint32_t chunk = item / of.a_.ranks;
      LoadBf16(In(b), of.Arrived(item - chunk * of.a_.ranks) + First(chunk), 0, Count(chunk));
    }
    void Compute(uint32_t item, uint32_t b) {
      const uint32_t chunk = item / of.a_.ranks, rank = item - chunk * of.a_.ranks, count = Count(chunk);
      const LocalTensor<float> all(kSum), one(kOne);
      PipeBarrier<PIPE_V>();
      if (rank == 0) {
        Widen(all, In(b), count);
      } else {
        Widen(one, In(b), count);
        PipeBarrier<PIPE_V>();
        Add(all, all, one, static_cast<int>(count));
      }
      if (rank + 1 < of.a_.ranks) return;
      PipeBarrier<PIPE_V>();
      Narrow(Out(b), all, count);
    }
    void Store(uint32_t item, uint32_t b) {
      const uint32_t chunk = item / of.a_.ranks;
      if (item + 1 == (chunk + 1) * of.a_.ranks) StoreBf16(of.a_.out + First(chunk), 0, Out(b), Count(chunk));
    }

    static constexpr uint32_t kSum = kBuffers + 4 * kChunk, kOne = kSum + 2 * kChunk;
    static uint32_t In(uint32_t b) { return kBuffers + b * kChunk; }
    static uint32_t Out(uint32_t b) { return kBuffers + (2 + b) * kChunk; }
    uint64_t First(uint32_t chunk) const { return portion.first + static_cast<uint64_t>(chunk) * kChunk; }
    uint32_t Count(uint32_t chunk) const {
      const uint64_t left = portion.last - First(chunk);
      return static_cast<uint32_t>(left < kChunk ? left : kChunk) / 2;
    }
  };

  const cm384_collective& a_;
  const uint32_t block_, blocks_;
  const uint32_t slices_, slice_, turn_;  // blocks for each peer
  const cm384_collective_peer* peers_;
};

}  // namespace

// All cores begin with the arguments: one copy of them instead of a miss for each line of the data cache.
extern "C" void kernel_main(GM_ADDR address) {
  DataCopy(LocalTensor<uint8_t>(kArguments), GlobalAt<uint8_t>(reinterpret_cast<uint64_t>(address)),
           sizeof(cm384_collective));
  SetFlag<HardEvent::MTE2_S>(1);
  WaitFlag<HardEvent::MTE2_S>(1);
  const auto& a = *reinterpret_cast<const cm384_collective*>(CM384_UBUFFER_BASE + kArguments);
  Collective collective(a);
  if (a.kind == CM384_ALL_GATHER) return collective.AllGather();
  collective.Reduce();
}
