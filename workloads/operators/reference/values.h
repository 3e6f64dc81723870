// Values that references of operators read and draw.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace cm384::reference {

// The value of a bf16's bits, exact.
inline double of_bf16(std::uint16_t bits) {
  return double{std::bit_cast<float>(std::uint32_t{bits} << 16)};
}

// The value of FP16 bits without infinities and NaN, exact.
double of_fp16(std::uint16_t bits);

// Drawn by seed and stream, the same on every machine. Bits of bf16: signs, magnitudes from 1/8 to 2, spread
// over their exponents.
std::vector<std::uint16_t> draw_bf16(std::uint64_t seed, std::uint64_t stream, std::uint64_t count);
// Evenly in [from, to).
std::vector<float> draw_floats(std::uint64_t seed, std::uint64_t stream, std::uint64_t count, float from,
                               float to);
// Scores of so many heads that a softmax counts besides: up to what thousands of tokens come to.
std::vector<float> draw_sinks(std::uint64_t seed, std::uint64_t heads);

}  // namespace cm384::reference
