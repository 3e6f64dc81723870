// All-gather, reduce-scatter and all-reduce among any number of ranks, by AIV-Direct. Arguments, flags:
// firmware/abi/collective.h.
#include "collective_parts.h"
#include "firmware/abi/collective.h"

using namespace AscendC;

namespace {

constexpr uint32_t kFlag = CM384_COLLECTIVE_FLAG;
constexpr uint32_t kFlagsAtOnce = 60;
// UBuffer: the flag that is sent, flags that are read, the table of peers, then buffers of a chunk each: two
// in, two out, and two rows of float, which take two each.
constexpr uint32_t kOwnFlag = 0, kReadFlags = 512, kPeers = 2560, kMostChunk = 16 * 1024;
static_assert(kReadFlags + kFlagsAtOnce * kFlag <= kPeers);

class Rounds {
 public:
  explicit Rounds(const cm384_collective_rounds& a)
      : a_(a),
        portions_(cm384_rounds_portions(a.ranks, static_cast<uint32_t>(GetBlockNum()))),
        slices_(cm384_rounds_slices(a.ranks, static_cast<uint32_t>(GetBlockNum()))),
        slice_(static_cast<uint32_t>(GetBlockIdx()) / portions_),
        turn_(static_cast<uint32_t>(GetBlockIdx()) - slice_ * portions_),
        buffers_((kPeers + a.ranks * static_cast<uint32_t>(sizeof(cm384_rounds_peer)) + 511) / 512 * 512),
        chunk_((kUBufferBytes - buffers_) / 8 / 512 * 512 < kMostChunk
                   ? (kUBufferBytes - buffers_) / 8 / 512 * 512
                   : kMostChunk) {}

  void Run() {
    if (slice_ >= slices_) return;
    DataCopy(LocalTensor<uint8_t>(kPeers), GlobalAt<uint8_t>(a_.peers), a_.ranks * sizeof(cm384_rounds_peer));
    SetFlag<HardEvent::MTE2_S>(1);
    LocalTensor<uint32_t>(kOwnFlag).SetValue(0, 1);
#ifdef CM384_CLEARS_ITS_FLAG
    for (uint32_t n = 1; n < 8; ++n) LocalTensor<uint32_t>(kOwnFlag).SetValue(n, 0);
#endif
    SetFlag<HardEvent::S_MTE3>(0);
    WaitFlag<HardEvent::S_MTE3>(0);
    WaitFlag<HardEvent::MTE2_S>(1);
    if (a_.kind == CM384_ALL_GATHER) return AllGather();
    Scatter();
    Await(Sent(slice_, 0), a_.ranks);
    Sum sum{*this, Slice(Slice(Part(a_.rank), slices_, slice_), portions_, turn_)};
    sum.Run();
    if (a_.kind == CM384_ALL_REDUCE) Finish();
  }

 private:
  // A slice of the own part to each peer of this block, once that is ready; then the peers' slices are
  // awaited.
  void AllGather() const {
    const Bytes part = Slice({0, a_.bytes}, slices_, slice_);
    for (uint32_t t = turn_; slice_ == 0 && t < a_.ranks; t += portions_) Signal(Peer(t), a_.rank);
    for (uint32_t t = turn_; t < a_.ranks; t += portions_) {
      const uint32_t peer = Peer(t);
      Await(peer, 1);
      Copy(Table(peer).window + a_.rank * a_.window_stride, Table(a_.rank).in, part);
      PipeBarrier<PIPE_ALL>();
      Signal(peer, Sent(slice_, a_.rank));
    }
    for (uint32_t t = turn_; t < a_.ranks; t += portions_) Await(Sent(slice_, Peer(t)), 1);
  }

  // To each peer of this block a slice of what this rank has for it.
  void Scatter() const {
    for (uint32_t t = turn_; t < a_.ranks; t += portions_) {
      const uint32_t peer = Peer(t);
      if (peer != a_.rank) {
        const Bytes part = Part(peer);
        const Bytes own = Slice(part, slices_, slice_);
        Copy(Table(peer).window + a_.rank * a_.window_stride - part.first, Table(a_.rank).in + For(peer),
             own);
        PipeBarrier<PIPE_ALL>();
      }
      Signal(peer, Sent(slice_, a_.rank));
    }
  }

  // Tells all ranks that this block's sums are there, and awaits those of the same block of all ranks.
  void Finish() const {
    const auto block = static_cast<uint32_t>(GetBlockIdx());
    PipeBarrier<PIPE_ALL>();
    for (uint32_t t = 0; t < a_.ranks; ++t) Signal(Peer(t), Summed(block, a_.rank));
    Await(Summed(block, 0), a_.ranks);
  }

