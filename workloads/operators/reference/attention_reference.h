// Inputs of the attention of a prefill and what must come out.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "workloads/operators/reference/layouts.h"

namespace cm384::reference {

struct AttentionCase {
  std::uint64_t seed = 1;
  std::uint32_t sequences = 1, heads = 1, length = 16;  // tokens of each sequence
  std::uint32_t cached = 0;                             // of these, the first ones: without output
  float scale = 0;
  std::uint32_t kv_heads = 0;  // that heads share, as wide as they; 0: each head has its own, of MLA
  std::uint32_t width = 128;   // of a head, where they share
  std::uint32_t window = 0;    // last tokens that a token sees, where they share; 0: all
  bool causal = true;          // where they share: a token sees none behind it
  bool sinks = false;          // where they share: a score of each head that its softmax counts besides

  std::uint64_t tokens() const { return std::uint64_t{sequences} * length; }
  std::uint32_t kv() const { return kv_heads == 0 ? heads : kv_heads; }
  std::uint32_t key() const { return kv_heads == 0 ? MlaLayout::kHead : width; }
  std::uint32_t value() const { return kv_heads == 0 ? MlaLayout::kValue : width; }
};

// BF16 bits, tokens x heads x elements (firmware/abi/flash_attention.h, flash_grouped.h).
struct AttentionInputs {
  std::vector<std::uint16_t> q, k, v;
  std::vector<float> sinks{};  // of heads; empty: none
};
AttentionInputs make_attention_inputs(const AttentionCase& attention);

// Compares with sums in double precision, token t over tokens 0 .. t of its sequence, or over
// all of it. An element may be off
// by 2^-8 of its value, for its own rounding, and of the weighted sum of the values' magnitudes, for the
// rounding of the probabilities. Empty when all are within.
std::string compare_attention(const AttentionCase& attention, const AttentionInputs& inputs,
                              std::span<const std::uint16_t> out);

}  // namespace cm384::reference
