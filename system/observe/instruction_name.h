// Names of pipe instructions in timelines and profiles.
#pragma once

#include "npu_core/pipes/pipe_instruction.h"

namespace cm384::observe {

// "VADD", "MMAD", "MOV_GM_TO_UB", "WAIT_FLAG"; the class where an operation has no name.
const char* name_of(const npu::PipeInstruction& in);
// "float", "half", "int32_t", "int16_t", or of cube cores "int8_t" and the like; empty where there is none.
const char* type_of(const npu::PipeInstruction& in);

}  // namespace cm384::observe
