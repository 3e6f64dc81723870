// Inputs of decode attention over a paged cache of grouped keys and values, of what stands before and behind
// it in a layer (kernels `gqa`, `gqa_prolog`, `gqa_output`), and what must come out, in double precision
// (bounds of projections: projections.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "workloads/operators/reference/projections.h"

namespace cm384::reference {

struct GqaCase {
  std::uint64_t seed = 1;
  std::vector<std::uint32_t> kv_lens;  // a sequence
  std::uint32_t queries = 1, heads = 64, kv_heads = 8, width = 128;
  std::uint32_t window = 0;  // last tokens that a query sees; 0: all
  float scale = 0;
  bool sinks = false;  // a score of each head that its softmax counts besides

  std::uint32_t batch() const { return static_cast<std::uint32_t>(kv_lens.size()); }
  // Pages the longest sequence takes with the tokens of its last query.
  std::uint32_t table_width() const;
};

struct GqaInputs {
  std::vector<std::uint16_t> q;           // BF16 bits, batch x queries x heads x width
  std::vector<std::uint16_t> k, v;        // pages, NZ
  std::vector<std::uint32_t> page_table;  // pages in no order
  std::vector<float> sinks;               // of heads; empty: none
};
// The page table alone; then the number of pages is its largest entry and one.
std::vector<std::uint32_t> make_gqa_page_table(const GqaCase& gqa);
GqaInputs make_gqa_inputs(const GqaCase& gqa);

// An element may be off by 2^-8 of its value, for its own rounding, and of the weighted sum of the values'
// magnitudes, for the rounding of the probabilities. Empty when all are within.
std::string compare_gqa(const GqaCase& gqa, const GqaInputs& inputs, std::span<const std::uint16_t> out);

struct GqaProjectionCase {
  std::uint64_t seed = 1;
  std::uint32_t tokens = 1, hidden = 4096, heads = 64, kv_heads = 8, width = 128;
  bool int8 = false;
  bool norms = false;  // of each head's query and key
};

// BF16 bits but for the angles. Weights are (heads + 2 kv_heads) x width rows of hidden.
struct GqaPrologInputs {
  std::vector<std::uint16_t> x, gamma_x;
  std::vector<std::uint16_t> gamma_q, gamma_k;  // with norms
  ProjectionWeights qkv;
  std::vector<float> rope;
};
GqaPrologInputs make_gqa_prolog_inputs(const GqaProjectionCase& layer,
                                       std::span<const std::uint32_t> positions);
// What the kernel delivered of a token: [heads][width], and what it put into the cache, [kv_heads][width]
// each.
struct GqaPrologOutput {
  std::span<const std::uint16_t> queries, key, value;
};
std::string compare_gqa_prolog(const GqaProjectionCase& layer, const GqaPrologInputs& in, std::uint32_t token,
                               const GqaPrologOutput& out);

ProjectionWeights make_gqa_output_weights(const GqaProjectionCase& layer);
// One token from its `values` [heads][width] to its row of hidden.
std::string compare_gqa_output(const GqaProjectionCase& layer, const ProjectionWeights& weights,
                               std::span<const std::uint16_t> values, std::span<const std::uint16_t> out);

}  // namespace cm384::reference
