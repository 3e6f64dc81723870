// Flags, barriers, cross-core flags, data cache.
#pragma once

#include "cm384/system.h"
#include "cm384/tensor.h"

namespace AscendC {

// Setting a flag that is still set is an error of the kernel: every SetFlag has its WaitFlag.
template <HardEvent E>
CM384_INLINE void SetFlag(int32_t id) {
  cm384::pipe_instruction<CM384_CLASS_SYNC, CM384_SET_FLAG>(static_cast<uint64_t>(E) |
                                                            static_cast<uint64_t>(id) << 16);
}
template <HardEvent E>
CM384_INLINE void WaitFlag(int32_t id) {
  cm384::pipe_instruction<CM384_CLASS_SYNC, CM384_WAIT_FLAG>(static_cast<uint64_t>(E) |
                                                             static_cast<uint64_t>(id) << 16);
}
// The same of an event that is known at run time.
CM384_INLINE void WaitFlagOf(HardEvent event, int32_t id) {
  cm384::pipe_instruction<CM384_CLASS_SYNC, CM384_WAIT_FLAG>(static_cast<uint64_t>(event) |
                                                             static_cast<uint64_t>(id) << 16);
}
template <pipe_t P>
CM384_INLINE void PipeBarrier() {
  cm384::pipe_instruction<CM384_CLASS_SYNC, CM384_PIPE_BARRIER>(P);
}

// flagId 0..10 are the kernel's; the runtime uses the others. modeId 0: all cores of this kind of the launch
// on this die, 1: both AIVs of the group, 2: between an AIC and its AIVs (an AIC sets both, both AIVs set the
// AIC).
template <uint8_t modeId, pipe_t P>
CM384_INLINE void CrossCoreSetFlag(uint16_t flagId) {
  cm384::pipe_instruction<CM384_CLASS_SYNC, CM384_CROSS_CORE_SET>(P | modeId << 8 |
                                                                  static_cast<uint64_t>(flagId) << 16);
}
CM384_INLINE void CrossCoreWaitFlag(uint16_t flagId) {
  cm384::pipe_instruction<CM384_CLASS_SYNC, CM384_CROSS_CORE_WAIT>(flagId);
}
template <uint8_t modeId, pipe_t P = PIPE_S>
CM384_INLINE void CrossCoreWaitFlag(uint16_t flagId) {
  CrossCoreWaitFlag(flagId);
}

// All-core barrier: returns when every AIV of the launch on this die has come here and its earlier pipe work,
// remote acknowledgements inside, is complete. Flag 14, set on MTE3, as on the part.
// On a cube core it is of all AICs. With isAIVOnly false also between the two kinds, where a launch has both:
// each AIC hears from its AIVs, and answers once all AICs have.
template <bool isAIVOnly = true>
CM384_INLINE void SyncAll() {
  PipeBarrier<PIPE_ALL>();
#ifdef __DAV_C220_CUBE__
  const bool both = !isAIVOnly && LaunchOfProgram()->vector_cores == 2;
  if (both) CrossCoreWaitFlag(12);
  CrossCoreSetFlag<0, PIPE_FIX>(14);
  CrossCoreWaitFlag(14);
  if (both) CrossCoreSetFlag<2, PIPE_FIX>(13);
#else
  CrossCoreSetFlag<0, PIPE_MTE3>(14);
  CrossCoreWaitFlag(14);
  if constexpr (!isAIVOnly) {
    if (LaunchOfProgram()->vector_cores == 1) return;
    CrossCoreSetFlag<2, PIPE_MTE3>(12);
    CrossCoreWaitFlag(13);
  }
#endif
}

// The barrier by words in GM is the same one here, of all cores alone: the tensors are not used.
template <bool isAIVOnly = true>
CM384_INLINE void SyncAll(const GlobalTensor<int32_t>&, const LocalTensor<int32_t>&, int32_t usedCores = 0) {
  static_assert(isAIVOnly, "SyncAll with tensors is of vector cores: docs/ascend-c.md");
  if (usedCores != 0 && usedCores != static_cast<int32_t>(cm384::read_csr<CM384_CSR_BLOCK_COUNT>()))
    Abort("SyncAll: of all cores alone: docs/ascend-c.md");
  SyncAll<true>();
}

// Cleans and invalidates the scalar data cache over [address, address + bytes); 0 bytes: all of it.
CM384_INLINE void dcci(uint64_t address, uint64_t bytes = 0) {
  cm384::pipe_instruction<CM384_CLASS_SYNC, CM384_DCCI>(address, bytes);
}
enum class CacheLine { SINGLE_CACHE_LINE, ENTIRE_DATA_CACHE };
enum class DcciDst { CACHELINE_ALL, CACHELINE_UB, CACHELINE_OUT };
template <typename T, CacheLine line, DcciDst = DcciDst::CACHELINE_OUT>
CM384_INLINE void DataCacheCleanAndInvalid(const GlobalTensor<T>& tensor) {
  dcci(tensor.address(), line == CacheLine::SINGLE_CACHE_LINE ? 1 : 0);
}
// Of local memory, which the scalar unit does not cache.
template <typename T, CacheLine, DcciDst = DcciDst::CACHELINE_OUT>
CM384_INLINE void DataCacheCleanAndInvalid(const LocalTensor<T>&) {}
// Asks for a line that is read soon: the next read of it fetches it.
template <typename T, typename Offset>
CM384_INLINE void DataCachePreload(const GlobalTensor<T>&, Offset) {}

// One turn of a polling loop over [address, address + bytes) of the own die's GM is over and found nothing:
// the last statement of the loop. Lets the simulator skip turns that cannot find anything new: the core goes
// on when it would have, and the requests of those turns are left out.
CM384_INLINE void PollMark(uint64_t address, uint64_t bytes) {
  cm384::pipe_instruction<CM384_CLASS_SYNC, CM384_POLL_MARK>(address, bytes);
}
// A polling loop over `address` is left. Wanted where the same range is polled again later: without it the
// time between the loops counts as one turn.
CM384_INLINE void PollEnd(uint64_t address) {
  cm384::pipe_instruction<CM384_CLASS_SYNC, CM384_POLL_MARK>(address, 0);
}

}  // namespace AscendC
