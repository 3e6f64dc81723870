// What the kernels of dispatch and combine begin with: places of the UBuffer by their byte offsets, tables
// from GM, and the half of the windows that a call uses.
#pragma once

#include "firmware/abi/dispatch.h"
#include "kernel_operator.h"

template <typename T>
inline AscendC::LocalTensor<T> At(uint64_t offset) {
  return AscendC::LocalTensor<T>(static_cast<uint32_t>(offset));
}

// Bytes of GM to a place of the UBuffer, by MTE2.
inline void Load(uint64_t to, uint64_t from, uint64_t bytes) {
  AscendC::DataCopyPad(At<uint8_t>(to), AscendC::GlobalAt<uint8_t>(from),
                       {1, static_cast<uint32_t>(bytes), 0, 0});
}

// One pipe waits for what another has been given so far.
template <AscendC::HardEvent E>
inline void Sync(int32_t id) {
  AscendC::SetFlag<E>(id);
  AscendC::WaitFlag<E>(id);
}

// Where experts, their copies and the ranks' windows are, to the places of a dispatch's layout.
template <class Layout>
inline void LoadTables(const cm384_dispatch& a, const Layout& l) {
  Load(l.copies, a.expert_copies, (a.experts + a.shared) * sizeof(cm384_expert_copies));
  Load(l.slots, a.expert_slots, a.slots * sizeof(cm384_expert_slot));
  Load(l.peers, a.peers, a.ranks * sizeof(cm384_peer));
}

// The physical slot of a logical expert that a rank uses, by the table of copies at `table`.
inline uint32_t SlotOf(uint64_t table, uint32_t expert, uint32_t rank) {
  const auto copies = At<uint32_t>(table + expert * sizeof(cm384_expert_copies));
  return copies.GetValue(0) + rank % copies.GetValue(1);
}
