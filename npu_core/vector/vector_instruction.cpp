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
    {add, kAnyType, 2},      {add, kAnyType, 2},     {mul, kAnyType, 2},   {div, kFloats, 2},
    {max, kAnyType, 2},      {max, kAnyType, 2},     {adds, kAnyType, 1},  {muls, kAnyType, 1},
    {maxs, kAnyType, 1},     {maxs, kAnyType, 1},    {unary, kAnyType, 1}, {unary, kAnyType, 1},
    {exp, kFloats, 1},       {ln, kFloats, 1},       {sqrt, kFloats, 1},   {rsqrt, kFloats, 1},
    {rsqrt, kFloats, 1},     {copy, kAnyType, 0},    {copy, kAnyType, 1},  {logic, kAnyType, 2},
    {logic, kAnyType, 2},    {logic, kAnyType, 1},   {madd, kAnyType, 2},  {madd, kAnyType, 1},
    {shift, kS32 | kS16, 1}, {shift, kS32 | kS16, 1}};
constexpr OperationRow kReduce[] = {
    {reduce_add, kAnyType, 1}, {reduce_max, kAnyType, 1},  {reduce_max, kAnyType, 1},
    {group_add, kAnyType, 1},  {group_max, kAnyType, 1},   {group_max, kAnyType, 1},
    {compare, kAnyType, 2},    {compare, kAnyType, 2},     {compare, kAnyType, 2},
    {compare, kAnyType, 2},    {compare, kAnyType, 2},     {compare, kAnyType, 2},
    {compares, kAnyType, 1},   {compares, kAnyType, 1},    {compares, kAnyType, 1},
    {compares, kAnyType, 1},   {compares, kAnyType, 1},    {compares, kAnyType, 1},
    {select, kAnyType, 2},     {gather_mask, kAnyType, 1}, {broadcast, kAnyType, 1},
    {gather, kF32 | kS32, 1}};
constexpr ConvertSizes kConvert[] = {{2, 4}, {4, 2}, {2, 4}, {4, 2}, {4, 4}, {4, 4}, {4, 2},
                                     {2, 1}, {1, 2}, {4, 4}, {2, 4}, {4, 2}, {2, 4}};

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

void decode_reduce(VectorInstruction& v, const Strides& s, std::uint64_t b) {
  const std::uint32_t size = v.element_bytes();
  const std::uint32_t to = v.destination.offset;
  const std::uint32_t bit_bytes = v.elements() / 8;
  const auto op = v.operation;
  if (op <= CM384_VCMIN) {
    const std::uint32_t written = op != CM384_VCADD && (b & 1) != 0 ? 2 * size : size;
    v.destination = packed(to, written, s.destination_repeat * size, v.repeats);
    check(v.destination, size, "destination", v.pc);
  } else if (op <= CM384_VCGMIN) {
    v.destination = packed(to, 8 * size, s.destination_repeat * 8 * size, v.repeats);
    check(v.destination, 8 * size, "destination", v.pc);
  } else if (op <= CM384_VCMPS_GE) {
    v.destination = packed(to, bit_bytes, bit_bytes, v.repeats);
    check(v.destination, bit_bytes, "destination", v.pc);
  } else if (op == CM384_VSEL) {
    v.sources[2] = packed(static_cast<std::uint32_t>(b >> 32), bit_bytes, bit_bytes, v.repeats);
    check(v.sources[2], bit_bytes, "selection bits", v.pc);
  } else if (op == CM384_VGATHER_MASK) {
    v.uses_mask = false;
    const auto pattern = static_cast<std::uint32_t>(b);
    if (pattern > 7) fault(v.pc, "gather mask: pattern is none of 0..7");
    if (pattern == 0) {
      v.sources[2] = packed(static_cast<std::uint32_t>(b >> 32), bit_bytes, bit_bytes, v.repeats);
      check(v.sources[2], bit_bytes, "selection bits", v.pc);
    }
    // Where the result ends depends on the bits: the operation itself checks it.
    const std::uint32_t share = pattern == 0 || pattern == 7 ? 1 : pattern <= 2 ? 2 : 4;
    v.destination = packed(to, 256 / share, 256 / share, v.repeats);
    const VectorOperand first{to, 1, sim::kBlockBytes, sim::kBlockBytes, 0, 1};
    check(pattern != 0 ? v.destination : first, sim::kBlockBytes, "destination", v.pc);
  } else if (op == CM384_VBRCB) {
    v.uses_mask = false;
    v.sources[0] = packed(v.sources[0].offset, 8 * size, 8 * size, v.repeats);
    check(v.sources[0], size, "source 0", v.pc);
  }
}

}  // namespace

ConvertSizes convert_sizes(std::uint8_t operation) {
  return kConvert[operation];
}

std::uint32_t VectorInstruction::elements_masked() const {
  return instruction_class == CM384_CLASS_CONVERT ? 64 : elements();
}

VectorInstruction decode_vector(const PipeInstruction& in, std::uint64_t mask_low, std::uint64_t mask_high) {
  VectorInstruction v;
  v.instruction_class = in.instruction_class;
  v.operation = in.operation;
  v.type = in.type;
  v.pc = in.pc;
  v.mask_low = mask_low;
  v.mask_high = mask_high;
  v.scalar = static_cast<std::uint32_t>(in.b);
  const Strides s = strides_of(in.c);
  v.repeats = s.repeats;
  if (s.repeats == 0) fault(in.pc, "vector instruction with 0 repeats (1..255)");
  const auto to = static_cast<std::uint32_t>(in.a);
  const auto from = static_cast<std::uint32_t>(in.a >> 32);

  if (in.instruction_class == CM384_CLASS_CONVERT) {
    if (in.operation >= std::size(kConvert)) fault(in.pc, "no such conversion");
    if (in.b != 0) {
      if (in.b != CM384_ROUND && in.b != CM384_ODD) fault(in.pc, "no such rounding");
      v.type = static_cast<std::uint8_t>(in.b);
    }
    const ConvertSizes sizes = kConvert[in.operation];
    v.cost = VectorCost::cast;
    v.destination = blocks(to, 2 * sizes.destination, s.destination_block, s.destination_repeat, s.repeats);
    v.sources[0] = blocks(from, 2 * sizes.source, s.block[0], s.repeat[0], s.repeats);
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
