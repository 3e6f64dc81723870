#include <algorithm>
#include <bit>

#include "firmware/abi/isa.h"
#include "npu_core/vector/vector_ops.h"

namespace cm384::npu {
namespace {

// Two words of packed bits of one repeat.
struct Bits {
  std::uint64_t word[2] = {0, 0};
  bool operator[](std::uint32_t i) const { return (word[i / 64] >> (i % 64) & 1u) != 0; }
};

Bits bits_of(const VectorInstruction& v, const UBuffer& u, std::uint32_t repeat) {
  Bits bits;
  u.load(v.sources[2].at(repeat, 0), reinterpret_cast<std::byte*>(bits.word), v.elements() / 8);
  return bits;
}

// Which elements of a repeat the gather mask selects.
Bits selection(const VectorInstruction& v, const UBuffer& u, std::uint32_t repeat) {
  constexpr std::uint64_t kPattern[8] = {0,
                                         0x5555555555555555u,
                                         0xaaaaaaaaaaaaaaaau,
                                         0x1111111111111111u,
                                         0x2222222222222222u,
                                         0x4444444444444444u,
                                         0x8888888888888888u,
                                         0xffffffffffffffffu};
  if (v.scalar == 0) return bits_of(v, u, repeat);
  const std::uint64_t word = kPattern[v.scalar];
  return {{word, v.elements() > 64 ? word : 0}};
}

std::uint32_t element_offset(const VectorInstruction& v, const VectorOperand& operand, std::uint32_t repeat,
                             std::uint32_t element) {
  const std::uint32_t per_block = sim::kBlockBytes / v.element_bytes();
  return operand.at(repeat, element / per_block) + element % per_block * v.element_bytes();
}

void copy_element(UBuffer& u, std::uint32_t to, std::uint32_t from, std::uint32_t size) {
  std::byte value[4];
  std::memcpy(value, u.read(from), size);
  std::memcpy(u.write(to), value, size);
}

void select(const VectorInstruction& v, UBuffer& u) {
  for (std::uint32_t r = 0; r < v.repeats; ++r) {
    const Bits bits = bits_of(v, u, r);
    for (std::uint32_t i = 0; i < v.elements(); ++i) {
      if (!v.element_on(i)) continue;
      const VectorOperand& from = bits[i] ? v.sources[0] : v.sources[1];
      copy_element(u, element_offset(v, v.destination, r, i), element_offset(v, from, r, i),
                   v.element_bytes());
    }
  }
}

void gather_mask(const VectorInstruction& v, UBuffer& u) {
  const std::uint32_t size = v.element_bytes();
  if (v.destination.offset % sim::kBlockBytes != 0)
    fault(v.pc, "gather mask: destination is not 32 B aligned");
  if (v.destination.offset + selected_elements(v, u) * size > kUBufferBytes) {
    fault(v.pc, "gather mask: the result leaves the UBuffer (192 KiB)");
  }
  std::uint32_t to = v.destination.offset;
  for (std::uint32_t r = 0; r < v.repeats; ++r) {
    const Bits bits = selection(v, u, r);
    for (std::uint32_t i = 0; i < v.elements(); ++i) {
      if (!bits[i]) continue;
      copy_element(u, to, element_offset(v, v.sources[0], r, i), size);
      to += size;
    }
  }
}

void broadcast(const VectorInstruction& v, UBuffer& u) {
  const std::uint32_t size = v.element_bytes();
  for (std::uint32_t r = 0; r < v.repeats; ++r) {
    std::byte from[8 * 4];
    u.load(v.sources[0].at(r, 0), from, 8 * size);
    for (std::uint32_t p = 0; p < 8; ++p) {
      std::byte* to = u.write(v.destination.at(r, p));
      for (std::uint32_t at = 0; at < sim::kBlockBytes; at += size)
        std::memcpy(to + at, from + p * size, size);
    }
  }
}

void gather(const VectorInstruction& v, UBuffer& u) {
  for (std::uint32_t r = 0; r < v.repeats; ++r) {
    for (std::uint32_t i = 0; i < v.elements(); ++i) {
      if (!v.element_on(i)) continue;
      std::uint32_t index = 0;
      std::memcpy(&index, u.read(element_offset(v, v.sources[0], r, i)), sizeof index);
      const std::uint64_t from = std::uint64_t{index} + v.scalar;
      if (from % 4 != 0 || from + 4 > kUBufferBytes) {
        fault(v.pc, "gather: an offset leaves the UBuffer or is not a multiple of 4");
      }
      copy_element(u, element_offset(v, v.destination, r, i), static_cast<std::uint32_t>(from), 4);
    }
  }
}

}  // namespace

std::uint32_t selected_elements(const VectorInstruction& v, const UBuffer& u) {
  std::uint32_t count = 0;
  for (std::uint32_t r = 0; r < v.repeats; ++r) {
    const Bits bits = selection(v, u, r);
    count += static_cast<std::uint32_t>(std::popcount(bits.word[0]) + std::popcount(bits.word[1]));
  }
  return count;
}

void execute_select(const VectorInstruction& v, UBuffer& u) {
  switch (v.operation) {
    case CM384_VSEL:
      return select(v, u);
    case CM384_VGATHER_MASK:
      return gather_mask(v, u);
    case CM384_VBRCB:
      return broadcast(v, u);
    case CM384_VGATHER:
      return gather(v, u);
    default:
      fault(v.pc, "no such selection");
  }
}

}  // namespace cm384::npu
