// All-gather, reduce-scatter and all-reduce among any number of ranks, by AIV-Direct. Arguments, flags:
// firmware/abi/collective.h.
#include "peer_table.h"

using namespace AscendC;

namespace {

class Rounds : PeerTable {
 public:
  explicit Rounds(const cm384_collective_rounds& a)
      : PeerTable(a),
        portions_(cm384_rounds_portions(a.ranks, static_cast<uint32_t>(GetBlockNum()))),
        slices_(cm384_rounds_slices(a.ranks, static_cast<uint32_t>(GetBlockNum()))),
        slice_(static_cast<uint32_t>(GetBlockIdx()) / portions_),
        turn_(static_cast<uint32_t>(GetBlockIdx()) - slice_ * portions_) {}

  void Run() {
    if (slice_ >= slices_) return;
    LoadTable();
    if (a_.kind == CM384_ALL_GATHER) return AllGather();
    Scatter();
    Await(Sent(slice_, 0), a_.ranks);
    PeerSum<Rounds> sum{*this, Slice(Slice(Part(a_.rank), slices_, slice_), portions_, turn_), a_.ranks,
                        buffers_, chunk_};
    sum.Run();
    if (a_.kind == CM384_ALL_REDUCE) AwaitSums();
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
  void AwaitSums() const {
    const auto block = static_cast<uint32_t>(GetBlockIdx());
    PipeBarrier<PIPE_ALL>();
    for (uint32_t t = 0; t < a_.ranks; ++t) Signal(Peer(t), Summed(block, a_.rank));
    Await(Summed(block, 0), a_.ranks);
  }

  // Every rank begins with another one.
  uint32_t Peer(uint32_t turn) const {
    const uint32_t peer = a_.rank + turn;
    return peer < a_.ranks ? peer : peer - a_.ranks;
  }
  uint32_t Sent(uint32_t slice, uint32_t rank) const { return (1 + slice) * a_.ranks + rank; }
  uint32_t Summed(uint32_t block, uint32_t rank) const { return (1 + slices_ + block) * a_.ranks + rank; }
  // What a rank sums, within the bytes that others have for it.
  Bytes Part(uint32_t rank) const {
    return a_.kind == CM384_ALL_REDUCE ? Slice({0, a_.bytes}, a_.ranks, rank) : Bytes{0, a_.bytes};
  }
  // Where a rank's input has what it has for `peer`.
  uint64_t For(uint32_t peer) const { return a_.kind == CM384_REDUCE_SCATTER ? peer * a_.bytes : 0; }
  uint64_t Arrived(uint32_t rank, uint64_t first) const {
    return rank == a_.rank ? Table(rank).in + For(rank)
                           : Table(a_.rank).window + rank * a_.window_stride - first;
  }

  // Of all ranks' values of a portion; the sum goes to the own output, of an all-reduce to all.
  friend PeerSum<Rounds>;
  uint64_t Term(uint32_t rank) const { return Arrived(rank, Part(a_.rank).first); }
  void Finish(uint32_t buffer, uint64_t first, uint32_t count) const {
    const uint32_t outputs = a_.kind == CM384_ALL_REDUCE ? a_.ranks : 1;
    // Blocks begin with different peers; a reduce-scatter's one is the own.
    const uint32_t begin = outputs == 1 ? 0 : turn_;
    for (uint32_t n = 0; n < outputs; ++n) {
      const uint32_t turn = begin + n < outputs ? begin + n : begin + n - outputs;
      StoreBf16(Table(Peer(turn)).out + first, 0, buffer, count);
    }
  }

  const uint32_t portions_, slices_, slice_, turn_;
};

}  // namespace

extern "C" void kernel_main(GM_ADDR address) {
  const auto a = *reinterpret_cast<const cm384_collective_rounds*>(address);
  Rounds rounds(a);
  rounds.Run();
}
