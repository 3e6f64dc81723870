// Who and when a block is; leaving it; phase markers.
#pragma once

#include "cm384/types.h"
#include "firmware/abi/program.h"

namespace AscendC {

CM384_INLINE int64_t GetBlockIdx() {
  return static_cast<int64_t>(cm384::read_csr<CM384_CSR_BLOCK_INDEX>());
}
CM384_INLINE int64_t GetBlockNum() {
  return static_cast<int64_t>(cm384::read_csr<CM384_CSR_BLOCK_COUNT>());
}
// The launch's argument block, of kernels that are functions marked __global__.
CM384_INLINE const cm384_program* LaunchOfProgram() {
  return reinterpret_cast<const cm384_program*>(cm384::read_csr<CM384_CSR_ARGUMENTS>());
}
// The system counter: 50 MHz on the part, die.sys_count here.
CM384_INLINE int64_t GetSystemCycle() {
  return static_cast<int64_t>(cm384::read_csr<CM384_CSR_SYS_COUNT>());
}
// Core cycles since the start of the run.
CM384_INLINE uint64_t GetCoreCycle() {
  return cm384::read_csr<CM384_CSR_CYCLE>();
}
// Die number in the supernode.
CM384_INLINE uint64_t GetDie() {
  return cm384::read_csr<CM384_CSR_DIE>();
}

// Tells the study that this block enters a phase (0..31); takes no simulated time.
CM384_INLINE void MarkPhase(uint32_t phase) {
  cm384::pipe_instruction<CM384_CLASS_SYNC, CM384_PHASE>(phase);
}

// Ends the block when its pipes have drained. Status 0 is success.
[[noreturn]] CM384_INLINE void Exit(uint64_t status) {
  cm384::host_call<CM384_HOST_EXIT>(status, 0);
  __builtin_unreachable();
}
// The kernel gives up: the run ends with this message and exit code 3. The text stands in the image.
[[noreturn]] CM384_INLINE void Abort(const char* reason) {
  cm384::host_call<CM384_HOST_ABORT>(reinterpret_cast<uint64_t>(reason), 0);
  __builtin_unreachable();
}
// What images of `cm384 kernel build` look at, and this project's kernels do without: what the compiler
// knows, at no cost, and with -D CM384_CHECKS all else, for some instructions each.
CM384_INLINE constexpr void Cm384Ensure([[maybe_unused]] bool holds, [[maybe_unused]] const char* otherwise) {
#ifdef CM384_MASK_MODES
#ifndef CM384_CHECKS
  if (!__builtin_constant_p(holds)) return;
#endif
  if (!holds) Abort(otherwise);
#endif
}

}  // namespace AscendC
