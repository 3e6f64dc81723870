// Cycles that bank conflicts of the UBuffer add to a vector instruction.
#pragma once

#include <cstdint>

#include "npu_core/vector/vector_instruction.h"

namespace cm384::npu {

// The UBuffer has 16 bank groups of 3 banks (4 KiB each); the group is (offset / 32) mod 16, the bank in it
// offset / 64 KiB. A group serves one 32 B row a cycle for reading and one for writing (ascend-facts A2).
//
// The blocks of one operand in one repeat are accessed together: m of them in one group take m cycles instead
// of 1 (block stride 16: 8 cycles; 8: 4; 4: 2). The two sources of an instruction are read in cycles of their
// own, which its slope holds already. A write and a read in the same bank delay each other: for streams that
// move through the groups that happens once, since the second stays a cycle behind; it costs a cycle a repeat
// where every repeat comes back to the same groups.
std::int64_t bank_conflict_cycles(const VectorInstruction& instruction);

}  // namespace cm384::npu
