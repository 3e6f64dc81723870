// What references of projections share: weights from a seed, and values with the variance that roundings give
// them, in double precision.
//
// Bounds of an element: 2^-8 of its value (and a fiftieth of that) for its own rounding to BF16, and eight
// standard deviations of what the roundings before make of it, where the rounding of a value x to BF16 has
// the variance (2^-8 x)^2 / 3, roundings are independent, and a sum of k products p in FP32 has k 2^-48 of
// the sum of their squares. The rounding to INT8 of a row whose largest magnitude is m has the variance
// (m / 127)^2 / 12.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "traces/random.h"

namespace cm384::reference {

inline constexpr float kNormEpsilon = 1e-6f;

// Rows of k weights: BF16 bits, or INT8 with a scale per row.
struct ProjectionWeights {
  std::vector<std::uint16_t> bf16;
  std::vector<std::int8_t> int8;
  std::vector<float> scales;

  std::span<const std::byte> bytes() const {
    return int8.empty() ? std::as_bytes(std::span(bf16)) : std::as_bytes(std::span(int8));
  }
};
// BF16 bits of both signs, magnitudes from 2^-3 to 2 times 2^-shift.
std::vector<std::uint16_t> draw_elements(traces::Random random, std::uint64_t count, std::uint32_t shift = 0);
// So large that the sums of k products are about as large as what is multiplied.
ProjectionWeights draw_weights(traces::Random random, std::uint64_t n, std::uint32_t k, bool int8);

// Angles of kernels' rope, of each position: cosines of `width` elements, sines, those of the first half
// negated.
std::vector<float> make_rope(std::span<const std::uint32_t> positions, std::uint32_t width = 64);

// A value with the variance that the roundings so far give it.
struct Estimate {
  double value = 0, variance = 0;
};
using Estimates = std::vector<Estimate>;

Estimates exact(std::span<const std::uint16_t> bits);
// Rows `first` .. `first` + `rows` of `weights` times x.
Estimates multiply(std::span<const Estimate> x, const ProjectionWeights& weights, std::size_t first,
                   std::size_t rows);
// Each to BF16.
Estimates round_all(Estimates x);
// Rounded to what an INT8 projection reads, or a BF16 one.
Estimates to_project(Estimates x, bool int8);
Estimates norm(std::span<const Estimate> x, std::span<const std::uint16_t> gamma);
// Rotates by the angles of one position, as make_rope() gives them.
Estimates rotate(std::span<const Estimate> x, std::span<const float> angles);
// The first element that is not within its bound; empty: none.
std::string compare_estimates(const char* what, std::span<const Estimate> wanted,
                              std::span<const std::uint16_t> got);

}  // namespace cm384::reference
