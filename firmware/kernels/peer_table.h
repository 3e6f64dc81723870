// The table of ranks in the UBuffer, flags among ranks, and sums of what came from them. `collective_rounds`
// has the same of its own: its measured times are in libraries, and its machine code would move.
#pragma once

#include "collective_parts.h"
#include "firmware/abi/collective.h"

// UBuffer: the flag that is sent, flags that are read, the table of peers, then buffers of a chunk each: two
// in, two out, and two rows of float, which take two each.
class PeerTable {
 public:
  explicit PeerTable(const cm384_collective_rounds& a)
      : a_(a),
        buffers_((kPeers + a.ranks * static_cast<uint32_t>(sizeof(cm384_rounds_peer)) + 511) / 512 * 512),
        chunk_((AscendC::kUBufferBytes - buffers_) / 8 / 512 * 512 < kMostChunk
                   ? (AscendC::kUBufferBytes - buffers_) / 8 / 512 * 512
                   : kMostChunk) {}

 protected:
  void LoadTable() const {
    using namespace AscendC;
    DataCopy(LocalTensor<uint8_t>(kPeers), GlobalAt<uint8_t>(a_.peers), a_.ranks * sizeof(cm384_rounds_peer));
    SetFlag<HardEvent::MTE2_S>(1);
    LocalTensor<uint32_t>(kOwnFlag).SetValue(0, 1);
    for (uint32_t n = 1; n < 8; ++n) LocalTensor<uint32_t>(kOwnFlag).SetValue(n, 0);
    SetFlag<HardEvent::S_MTE3>(0);
    WaitFlag<HardEvent::S_MTE3>(0);
    WaitFlag<HardEvent::MTE2_S>(1);
  }

  const cm384_rounds_peer& Table(uint32_t rank) const {
    return reinterpret_cast<const cm384_rounds_peer*>(CM384_UBUFFER_BASE + kPeers)[rank];
  }

  void Signal(uint32_t peer, uint32_t flag) const {
    using namespace AscendC;
    DataCopy(GlobalAt<uint32_t>(Table(peer).flags + flag * kFlag), LocalTensor<uint32_t>(kOwnFlag), 8);
  }
  // Polls until `count` own flags from `flag` on are set.
  void Await(uint32_t flag, uint32_t count) const {
    for (; count > kFlagsAtOnce; flag += kFlagsAtOnce, count -= kFlagsAtOnce) AwaitSome(flag, kFlagsAtOnce);
    AwaitSome(flag, count);
  }
  void AwaitSome(uint32_t flag, uint32_t count) const {
    using namespace AscendC;
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

  void Copy(uint64_t to, uint64_t from, Bytes part) const { CopyChunks(to, from, part, buffers_, chunk_); }

  static constexpr uint32_t kFlag = CM384_COLLECTIVE_FLAG;
  static constexpr uint32_t kFlagsAtOnce = 60;
  static constexpr uint32_t kOwnFlag = 0, kReadFlags = 512, kPeers = 2560, kMostChunk = 16 * 1024;
  static_assert(kReadFlags + kFlagsAtOnce * kFlag <= kPeers);

  const cm384_collective_rounds& a_;
  const uint32_t buffers_, chunk_;
};

// Sums of `terms` rows each, in their order, of a portion of bytes: item n is chunk n / terms of term n %
// terms. `Of` says where a term's bytes begin, Term(n), and what becomes of a chunk's sum, Finish(buffer,
// byte, elements).
template <class Of>
struct PeerSum {
  const Of& of;
  Bytes portion;
  uint32_t terms, buffers, chunk;

  void Run() {
    const uint64_t bytes = portion.last - portion.first;
    RunRows(*this, {0, static_cast<uint32_t>((bytes + chunk - 1) / chunk) * terms}, 2);
  }
  void Load(uint32_t item, uint32_t b) {
    const uint32_t n = item / terms;
    LoadBf16(In(b), of.Term(item - n * terms) + First(n), 0, Count(n));
  }
  void Compute(uint32_t item, uint32_t b) {
    using namespace AscendC;
    const uint32_t n = item / terms, term = item - n * terms, count = Count(n);
    const LocalTensor<float> all(buffers + 4 * chunk), one(buffers + 6 * chunk);
    PipeBarrier<PIPE_V>();
    if (term == 0) {
      Widen(all, In(b), count);
    } else {
      Widen(one, In(b), count);
      PipeBarrier<PIPE_V>();
      Add(all, all, one, static_cast<int>(count));
    }
    if (term + 1 < terms) return;
    PipeBarrier<PIPE_V>();
    Narrow(Out(b), all, count);
  }
  void Store(uint32_t item, uint32_t b) {
    const uint32_t n = item / terms;
    if (item + 1 == (n + 1) * terms) of.Finish(Out(b), First(n), Count(n));
  }

  uint32_t In(uint32_t b) const { return buffers + b * chunk; }
  uint32_t Out(uint32_t b) const { return buffers + (2 + b) * chunk; }
  uint64_t First(uint32_t n) const { return portion.first + static_cast<uint64_t>(n) * chunk; }
  uint32_t Count(uint32_t n) const {
    const uint64_t left = portion.last - First(n);
    return static_cast<uint32_t>(left < chunk ? left : chunk) / 2;
  }
};
