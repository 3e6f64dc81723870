// Steps of a MIX launch: all of its AICs have done theirs before the AIVs begin what needs it, and the other
// way. What was written before is in memory then.
#pragma once

#include "kernel_operator.h"

inline constexpr uint16_t kCubesDone = 5, kVectorsDone = 6;

// On every AIC at the end of its part, and on every AIV before what needs it.
CM384_INLINE void CubesDone() {
  AscendC::PipeBarrier<PIPE_ALL>();
  AscendC::CrossCoreSetFlag<2, PIPE_FIX>(kCubesDone);
}
CM384_INLINE void WaitForCubes() {
  AscendC::CrossCoreWaitFlag(kCubesDone);
  AscendC::SyncAll();
}

// On every AIV at the end of its part, and on every AIC before what needs it.
CM384_INLINE void VectorsDone() {
  AscendC::SyncAll();
  AscendC::CrossCoreSetFlag<2, PIPE_MTE3>(kVectorsDone);
}
CM384_INLINE void WaitForVectors() {
  AscendC::CrossCoreWaitFlag(kVectorsDone);
}

// All AICs wait for each other, by way of their AIVs: PassCubes() on these.
CM384_INLINE void MeetCubes() {
  CubesDone();
  WaitForVectors();
}
CM384_INLINE void PassCubes() {
  WaitForCubes();
  AscendC::CrossCoreSetFlag<2, PIPE_MTE3>(kVectorsDone);
}
