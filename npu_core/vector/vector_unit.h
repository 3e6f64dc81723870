// The V pipe's execution unit: cost of an instruction, its values, and the tags of what it writes.
#pragma once

#include <array>
#include <cstdint>

#include "hw/parameters/vector_core.h"
#include "npu_core/vector/ubuffer.h"
#include "npu_core/vector/vector_instruction.h"

namespace cm384::npu {

// hw::VectorCore's costs as integers, for all cores of a die.
struct VectorCostTable {
  struct Row {
    std::int32_t head = 0;
    std::int32_t slope = 0;  // 1/100 cycle a repeat
    std::int32_t tail = 0;
  };
  std::array<Row, static_cast<std::size_t>(VectorCost::count)> rows;

  explicit VectorCostTable(const hw::VectorCore& parameters);
  const Row& operator[](VectorCost cost) const { return rows[static_cast<std::size_t>(cost)]; }
};

// Cycles of the vector unit from the first to after the last repeat, bank conflicts included; rounded up.
std::int64_t occupancy(const VectorCostTable::Row& row, std::uint32_t repeats, std::int64_t conflict_cycles);

// Where the result goes: the destination, or what a gather mask with bits in the UBuffer selects of it.
VectorOperand written_by(const VectorInstruction& instruction, const UBuffer& ubuffer);

// Performs the instruction: computes its values, or only tags its destination where a source is payload. Of a
// destination block that holds payload and is partly written the rest stays payload.
void perform(const VectorInstruction& instruction, UBuffer& ubuffer);

}  // namespace cm384::npu
