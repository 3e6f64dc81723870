// Inputs of the attention of a prefill and what must come out.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace cm384::reference {

struct AttentionCase {
  std::uint64_t seed = 1;
  std::uint32_t sequences = 1, heads = 1, length = 16;  // tokens of each sequence
  std::uint32_t cached = 0;                             // of these, the first ones: without output
  float scale = 0;

  std::uint64_t tokens() const { return std::uint64_t{sequences} * length; }
};

// BF16 bits, tokens x heads x elements (firmware/abi/flash_attention.h).
struct AttentionInputs {
  std::vector<std::uint16_t> q, k, v;
};
AttentionInputs make_attention_inputs(const AttentionCase& attention);

// Compares with sums in double precision, token t over tokens 0 .. t of its sequence. An element may be off
// by 2^-8 of its value, for its own rounding, and of the weighted sum of the values' magnitudes, for the
// rounding of the probabilities. Empty when all are within.
std::string compare_attention(const AttentionCase& attention, const AttentionInputs& inputs,
                              std::span<const std::uint16_t> out);

}  // namespace cm384::reference
