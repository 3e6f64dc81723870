// The values of vector instructions. Each function performs one decoded instruction on a UBuffer; operands
// have been checked by decode_vector. One file a family.
#pragma once

#include "npu_core/vector/ubuffer.h"
#include "npu_core/vector/vector_instruction.h"

namespace cm384::npu {

void execute_float(const VectorInstruction& instruction, UBuffer& ubuffer);    // class VECTOR, F32 and F16
void execute_integer(const VectorInstruction& instruction, UBuffer& ubuffer);  // class VECTOR, S32 and S16
void execute_convert(const VectorInstruction& instruction, UBuffer& ubuffer);  // class CONVERT
void execute_reduce(const VectorInstruction& instruction, UBuffer& ubuffer);   // reductions, compare
// VSEL, VSELS, VGATHER_MASK, VBRCB, VGATHER. Throws PipeFault where a data-dependent address leaves the
// UBuffer.
void execute_select(const VectorInstruction& instruction, UBuffer& ubuffer);

void execute_sort(const VectorInstruction& instruction, UBuffer& ubuffer);  // VSORT32, VMERGE, VTRANSPOSE

// Cuts a merge that stops to what it takes of its lists, and returns that as CM384_CSR_MERGED has it. Throws
// PipeFault where a list is payload: nothing says where it would stop.
std::uint64_t cut_merge(VectorInstruction& instruction, const UBuffer& ubuffer);

// How many elements VGATHER_MASK selects.
std::uint32_t selected_elements(const VectorInstruction& instruction, const UBuffer& ubuffer);

}  // namespace cm384::npu
