// What dispatch_relay and combine_relay share: relays' windows, flags in them, where a token's experts are.
#pragma once

#include "firmware/abi/relay.h"
#include "firmware/kernels/moe_prologue.h"
#include "kernel_operator.h"

// Tables stand in the UBuffer at `peers` (cm384_relay_peer), `copies` and `slots`.
struct RelayPlaces {
  uint64_t peers, copies, slots;
  uint64_t flag, zero, ones;  // a block of its own for flags that are read; zeros; ones for all blocks
};

class RelaySide {
 public:
  RelaySide(const cm384_relay& relay, const cm384_relay_window& window, const RelayPlaces& places)
      : r_(relay), w_(window), p_(places) {}

  // Other supernodes, each rank beginning with the next one.
  uint32_t others() const { return r_.supernodes - 1; }
  uint32_t Other(uint32_t step) const { return (r_.own + 1 + step) % r_.supernodes; }

  uint64_t Window(uint32_t supernode) const { return Peer(supernode).GetValue(0); }
  uint32_t RankIn(uint32_t supernode) const { return Word(supernode, 2); }
  uint32_t BatchIn(uint32_t supernode) const { return Word(supernode, 3); }

  // Of the expert's slot that a token of `source` goes to.
  AscendC::LocalTensor<uint32_t> Place(uint32_t expert, uint32_t source) const {
    return At<uint32_t>(p_.slots + SlotOf(p_.copies, expert, source) * sizeof(cm384_expert_slot));
  }
  uint32_t SupernodeOf(uint32_t rank) const { return rank / r_.each; }
  // Bit s: a token with these ids has an expert in supernode s.
  uint32_t Wanted(const AscendC::LocalTensor<uint32_t>& ids, uint32_t top_k, uint32_t source) const {
    uint32_t mask = 0;
    for (uint32_t k = 0; k < top_k; ++k)
      mask |= 1u << SupernodeOf(Place(ids.GetValue(k), source).GetValue(0));
    return mask;
  }

  // A flag of the area at `area` that somebody of `supernode` sets for this rank's `block`.
  uint64_t Flag(uint64_t window, uint64_t area, uint32_t supernode, uint32_t block) const {
    return window + area + (supernode * CM384_STATUS_BLOCKS + block) * uint64_t{CM384_STATUS_ENTRY_BYTES};
  }
  // Sets flags of `blocks` blocks, once what was sent before is there.
  void Signal(uint64_t flags, uint32_t blocks) const {
    using namespace AscendC;
    PipeBarrier<PIPE_MTE3>();
    DataCopy(GlobalAt<float>(flags), At<float>(p_.ones), blocks * 8);
  }
  // Polls until a flag is set, and clears it.
  void Await(uint64_t flag) const {
    using namespace AscendC;
    for (;;) {
      Sync<HardEvent::S_MTE2>(EVENT_ID1);
      DataCopy(At<uint32_t>(p_.flag), GlobalAt<uint32_t>(flag), 8);
      Sync<HardEvent::MTE2_S>(EVENT_ID1);
      if (At<uint32_t>(p_.flag).GetValue(0) != 0) break;
      PollMark(flag, CM384_STATUS_ENTRY_BYTES);
    }
    DataCopy(GlobalAt<uint32_t>(flag), At<uint32_t>(p_.zero), 8);
  }

 private:
  AscendC::LocalTensor<uint64_t> Peer(uint32_t supernode) const {
    return At<uint64_t>(p_.peers + supernode * sizeof(cm384_relay_peer));
  }
  uint32_t Word(uint32_t supernode, uint32_t word) const {
    return At<uint32_t>(p_.peers + supernode * sizeof(cm384_relay_peer)).GetValue(word);
  }

  const cm384_relay& r_;
  const cm384_relay_window& w_;
  const RelayPlaces p_;
};
