// The loops under element-wise vector instructions: whole ranges at once where operands are contiguous and no
// element is masked off, else block by block.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "npu_core/vector/numeric.h"
#include "npu_core/vector/ubuffer.h"
#include "npu_core/vector/vector_instruction.h"

namespace cm384::npu {

// How elements stand in memory and in what type they are computed.
struct FormatF32 {
  using Stored = float;
  using Value = float;
  static float load(float v) { return v; }
  static float store(float v) { return v; }
  static float round(float v) { return v; }
  static constexpr float lowest() { return -std::numeric_limits<float>::infinity(); }
  static constexpr float highest() { return std::numeric_limits<float>::infinity(); }
};
struct FormatF16 {
  using Stored = std::uint16_t;
  using Value = float;
  static float load(std::uint16_t v) { return f16_to_f32(v); }
  static std::uint16_t store(float v) { return f32_to_f16(v); }
  static float round(float v) { return round_to_f16(v); }
  static constexpr float lowest() { return -std::numeric_limits<float>::infinity(); }
  static constexpr float highest() { return std::numeric_limits<float>::infinity(); }
};
template <class Signed, class Unsigned>
struct FormatInteger {
  using Stored = Signed;
  using Value = Signed;
  using Bits = Unsigned;
  static Signed load(Signed v) { return v; }
  static Signed store(Signed v) { return v; }
  static Signed round(Signed v) { return v; }
  static constexpr Signed lowest() { return std::numeric_limits<Signed>::min(); }
  static constexpr Signed highest() { return std::numeric_limits<Signed>::max(); }
};
using FormatS32 = FormatInteger<std::int32_t, std::uint32_t>;
using FormatS16 = FormatInteger<std::int16_t, std::uint16_t>;

template <class Format>
constexpr std::uint32_t kBlockElements = sim::kBlockBytes / sizeof(typename Format::Stored);

// f(source 0, source 1, destination) for each element of one block; bit i of `mask` says whether it is kept.
template <class Format, class F>
inline void compute_block(std::byte* to, const std::byte* a, const std::byte* b, std::uint32_t mask,
                          const F& f) {
  constexpr std::uint32_t n = kBlockElements<Format>;
  typename Format::Stored va[n], vb[n], vd[n], result[n];
  std::memcpy(va, a, sizeof va);
  std::memcpy(vb, b, sizeof vb);
  std::memcpy(vd, to, sizeof vd);
  for (std::uint32_t i = 0; i < n; ++i) {
    result[i] = Format::store(f(Format::load(va[i]), Format::load(vb[i]), Format::load(vd[i])));
  }
  if (mask != (1u << n) - 1u) {
    for (std::uint32_t i = 0; i < n; ++i) {
      if ((mask >> i & 1u) == 0) result[i] = vd[i];
    }
  }
  std::memcpy(to, result, sizeof result);
}

// Whether working through whole ranges gives what repeat after repeat would.
inline bool apart_or_same(const VectorOperand& to, const VectorOperand& from) {
  return !from.used() || from.offset == to.offset || from.end() <= to.offset || to.end() <= from.offset;
}

inline std::uint32_t to_page_end(std::uint32_t offset) {
  return UBuffer::kPageBytes - offset % UBuffer::kPageBytes;
}

// `total` bytes that are contiguous in all three operands.
template <class Format, class F>
void compute_range(UBuffer& ubuffer, std::uint32_t d, std::uint32_t s0, std::uint32_t s1, std::uint32_t total,
                   const F& f) {
  constexpr std::uint32_t kFull = (1u << kBlockElements<Format>)-1u;
  for (std::uint32_t done = 0; done < total;) {
    const std::uint32_t bytes =
        std::min({total - done, to_page_end(d + done), to_page_end(s0 + done), to_page_end(s1 + done)});
    std::byte* to = ubuffer.write(d + done);
    const std::byte* a = ubuffer.read(s0 + done);
    const std::byte* b = ubuffer.read(s1 + done);
    for (std::uint32_t i = 0; i < bytes; i += sim::kBlockBytes) {
      compute_block<Format>(to + i, a + i, b + i, kFull, f);
    }
    done += bytes;
  }
}

// scalar + index, destination elements numbered through all repeats.
template <class Format, class F>
void for_each_index(const VectorInstruction& v, UBuffer& ubuffer, const F& f) {
  constexpr std::uint32_t n = kBlockElements<Format>;
  for (std::uint32_t r = 0; r < v.repeats; ++r) {
    for (std::uint32_t i = 0; i < 8 * n; ++i) {
      if (!v.element_on(i)) continue;
      const typename Format::Stored value = Format::store(f(r * 8 * n + i));
      std::memcpy(ubuffer.write(v.destination.at(r, i / n)) + i % n * sizeof value, &value, sizeof value);
    }
  }
}

template <class Format, class F>
void for_each_element(const VectorInstruction& v, UBuffer& ubuffer, const F& f) {
  constexpr std::uint32_t n = kBlockElements<Format>;
  const VectorOperand& d = v.destination;
  // An operation without a source reads its destination in its place.
  const VectorOperand& s0 = v.sources[0].used() ? v.sources[0] : d;
  const VectorOperand& s1 = v.sources[1].used() ? v.sources[1] : s0;
  const auto joined = [](const VectorOperand& o) { return o.piece_stride == o.piece_bytes; };
  if (v.full_mask() && joined(d) && joined(s0) && joined(s1)) {
    if (d.one_range() && s0.one_range() && s1.one_range() && apart_or_same(d, s0) && apart_or_same(d, s1)) {
      return compute_range<Format>(ubuffer, d.offset, s0.offset, s1.offset, v.repeats * 256, f);
    }
    for (std::uint32_t r = 0; r < v.repeats; ++r) {
      compute_range<Format>(ubuffer, d.at(r, 0), s0.at(r, 0), s1.at(r, 0), 256, f);
    }
    return;
  }
  for (std::uint32_t r = 0; r < v.repeats; ++r) {
    for (std::uint32_t p = 0; p < 8; ++p) {
      const std::uint32_t mask = v.piece_mask(p, n);
      if (mask == 0) continue;
      std::byte* to = ubuffer.write(d.at(r, p));
      compute_block<Format>(to, ubuffer.read(s0.at(r, p)), ubuffer.read(s1.at(r, p)), mask, f);
    }
  }
}

// The scalar operand as a value of the format.
template <class Format>
typename Format::Value scalar_value(const VectorInstruction& v) {
  typename Format::Stored stored;
  static_assert(std::endian::native == std::endian::little);
  std::memcpy(&stored, &v.scalar, sizeof stored);
  return Format::load(stored);
}

}  // namespace cm384::npu
