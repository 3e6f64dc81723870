#include "npu_core/vector/vector_unit.h"

#include <algorithm>
#include <cstring>

#include "firmware/abi/isa.h"
#include "npu_core/vector/vector_ops.h"

namespace cm384::npu {
namespace {

bool gathers_payload(const VectorInstruction& v, const UBuffer& u) {
  for (std::uint32_t r = 0; r < v.repeats; ++r) {
    for (std::uint32_t i = 0; i < v.elements(); ++i) {
      if (!v.element_on(i)) continue;
      std::uint32_t index = 0;
      std::memcpy(&index, u.read(v.sources[0].at(r, i / 8) + i % 8 * 4), sizeof index);
      const std::uint64_t from = std::uint64_t{index} + v.scalar;
      if (from + 4 <= kUBufferBytes && u.payload(static_cast<std::uint32_t>(from), v.element_bytes()))
        return true;
    }
  }
  return false;
}

// Whether blocks of an operand that have an element under the mask are payload.
bool masked_payload(const VectorInstruction& v, const VectorOperand& operand, const UBuffer& u) {
  const std::uint32_t elements = v.elements_masked() / operand.pieces;
  for (std::uint32_t p = 0; p < operand.pieces; ++p) {
    bool on = false;
    for (std::uint32_t e = 0; e < elements; ++e) on = on || v.element_on(p * elements + e);
    for (std::uint32_t r = 0; on && r < operand.repeats; ++r) {
      if (!u.payload(operand.at(r, p), operand.piece_bytes)) continue;
      // Of a block that is payload in a part, only that part matters.
      const std::uint32_t size = operand.piece_bytes / elements;
      for (std::uint32_t e = 0; e < elements; ++e) {
        if (v.element_on(p * elements + e) && u.payload(operand.at(r, p) + e * size, size)) return true;
      }
    }
  }
  return false;
}

bool reads_payload(const VectorInstruction& v, const UBuffer& u) {
  const auto payload = [&](const VectorOperand& operand) {
    if (!v.full_mask() && operand.piece_bytes == sim::kBlockBytes && operand.pieces > 1)
      return masked_payload(v, operand, u);
    return operand.any_range(
        [&u](std::uint32_t offset, std::uint32_t bytes) { return u.payload(offset, bytes); });
  };
  for (const VectorOperand& source : v.sources) {
    if (payload(source)) return true;
  }
  if (v.reads_destination && payload(v.destination)) return true;
  return v.cost == VectorCost::gather && gathers_payload(v, u);
}

void tag_payload(const VectorInstruction& v, UBuffer& u) {
  written_by(v, u).any_range([&u](std::uint32_t offset, std::uint32_t bytes) {
    u.set_payload(offset, bytes, true);
    return false;
  });
}

// What a vector instruction writes from plain sources. Results in whole blocks keep what is masked off.
void set_plain(const VectorInstruction& v, UBuffer& u) {
  const VectorOperand d = written_by(v, u);
  if (v.full_mask() || d.piece_bytes != sim::kBlockBytes || d.pieces <= 1) {
    d.any_range([&u](std::uint32_t offset, std::uint32_t bytes) {
      u.set_plain(offset, bytes);
      return false;
    });
    return;
  }
  const std::uint32_t elements = v.elements_masked() / d.pieces, size = d.piece_bytes / elements;
  for (std::uint32_t i = 0; i < v.elements_masked(); ++i) {
    for (std::uint32_t r = 0; v.element_on(i) && r < d.repeats; ++r)
      u.set_plain(d.at(r, i / elements) + i % elements * size, size);
  }
}

void execute(const VectorInstruction& v, UBuffer& u) {
  switch (v.instruction_class) {
    case CM384_CLASS_CONVERT:
      return execute_convert(v, u);
    case CM384_CLASS_REDUCE:
      if (v.operation >= CM384_VSORT32) return execute_sort(v, u);
      return v.operation >= CM384_VSEL && v.operation != CM384_VCPADD ? execute_select(v, u)
                                                                      : execute_reduce(v, u);
    default:
      break;
  }
  const bool bitwise = v.cost == VectorCost::logic || v.type == CM384_S32 || v.type == CM384_S16 ||
                       v.operation == CM384_VCOPY || v.operation == CM384_VDUP;
  bitwise ? execute_integer(v, u) : execute_float(v, u);
}

}  // namespace

VectorOperand written_by(const VectorInstruction& v, const UBuffer& u) {
  VectorOperand d = v.destination;
  if (v.cost == VectorCost::gather_mask && v.pattern() == 0) {
    const std::uint32_t bytes = selected_elements(v, u) * v.element_bytes();
    if (bytes == 0) return {};
    d = {d.offset, 1, std::min(bytes, kUBufferBytes - d.offset), 0, 0, 1};
    d.piece_stride = d.piece_bytes;
  }
  return d;
}

VectorCostTable::VectorCostTable(const hw::VectorCore& p) {
  const hw::VectorTiming* in_order[] = {
      &p.add, &p.mul, &p.adds, &p.muls, &p.max, &p.maxs, &p.div, &p.unary, &p.exp, &p.ln, &p.sqrt, &p.rsqrt,
      &p.logic, &p.copy, &p.madd, &p.shift, &p.cast, &p.reduce_add, &p.reduce_max, &p.group_add, &p.group_max,
      &p.compare, &p.compares, &p.select, &p.gather_mask, &p.broadcast, &p.gather,
      // No figure of sorting 32 and of transposing is known: as slow as what goes element by element.
      &p.gather, &p.merge, &p.gather};
  static_assert(std::size(in_order) == static_cast<std::size_t>(VectorCost::count));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i] = {in_order[i]->head, static_cast<std::int32_t>(in_order[i]->slope * 100.0 + 0.5),
               in_order[i]->tail};
  }
}

std::int64_t occupancy(const VectorCostTable::Row& row, std::uint32_t repeats, std::int64_t conflict_cycles) {
  return (std::int64_t{row.slope} * repeats + 99) / 100 + conflict_cycles;
}

void perform(const VectorInstruction& v, UBuffer& u) {
  if (v.payload_scalar) return tag_payload(v, u);
  if (u.tagged()) {
    if (reads_payload(v, u)) return tag_payload(v, u);
    set_plain(v, u);
  }
  execute(v, u);
}

}  // namespace cm384::npu
