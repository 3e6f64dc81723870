// Choosing a word for each row of shares by top-k, top-p and a draw (firmware/abi/sample.h): inputs from a
// seed, and what must come out, in double precision.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace cm384::reference {

struct SampleCase {
  std::uint32_t rows = 1, width = 64, top_k = 50;
  double top_p = 0.95;
  std::uint64_t seed = 1;
};
struct SampleInputs {
  std::vector<float> shares, draws;
};
// Shares of a row fall as a power of their place, whose exponent is drawn from 1 to 3, and stand in any
// order; some are equal.
SampleInputs make_sample_inputs(const SampleCase& sample);

// The first difference; empty: none. A word is the exact sums' own, or its neighbour where the draw, or
// top_p, is within top_k 2^-23 of the line between two; its share is within that of the exact one.
std::string compare_sample(const SampleCase& sample, const SampleInputs& inputs,
                           std::span<const std::int32_t> words, std::span<const float> chosen);

}  // namespace cm384::reference
