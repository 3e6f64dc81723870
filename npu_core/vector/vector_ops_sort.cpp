#include <algorithm>
#include <array>
#include <vector>

#include "firmware/abi/isa.h"
#include "npu_core/pipes/pipe_fault.h"
#include "npu_core/vector/numeric.h"
#include "npu_core/vector/vector_ops.h"

namespace cm384::npu {
namespace {

struct Structure {
  std::uint32_t value = 0;  // bits
  std::uint32_t index = 0;
};
static_assert(sizeof(Structure) == 8);

float value_of(const VectorInstruction& v, const Structure& s) {
  return v.type == CM384_F32 ? std::bit_cast<float>(s.value)
                             : f16_to_f32(static_cast<std::uint16_t>(s.value));
}
// Largest first, NaN before all.
bool before(const VectorInstruction& v, const Structure& a, const Structure& b) {
  const float x = value_of(v, a), y = value_of(v, b);
  if (is_nan(x) || is_nan(y)) return is_nan(x) && !is_nan(y);
  return x > y;
}

void vsort32(const VectorInstruction& v, UBuffer& u) {
  const std::uint32_t size = v.element_bytes();
  for (std::uint32_t r = 0; r < v.repeats; ++r) {
    std::array<Structure, 32> all;
    for (std::uint32_t i = 0; i < 32; ++i) {
      u.load(v.sources[0].at(r, 0) + i * size, reinterpret_cast<std::byte*>(&all[i].value), size);
      u.load(v.sources[1].at(r, 0) + i * 4, reinterpret_cast<std::byte*>(&all[i].index), 4);
    }
    std::ranges::stable_sort(all, [&v](const Structure& a, const Structure& b) { return before(v, a, b); });
    u.store(v.destination.at(r, 0), reinterpret_cast<const std::byte*>(all.data()), sizeof all);
  }
}

void vmerge(const VectorInstruction& v, UBuffer& u) {
  std::vector<Structure> all(v.destination.piece_bytes / sizeof(Structure));
  std::size_t done = 0;
  for (const VectorOperand& list : v.sources) {
    if (!list.used()) continue;
    u.load(list.offset, reinterpret_cast<std::byte*>(&all[done]), list.piece_bytes);
    const auto middle = all.begin() + static_cast<std::ptrdiff_t>(done);
    done += list.piece_bytes / sizeof(Structure);
    std::inplace_merge(all.begin(), middle, all.begin() + static_cast<std::ptrdiff_t>(done),
                       [&v](const Structure& a, const Structure& b) { return before(v, a, b); });
  }
  u.store(v.destination.offset, reinterpret_cast<const std::byte*>(all.data()), v.destination.piece_bytes);
}

Structure structure(const VectorOperand& list, std::uint32_t number, const UBuffer& u) {
  Structure s;
  u.load(list.offset + number * std::uint32_t{sizeof s}, reinterpret_cast<std::byte*>(&s), sizeof s);
  return s;
}

void vtranspose(const VectorInstruction& v, UBuffer& u) {
  std::array<std::array<std::uint16_t, 16>, 16> from, to;
  u.load(v.sources[0].offset, reinterpret_cast<std::byte*>(from.data()), sizeof from);
  for (std::size_t row = 0; row < 16; ++row) {
    for (std::size_t column = 0; column < 16; ++column) to[column][row] = from[row][column];
  }
  u.store(v.destination.offset, reinterpret_cast<const std::byte*>(to.data()), sizeof to);
}

}  // namespace

std::uint64_t cut_merge(VectorInstruction& v, const UBuffer& u) {
  std::array<std::uint32_t, 4> taken{};
  std::array<Structure, 4> next;
  const auto length = [&v](std::size_t list) { return v.sources[list].piece_bytes / sizeof(Structure); };
  for (std::size_t list = 0; list < 4; ++list) {
    const VectorOperand& operand = v.sources[list];
    if (!operand.used()) continue;
    if (u.tagged() && u.payload(operand.offset, operand.piece_bytes))
      fault(v.pc, "merge that stops when a list is used up: the lists are payload without values");
    next[list] = structure(operand, 0, u);
  }
  for (std::size_t first = 4;; first = 4) {
    for (std::size_t list = 0; list < 4; ++list) {
      if (v.sources[list].used() && (first == 4 || before(v, next[list], next[first]))) first = list;
    }
    if (++taken[first] == length(first)) break;
    next[first] = structure(v.sources[first], taken[first], u);
  }
  std::uint64_t counts = 0;
  std::uint32_t all = 0;
  for (std::size_t list = 0; list < 4; ++list) {
    VectorOperand& operand = v.sources[list];
    operand.piece_bytes = operand.piece_stride = operand.repeat_stride = taken[list] * sizeof(Structure);
    if (taken[list] == 0) operand = {};
    all += operand.piece_bytes;
    counts |= std::uint64_t{taken[list]} << 16 * list;
  }
  v.destination.piece_bytes = v.destination.piece_stride = v.destination.repeat_stride = all;
  v.repeats = (all + 255) / 256;
  return counts;
}

void execute_sort(const VectorInstruction& v, UBuffer& u) {
  switch (v.operation) {
    case CM384_VSORT32:
      return vsort32(v, u);
    case CM384_VMERGE:
      return vmerge(v, u);
    default:
      return vtranspose(v, u);
  }
}

}  // namespace cm384::npu
