#include "npu_core/vector/vector_instruction.h"

#include <fmt/format.h>

#include "firmware/abi/isa.h"
#include "npu_core/pipes/pipe_fault.h"
#include "npu_core/vector/ubuffer.h"

namespace cm384::npu {
namespace {

constexpr std::uint32_t kF32 = 1u << CM384_F32, kF16 = 1u << CM384_F16, kS32 = 1u << CM384_S32,
                        kS16 = 1u << CM384_S16, kFloats = kF32 | kF16, kAnyType = 15;

struct OperationRow {
  VectorCost cost;
  std::uint32_t types;
  int sources;  // vector operands read: source 0, source 1
};

using enum VectorCost;
constexpr OperationRow kVector[] = {
    {add, kAnyType, 2},      {add, kAnyType, 2},      {mul, kAnyType, 2},      {div, kFloats, 2},
    {max, kAnyType, 2},      {max, kAnyType, 2},      {adds, kAnyType, 1},     {muls, kAnyType, 1},
    {maxs, kAnyType, 1},     {maxs, kAnyType, 1},     {unary, kAnyType, 1},    {unary, kAnyType, 1},
    {exp, kFloats, 1},       {ln, kFloats, 1},        {sqrt, kFloats, 1},      {rsqrt, kFloats, 1},
    {rsqrt, kFloats, 1},     {copy, kAnyType, 0},     {copy, kAnyType, 1},     {logic, kAnyType, 2},
    {logic, kAnyType, 2},    {logic, kAnyType, 1},    {madd, kAnyType, 2},     {madd, kAnyType, 1},
    {shift, kS32 | kS16, 1}, {shift, kS32 | kS16, 1}, {shift, kS32 | kS16, 1}, {copy, kAnyType, 0}};
constexpr OperationRow kReduce[] = {
    {reduce_add, kAnyType, 1}, {reduce_max, kAnyType, 1},  {reduce_max, kAnyType, 1},
    {group_add, kAnyType, 1},  {group_max, kAnyType, 1},   {group_max, kAnyType, 1},
    {compare, kAnyType, 2},    {compare, kAnyType, 2},     {compare, kAnyType, 2},
    {compare, kAnyType, 2},    {compare, kAnyType, 2},     {compare, kAnyType, 2},
    {compares, kAnyType, 1},   {compares, kAnyType, 1},    {compares, kAnyType, 1},
    {compares, kAnyType, 1},   {compares, kAnyType, 1},    {compares, kAnyType, 1},
    {select, kAnyType, 2},     {gather_mask, kAnyType, 1}, {broadcast, kAnyType, 1},
    {gather, kAnyType, 1},     {select, kAnyType, 1},      {group_add, kAnyType, 1},
    {sort, kFloats, 1},        {merge, kFloats, 1},        {transpose, kF16 | kS16, 1}};
// Bytes of an element on the source and on the destination side of a conversion (cm384_convert).
struct ConvertSizes {
  std::uint32_t source, destination;
};
constexpr ConvertSizes kConvert[] = {{2, 4}, {4, 2}, {2, 4}, {4, 2}, {4, 4}, {4, 4}, {4, 2}, {2, 1},
                                     {1, 2}, {4, 4}, {2, 4}, {4, 2}, {2, 4}, {2, 1}, {1, 2}, {4, 2},
                                     {2, 2}, {2, 2}, {2, 4}, {4, 8}, {8, 4}, {4, 8}, {8, 4}, {2, 4}};

struct Strides {
  std::uint32_t repeats, destination_block, block[2], destination_repeat, repeat[2];
};
Strides strides_of(std::uint64_t c) {
  const auto field = [c](int bit) { return static_cast<std::uint32_t>(c >> bit & 0xff); };
  return {field(0), field(8), {field(16), field(24)}, field(32), {field(40), field(48)}};
}

VectorOperand blocks(std::uint32_t offset, std::uint32_t pieces, std::uint32_t block_stride,
                     std::uint32_t repeat_stride, std::uint32_t repeats) {
  return {offset, pieces, sim::kBlockBytes, block_stride * sim::kBlockBytes, repeat_stride * sim::kBlockBytes,
          repeats};
}
// One piece a repeat, `stride` bytes apart.
VectorOperand packed(std::uint32_t offset, std::uint32_t bytes, std::uint32_t stride, std::uint32_t repeats) {
  return {offset, 1, bytes, bytes, stride, repeats};
}

void check(const VectorOperand& operand, std::uint32_t alignment, const char* name, std::uint64_t pc) {
  if (!operand.used()) return;
  if (operand.offset % alignment != 0) {
    fault(pc, fmt::format("vector {} offset {:#x} is not a multiple of {}", name, operand.offset, alignment));
  }
  if (operand.offset >= kUBufferBytes || operand.end() > kUBufferBytes) {
    fault(pc, fmt::format("vector {} {:#x}..{:#x} leaves the UBuffer (192 KiB)", name, operand.offset,
                          operand.end()));
  }
}

// How many elements of a repeat a built-in pattern keeps of those looked at.
std::uint32_t kept_by(const VectorInstruction& v) {
  const std::uint32_t n = v.looked_at(), pattern = v.pattern();
  if (pattern == 0 || pattern == 7) return n;
  return pattern <= 2 ? (n + 2 - pattern) / 2 : (n + 6 - pattern) / 4;
}

void decode_reduce(VectorInstruction& v, const Strides& s, std::uint64_t b) {
  const std::uint32_t size = v.element_bytes();
  const std::uint32_t to = v.destination.offset;
  const std::uint32_t bit_bytes = v.elements() / 8;
  const auto op = v.operation;
  if (op <= CM384_VCMIN) {
    const std::uint32_t form = v.form(), count = v.scalar >> 8;
    if (form > (op == CM384_VCADD ? 1u : 5u)) fault(v.pc, "reduction: no such form of the result");
    const bool pair = op != CM384_VCADD && form >= 1 && form <= 3;
    const bool one = form != 0 && (op == CM384_VCADD || form == 2 || form == 5);
    if (count != 0) {
      if (!one || count > kUBufferBytes) fault(v.pc, "reduction: a count is for one result alone");
      v.uses_mask = false;
      const std::uint32_t blocks_read = (count * size + sim::kBlockBytes - 1) / sim::kBlockBytes;
      v.sources[0] = blocks(v.sources[0].offset, blocks_read, 1, 0, 1);
      v.repeats = (count + v.elements() - 1) / v.elements();
    }
    v.destination = packed(to, pair ? 2 * size : size, s.destination_repeat * size, one ? 1 : v.repeats);
    check(v.destination, size, "destination", v.pc);
  } else if (op <= CM384_VCGMIN) {
    v.destination = packed(to, 8 * size, s.destination_repeat * 8 * size, v.repeats);
    check(v.destination, 8 * size, "destination", v.pc);
  } else if (op <= CM384_VCMPS_GE) {
    v.destination = packed(to, bit_bytes, bit_bytes, v.repeats);
    check(v.destination, bit_bytes, "destination", v.pc);
  } else if (op == CM384_VSEL || op == CM384_VSELS) {
    v.sources[2] = packed(static_cast<std::uint32_t>(b >> 32), bit_bytes, bit_bytes, v.repeats);
    check(v.sources[2], bit_bytes, "selection bits", v.pc);
  } else if (op == CM384_VGATHER_MASK) {
    v.uses_mask = false;
    const std::uint32_t pattern = v.pattern(), repeats = v.repeats;
    if ((v.scalar & 0xff) > 8) fault(v.pc, "gather mask: pattern is none of 0..8");
    // One repeat may be longer than those of other instructions.
    const std::uint32_t chunks = (v.looked_at() + v.elements() - 1) / v.elements();
    if (chunks > 1) v.sources[0].pieces = (v.looked_at() * size + sim::kBlockBytes - 1) / sim::kBlockBytes;
    v.repeats *= chunks;
    if (pattern == 0) {
      const std::uint32_t stride = v.scalar == 0 ? bit_bytes : s.repeat[1] * sim::kBlockBytes;
      v.sources[2] = packed(v.scalar_high, chunks * bit_bytes, stride, repeats);
      check(v.sources[2], bit_bytes, "selection bits", v.pc);
    }
    // Where the result ends depends on the bits: the operation itself checks it.
    const std::uint32_t share = pattern == 0 || pattern == 7 ? 1 : pattern <= 2 ? 2 : 4;
    const std::uint32_t kept = v.looked_at() == v.elements() ? 256 / share : kept_by(v) * size;
    v.destination = packed(to, kept, kept, repeats);
    if (kept == 0) v.destination.pieces = 0;
    const VectorOperand first{to, 1, sim::kBlockBytes, sim::kBlockBytes, 0, 1};
    check(pattern != 0 ? v.destination : first, sim::kBlockBytes, "destination", v.pc);
  } else if (op == CM384_VBRCB) {
    v.uses_mask = false;
    v.sources[0] = packed(v.sources[0].offset, 8 * size, 8 * size, v.repeats);
    check(v.sources[0], size, "source 0", v.pc);
  } else if (op == CM384_VGATHER && size == 2) {
    v.sources[0].pieces = 16;
  } else if (op == CM384_VCPADD) {
    v.destination = packed(to, 128, s.destination_repeat * 128, v.repeats);
    check(v.destination, sim::kBlockBytes, "destination", v.pc);
  } else if (op == CM384_VSORT32) {
    v.uses_mask = false;
    const auto index = static_cast<std::uint32_t>(b);
    v.sources[0] = packed(v.sources[0].offset, 32 * size, 32 * size, v.repeats);
    v.sources[1] = packed(index, 128, 128, v.repeats);
    v.destination = packed(to, 256, 256, v.repeats);
    check(v.sources[0], sim::kBlockBytes, "source 0", v.pc);
    check(v.destination, sim::kBlockBytes, "destination", v.pc);
  } else if (op == CM384_VTRANSPOSE) {
    v.uses_mask = false;
    if (v.repeats != 1) fault(v.pc, "transpose: one repeat");
    v.sources[0] = packed(v.sources[0].offset, 512, 512, 1);
    v.destination = packed(to, 512, 512, 1);
    check(v.sources[0], sim::kBlockBytes, "source 0", v.pc);
    check(v.destination, sim::kBlockBytes, "destination", v.pc);
  }
}

// Lists of structures of 8 B. Their lengths stand where others have repeats and strides.
void decode_merge(VectorInstruction& v, const PipeInstruction& in) {
  v.uses_mask = false;
  std::uint32_t all = 0;
  for (std::uint32_t list = 0; list < 4; ++list) {
    const auto bytes = static_cast<std::uint32_t>(in.c >> (12 * list) & 0xfff) * 8;
    const auto at = list == 0 ? static_cast<std::uint32_t>(in.a >> 32)
                              : static_cast<std::uint32_t>(in.b >> (20 * (list - 1)) & 0xfffff);
    v.sources[list] = {};
    if (bytes != 0) v.sources[list] = packed(at, bytes, bytes, 1);
    check(v.sources[list], 8, "list", v.pc);
    all += bytes;
  }
  if (all == 0) fault(v.pc, "merge of no lists");
  v.stops = (in.c & CM384_MERGE_STOPS) != 0;
  v.repeats = (all + 255) / 256;
  v.destination = packed(static_cast<std::uint32_t>(in.a), all, all, 1);
  check(v.destination, sim::kBlockBytes, "destination", v.pc);
}

}  // namespace

std::uint32_t convert_elements(std::uint8_t operation) {
  return std::max(kConvert[operation].source, kConvert[operation].destination) == 8 ? 32 : 64;
}

std::uint32_t VectorInstruction::elements_masked() const {
  return instruction_class == CM384_CLASS_CONVERT ? convert_elements(operation) : elements();
}

VectorInstruction decode_vector(const PipeInstruction& in, std::uint64_t mask_low, std::uint64_t mask_high) {
  VectorInstruction v;
  v.instruction_class = in.instruction_class;
  v.operation = in.operation;
  v.type = in.type;
  v.pc = in.pc;
  v.mask_low = mask_low;
  v.mask_high = mask_high;
  v.payload_scalar = in.tainted_scalar;
  v.scalar = static_cast<std::uint32_t>(in.b);
  v.scalar_high = static_cast<std::uint32_t>(in.b >> 32);
  const Strides s = strides_of(in.c);
  v.repeats = s.repeats;
  if (in.instruction_class == CM384_CLASS_REDUCE && in.operation == CM384_VMERGE) {
    if ((kFloats >> in.type & 1) == 0) fault(in.pc, "vector operation does not exist for this element type");
    v.cost = merge;
    decode_merge(v, in);
    return v;
  }
  if (s.repeats == 0) fault(in.pc, "vector instruction with 0 repeats (1..255)");
  const auto to = static_cast<std::uint32_t>(in.a);
  const auto from = static_cast<std::uint32_t>(in.a >> 32);

  if (in.instruction_class == CM384_CLASS_CONVERT) {
    if (in.operation >= std::size(kConvert)) fault(in.pc, "no such conversion");
    if (v.scalar != 0) {
      if (v.scalar != CM384_ROUND && v.scalar != CM384_ODD) fault(in.pc, "no such rounding");
      v.type = static_cast<std::uint8_t>(v.scalar);
    }
    if (v.scalar_high != 0 && in.operation != CM384_S32_TO_F16) fault(in.pc, "this conversion has no factor");
    const ConvertSizes sizes = kConvert[in.operation];
    const std::uint32_t elements = convert_elements(in.operation);
    const auto pieces = [elements](std::uint32_t size) { return elements * size / sim::kBlockBytes; };
    v.cost = VectorCost::cast;
    v.destination =
        blocks(to, pieces(sizes.destination), s.destination_block, s.destination_repeat, s.repeats);
    v.sources[0] = blocks(from, pieces(sizes.source), s.block[0], s.repeat[0], s.repeats);
  } else {
    const bool reduce = in.instruction_class == CM384_CLASS_REDUCE;
    const std::size_t rows = reduce ? std::size(kReduce) : std::size(kVector);
    if (in.operation >= rows) fault(in.pc, "no such vector operation");
    const OperationRow& row = reduce ? kReduce[in.operation] : kVector[in.operation];
    if ((row.types >> in.type & 1) == 0)
      fault(in.pc, "vector operation does not exist for this element type");
    v.cost = row.cost;
    v.reads_destination = !reduce && (in.operation == CM384_VMADD || in.operation == CM384_VAXPY);
    v.destination = blocks(to, 8, s.destination_block, s.destination_repeat, s.repeats);
    if (row.sources > 0) v.sources[0] = blocks(from, 8, s.block[0], s.repeat[0], s.repeats);
    if (row.sources > 1) {
      v.sources[1] = blocks(static_cast<std::uint32_t>(in.b), 8, s.block[1], s.repeat[1], s.repeats);
    }
    if (reduce) decode_reduce(v, s, in.b);
  }
  if (v.destination.piece_bytes == sim::kBlockBytes && v.destination.pieces > 1) {
    check(v.destination, sim::kBlockBytes, "destination", in.pc);
  }
  if (v.sources[0].pieces > 1) check(v.sources[0], sim::kBlockBytes, "source 0", in.pc);
  check(v.sources[1], sim::kBlockBytes, "source 1", in.pc);
  return v;
}

}  // namespace cm384::npu