  const cm384_rounds_peer& Table(uint32_t rank) const {
    return reinterpret_cast<const cm384_rounds_peer*>(CM384_UBUFFER_BASE + kPeers)[rank];
  }
  // Every rank begins with another one.
  uint32_t Peer(uint32_t turn) const {
    const uint32_t peer = a_.rank + turn;
    return peer < a_.ranks ? peer : peer - a_.ranks;
  }
  uint32_t Sent(uint32_t slice, uint32_t rank) const {
    return (1 + slice) * a_.ranks + rank;
  }
  uint32_t Summed(uint32_t block, uint32_t rank) const {
    return (1 + slices_ + block) * a_.ranks + rank;
  }
  // What a rank sums, within the bytes that others have for it.
  Bytes Part(uint32_t rank) const {
    return a_.kind == CM384_ALL_REDUCE ? Slice({0, a_.bytes}, a_.ranks, rank) : Bytes{0, a_.bytes};
  }
  // Where a rank's input has what it has for `peer`.
  uint64_t For(uint32_t peer) const {
    return a_.kind == CM384_REDUCE_SCATTER ? peer * a_.bytes : 0;
  }
  uint64_t Arrived(uint32_t rank, uint64_t first) const {
    return rank == a_.rank ? Table(rank).in + For(rank)
                           : Table(a_.rank).window + rank * a_.window_stride - first;
  }

  void Signal(uint32_t peer, uint32_t flag) const {
    DataCopy(GlobalAt<uint32_t>(Table(peer).flags + flag * kFlag), LocalTensor<uint32_t>(kOwnFlag), 8);
  }
  // Polls until `count` own flags from `flag` on are set.
  void Await(uint32_t flag, uint32_t count) const {
    for (; count > kFlagsAtOnce; flag += kFlagsAtOnce, count -= kFlagsAtOnce) AwaitSome(flag, kFlagsAtOnce);
    AwaitSome(flag, count);
  }
  void AwaitSome(uint32_t flag, uint32_t count) const {
    const uint64_t address = Table(a_.rank).flags + flag * kFlag;
    const LocalTensor<uint32_t> words(kReadFlags);
    for (;;) {
      SetFlag<HardEvent::S_MTE2>(0);
      WaitFlag<HardEvent::S_MTE2>(0);
      DataCopy(words, GlobalAt<uint32_t>(address), count * kFlag / 4);
      SetFlag<HardEvent::MTE2_S>(0);
      WaitFlag<HardEvent::MTE2_S>(0);
      uint32_t arrived = 0;
      for (uint32_t n = 0; n < count; ++n) arrived += words.GetValue(n * kFlag / 4);
      if (arrived == count) break;
      PollMark(address, count * kFlag);
    }
    PollEnd(address);
  }

  void Copy(uint64_t to, uint64_t from, Bytes part) const {
    CopyChunks(to, from, part, buffers_, chunk_);
  }

  // Of all ranks' values of a portion, in their order: item n is chunk n / ranks of rank n % ranks. The sum
  // goes to the own output, of an all-reduce to all.
  struct Sum {
    const Rounds& of;
    Bytes portion;

    void Run() {
      const uint64_t bytes = portion.last - portion.first;
      RunRows(*this, {0, static_cast<uint32_t>((bytes + of.chunk_ - 1) / of.chunk_) * of.a_.ranks}, 2);
    }
    void Load(uint32_t item, uint32_t b) {
      const uint32_t chunk = item / of.a_.ranks, rank = item - chunk * of.a_.ranks;
      LoadBf16(In(b), of.Arrived(rank, of.Part(of.a_.rank).first) + First(chunk), 0, Count(chunk));
    }
    void Compute(uint32_t item, uint32_t b) {
      const uint32_t chunk = item / of.a_.ranks, rank = item - chunk * of.a_.ranks, count = Count(chunk);
      const LocalTensor<float> all(of.buffers_ + 4 * of.chunk_), one(of.buffers_ + 6 * of.chunk_);
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
      if (item + 1 != (chunk + 1) * of.a_.ranks) return;
      const uint32_t outputs = of.a_.kind == CM384_ALL_REDUCE ? of.a_.ranks : 1;
      // Blocks begin with different peers; a reduce-scatter's one is the own.
      const uint32_t begin = outputs == 1 ? 0 : of.turn_;
      for (uint32_t n = 0; n < outputs; ++n) {
        const uint32_t turn = begin + n < outputs ? begin + n : begin + n - outputs;
        StoreBf16(of.Table(of.Peer(turn)).out + First(chunk), 0, Out(b), Count(chunk));
      }
    }

    uint32_t In(uint32_t b) const { return of.buffers_ + b * of.chunk_; }
    uint32_t Out(uint32_t b) const { return of.buffers_ + (2 + b) * of.chunk_; }
    uint64_t First(uint32_t chunk) const { return portion.first + static_cast<uint64_t>(chunk) * of.chunk_; }
    uint32_t Count(uint32_t chunk) const {
      const uint64_t left = portion.last - First(chunk);
      return static_cast<uint32_t>(left < of.chunk_ ? left : of.chunk_) / 2;
    }
  };

  const cm384_collective_rounds& a_;
  const uint32_t portions_, slices_, slice_, turn_;
  const uint32_t buffers_, chunk_;
};

}  // namespace

extern "C" void kernel_main(GM_ADDR address) {
  const auto a = *reinterpret_cast<const cm384_collective_rounds*>(address);
  Rounds rounds(a);
  rounds.Run();
}
