// A vector instruction with its operands decoded and checked (firmware/abi/isa.h gives their meaning).
#pragma once

#include <array>
#include <cstdint>

#include "npu_core/pipes/pipe_fault.h"
#include "npu_core/pipes/pipe_instruction.h"
#include "npu_core/vector/numeric.h"

namespace cm384::npu {

// Which row of the cost table an instruction takes (hw::VectorCore, same names and order).
enum class VectorCost : std::uint8_t {
  add,
  mul,
  adds,
  muls,
  max,
  maxs,
  div,
  unary,
  exp,
  ln,
  sqrt,
  rsqrt,
  logic,
  copy,
  madd,
  shift,
  cast,
  reduce_add,
  reduce_max,
  group_add,
  group_max,
  compare,
  compares,
  select,
  gather_mask,
  broadcast,
  gather,
  sort,
  merge,
  transpose,
  count
};

// Where an operand lies: `repeats` times `pieces` of `piece_bytes`. Strides in bytes.
struct VectorOperand {
  std::uint32_t offset = 0;
  std::uint32_t pieces = 0;  // 0: no such operand
  std::uint32_t piece_bytes = 0;
  std::uint32_t piece_stride = 0;
  std::uint32_t repeat_stride = 0;
  std::uint32_t repeats = 0;

  bool used() const { return pieces != 0; }
  std::uint32_t at(std::uint32_t repeat, std::uint32_t piece) const {
    return offset + repeat * repeat_stride + piece * piece_stride;
  }
  bool one_range() const {
    return piece_stride == piece_bytes && (repeats == 1 || repeat_stride == pieces * piece_bytes);
  }
  std::uint32_t end() const { return at(repeats - 1, pieces - 1) + piece_bytes; }

  // Calls visit(offset, bytes) for contiguous ranges that together cover the operand; true when a visit did.
  template <class Visit>
  bool any_range(Visit&& visit) const {
    if (!used()) return false;
    if (one_range()) return visit(offset, repeats * pieces * piece_bytes);
    const bool joined = piece_stride == piece_bytes;
    const std::uint32_t turns = repeat_stride == 0 ? 1 : repeats;
    for (std::uint32_t r = 0; r < turns; ++r) {
      if (joined) {
        if (visit(at(r, 0), pieces * piece_bytes)) return true;
        continue;
      }
      for (std::uint32_t p = 0; p < pieces; ++p) {
        if (visit(at(r, p), piece_bytes)) return true;
      }
    }
    return false;
  }
};

struct VectorInstruction {
  std::uint8_t instruction_class = 0;
  std::uint8_t operation = 0;
  std::uint8_t type = 0;
  VectorCost cost = VectorCost::count;
  bool reads_destination = false;  // MADD, AXPY
  bool uses_mask = true;
  bool stops = false;  // a merge: when one of its lists is used up
  std::uint32_t repeats = 0;
  bool payload_scalar = false;    // payload mode control: the scalar was computed from payload
  std::uint32_t scalar = 0;       // low half of rs2
  std::uint32_t scalar_high = 0;  // high half
  std::uint64_t mask_low = ~std::uint64_t{0}, mask_high = ~std::uint64_t{0};
  VectorOperand destination;
  std::array<VectorOperand, 4> sources;  // 0, 1, packed bits of select and gather mask; lists of a merge
  std::uint64_t pc = 0;

  std::uint32_t element_bytes() const { return type < 2 ? (type == 0 ? 4 : 2) : (type == 2 ? 4 : 2); }
  std::uint32_t elements() const { return 256 / element_bytes(); }
  bool full_mask() const {
    return !uses_mask ||
           (mask_low == ~std::uint64_t{0} && (elements_masked() == 64 || mask_high == ~std::uint64_t{0}));
  }
  // Mask bits of piece `piece` whose elements number `count` (at most 16).
  std::uint32_t piece_mask(std::uint32_t piece, std::uint32_t count) const {
    const std::uint32_t first = piece * count;
    const std::uint64_t word = first < 64 ? mask_low : mask_high;
    return static_cast<std::uint32_t>(word >> (first % 64)) & ((1u << count) - 1u);
  }
  // Whether the mask has one of the `count` elements (a power of two, at most 32) of piece `piece`.
  bool piece_on(std::uint32_t piece, std::uint32_t count) const {
    const std::uint32_t first = piece * count;
    return ((first < 64 ? mask_low : mask_high) >> (first % 64) & ((std::uint64_t{1} << count) - 1)) != 0;
  }
  bool element_on(std::uint32_t i) const {
    return ((i < 64 ? mask_low >> i : mask_high >> (i - 64)) & 1u) != 0;
  }
  // What a gather mask does with each repeat: a pattern, and how many elements it looks at.
  std::uint32_t pattern() const { return scalar & 7; }
  std::uint32_t looked_at() const { return scalar >> 8 == 0 ? elements() : scalar >> 8; }
  // What a maximum, minimum or sum writes.
  std::uint32_t form() const { return scalar & 0xff; }
  // Elements of a repeat that the mask has bits for.
  std::uint32_t elements_masked() const;
};

// Throws PipeFault for what the ISA does not define.
VectorInstruction decode_vector(const PipeInstruction& instruction, std::uint64_t mask_low,
                                std::uint64_t mask_high);

// Elements of a repeat of a conversion (cm384_convert): 64, or 32 where one side has 8 B.
std::uint32_t convert_elements(std::uint8_t operation);

}  // namespace cm384::npu
