#include <fmt/format.h>

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

Bits bits_of(const VectorInstruction& v, const UBuffer& u, std::uint32_t repeat, std::uint32_t chunk = 0) {
  Bits bits;
  const std::uint32_t at = v.sources[2].at(repeat, 0) + chunk * v.elements() / 8;
  u.load(at, reinterpret_cast<std::byte*>(bits.word), v.elements() / 8);
  return bits;
}

// Which elements of a repeat the gather mask selects, of as many as other instructions' repeats have.
Bits selection(const VectorInstruction& v, const UBuffer& u, std::uint32_t repeat, std::uint32_t chunk) {
  constexpr std::uint64_t kPattern[8] = {0,
                                         0x5555555555555555u,
                                         0xaaaaaaaaaaaaaaaau,
                                         0x1111111111111111u,
                                         0x2222222222222222u,
                                         0x4444444444444444u,
                                         0x8888888888888888u,
                                         0xffffffffffffffffu};
  Bits bits;
  if (v.pattern() == 0) {
    bits = bits_of(v, u, repeat, chunk);
  } else {
    const std::uint64_t word = kPattern[v.pattern()];
    bits = {{word, v.elements() > 64 ? word : 0}};
  }
  const std::uint32_t n = v.looked_at() - chunk * v.elements();
  if (n < 64) bits.word[0] &= (std::uint64_t{1} << n) - 1;
  if (n <= 64) bits.word[1] = 0;
  if (n > 64 && n < 128) bits.word[1] &= (std::uint64_t{1} << (n - 64)) - 1;
  return bits;
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

void vsel(const VectorInstruction& v, UBuffer& u) {
  for (std::uint32_t r = 0; r < v.repeats; ++r) {
    const Bits bits = bits_of(v, u, r);
    for (std::uint32_t i = 0; i < v.elements(); ++i) {
      if (!v.element_on(i)) continue;
      const std::uint32_t to = element_offset(v, v.destination, r, i);
      const VectorOperand& from = bits[i] ? v.sources[0] : v.sources[1];
      if (from.used())
        copy_element(u, to, element_offset(v, from, r, i), v.element_bytes());
      else
        std::memcpy(u.write(to), &v.scalar, v.element_bytes());
    }
  }
}

void vgather_mask(const VectorInstruction& v, UBuffer& u) {
  const std::uint32_t size = v.element_bytes();
  if (v.destination.offset % sim::kBlockBytes != 0)
    fault(v.pc, "gather mask: destination is not 32 B aligned");
  if (v.destination.offset + selected_elements(v, u) * size > kUBufferBytes) {
    fault(v.pc, "gather mask: the result leaves the UBuffer (192 KiB)");
  }
  std::uint32_t to = v.destination.offset;
  for (std::uint32_t r = 0; r < v.sources[0].repeats; ++r) {
    for (std::uint32_t c = 0; c * v.elements() < v.looked_at(); ++c) {
      const Bits bits = selection(v, u, r, c);
      for (std::uint32_t i = 0; i < v.elements(); ++i) {
        if (!bits[i]) continue;
        copy_element(u, to, element_offset(v, v.sources[0], r, c * v.elements() + i), size);
        to += size;
      }
    }
  }
}

void vbrcb(const VectorInstruction& v, UBuffer& u) {
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

void vgather(const VectorInstruction& v, UBuffer& u) {
  for (std::uint32_t r = 0; r < v.repeats; ++r) {
    for (std::uint32_t i = 0; i < v.elements(); ++i) {
      if (!v.element_on(i)) continue;
      std::uint32_t index = 0;
      std::memcpy(&index, u.read(v.sources[0].at(r, i / 8) + i % 8 * 4), sizeof index);
      const std::uint64_t from = std::uint64_t{index} + v.scalar;
      const std::uint32_t size = v.element_bytes();
      if (from % size != 0 || from + size > kUBufferBytes) {
        fault(v.pc, fmt::format("gather: an offset leaves the UBuffer or is not a multiple of {}", size));
      }
      copy_element(u, element_offset(v, v.destination, r, i), static_cast<std::uint32_t>(from), size);
    }
  }
}

}  // namespace

std::uint32_t selected_elements(const VectorInstruction& v, const UBuffer& u) {
  std::uint32_t count = 0;
  for (std::uint32_t n = 0; n < v.repeats; ++n) {
    const std::uint32_t chunks = v.repeats / v.sources[0].repeats;
    const Bits bits = selection(v, u, n / chunks, n % chunks);
    count += static_cast<std::uint32_t>(std::popcount(bits.word[0]) + std::popcount(bits.word[1]));
  }
  return count;
}

void execute_select(const VectorInstruction& v, UBuffer& u) {
  switch (v.operation) {
    case CM384_VSEL:
    case CM384_VSELS:
      return vsel(v, u);
    case CM384_VGATHER_MASK:
      return vgather_mask(v, u);
    case CM384_VBRCB:
      return vbrcb(v, u);
    case CM384_VGATHER:
      return vgather(v, u);
    default:
      fault(v.pc, "no such selection");
  }
}

}  // namespace cm384::npu
