// All-gather and reduce-scatter among ranks that are the pairs of dies of packages: what both dies of a
// package want of another one crosses the bus once, and the link between the two dies once. Arguments, flags:
// firmware/abi/collective.h.
#include "peer_table.h"

using namespace AscendC;

namespace {

class Paired : PeerTable {
 public:
  explicit Paired(const cm384_collective_rounds& a)
      : PeerTable(a),
        packages_(a.ranks / 2),
        own_(a.rank / 2),
        place_(a.rank % 2),
        twin_(a.rank ^ 1u),
        portions_(cm384_rounds_portions(packages_, static_cast<uint32_t>(GetBlockNum()))),
        slices_(cm384_rounds_slices(packages_, static_cast<uint32_t>(GetBlockNum()))),
        slice_(static_cast<uint32_t>(GetBlockIdx()) / portions_),
        turn_(static_cast<uint32_t>(GetBlockIdx()) - slice_ * portions_) {}

  void Run() {
    if (slice_ >= slices_) return;
    LoadTable();
    a_.kind == CM384_ALL_GATHER ? Gather() : Scatter();
  }

 private:
  // A slice of the own part to the die of the same place in each package of this block, once that is ready;
  // what comes from there goes on to the twin.
  void Gather() const {
    const Bytes part = Slice({0, a_.bytes}, slices_, slice_);
    for (uint32_t t = turn_; slice_ == 0 && t < packages_; t += portions_) Signal(Peer(t), a_.rank);
    if (slice_ == 0 && turn_ == 0) Signal(twin_, a_.rank);
    for (uint32_t t = turn_; t < packages_; t += portions_) {
      const uint32_t peer = Peer(t);
      Await(peer, 1);
      Copy(Table(peer).window + a_.rank * a_.window_stride, Table(a_.rank).in, part);
      PipeBarrier<PIPE_ALL>();
      Signal(peer, Sent(slice_, a_.rank));
    }
    Await(twin_, 1);
    for (uint32_t t = turn_; t < packages_; t += portions_) {
      const uint32_t from = Peer(t);
      Await(Sent(slice_, from), 1);
      Copy(Table(twin_).window + from * a_.window_stride, Table(a_.rank).window + from * a_.window_stride,
           part);
      PipeBarrier<PIPE_ALL>();
      Signal(twin_, Sent(slice_, from));
    }
    for (uint32_t t = turn_; t < packages_; t += portions_) Await(Sent(slice_, Peer(t) ^ 1u), 1);
  }

  // To the twin what this die has for its place in each package; the sum of both, rounded, to the die of the
  // own place there; then what came from all packages is summed. Of the window the first half is the twin's,
  // the second the packages'.
  void Scatter() {
    const Bytes part = Slice({0, a_.bytes}, slices_, slice_);
    for (uint32_t t = turn_; t < packages_; t += portions_) {
      const uint32_t package = Package(t);
      Copy(Table(twin_).window + package * a_.window_stride,
           Table(a_.rank).in + (2 * package + 1 - place_) * a_.bytes, part);
      PipeBarrier<PIPE_ALL>();
      Signal(twin_, Sent(slice_, package));
    }
    for (uint32_t t = turn_; t < packages_; t += portions_) {
      const uint32_t package = Package(t), peer = Peer(t);
      Await(Sent(slice_, package), 1);
      begin_ = Table(a_.rank).in + peer * a_.bytes;
      step_ = Table(a_.rank).window + package * a_.window_stride - begin_;
      to_ = Table(peer).window + (packages_ + own_) * a_.window_stride;
      PeerSum<Paired> both{*this, part, 2, buffers_, chunk_};
      both.Run();
      PipeBarrier<PIPE_ALL>();
      Signal(peer, Sent(slice_, packages_ + own_));
    }
    Await(Sent(slice_, packages_), packages_);
    begin_ = Table(a_.rank).window + packages_ * a_.window_stride;
    step_ = a_.window_stride;
    to_ = Table(a_.rank).out;
    PeerSum<Paired> all{*this, Slice(part, portions_, turn_), packages_, buffers_, chunk_};
    all.Run();
  }

  friend PeerSum<Paired>;
  uint64_t Term(uint32_t n) const { return begin_ + n * step_; }
  void Finish(uint32_t buffer, uint64_t first, uint32_t count) const {
    StoreBf16(to_ + first, 0, buffer, count);
  }

  // Every package begins with another one.
  uint32_t Package(uint32_t turn) const {
    const uint32_t package = own_ + turn;
    return package < packages_ ? package : package - packages_;
  }
  uint32_t Peer(uint32_t turn) const { return 2 * Package(turn) + place_; }
  uint32_t Sent(uint32_t slice, uint32_t of) const { return (1 + slice) * a_.ranks + of; }

  const uint32_t packages_, own_, place_, twin_;  // place: which die of its package
  const uint32_t portions_, slices_, slice_, turn_;
  uint64_t begin_ = 0, step_ = 0, to_ = 0;  // terms of a sum, and where it goes
};

}  // namespace

extern "C" void kernel_main(GM_ADDR address) {
  const auto a = *reinterpret_cast<const cm384_collective_rounds*>(address);
  Paired paired(a);
  paired.Run();
}
