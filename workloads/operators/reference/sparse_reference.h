// Sparse attention's choice of cached tokens and the attention over them: inputs, and what must come out.
// Source of the formulas: DeepSeek-V3.2 (arXiv:2512.02556), section 2.1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "workloads/operators/reference/mla_reference.h"

namespace cm384::reference {

struct IndexCase {
  std::uint64_t seed = 1;
  std::vector<std::uint32_t> kv_lens;  // a sequence: tokens that query 0 sees; each further query one more
  std::uint32_t queries = 1, heads = 64, chosen = 2048;
  bool one_prompt = false;  // as of MlaCase

  std::uint32_t rows() const { return static_cast<std::uint32_t>(kv_lens.size()) * queries; }
  std::uint32_t tokens(std::uint32_t row) const { return kv_lens[row / queries] + row % queries; }
  // The cache has the page table of this case.
  MlaCase cached() const { return {seed, kv_lens, queries, heads, 0, one_prompt}; }
};

struct IndexInputs {
  std::vector<std::int8_t> q;          // rows x heads x 128
  std::vector<std::uint16_t> weights;  // FP16 bits, rows x heads
  std::vector<std::byte> pages;        // keys and their scales
};
IndexInputs make_index_inputs(const IndexCase& index);

// Compares a row of scores without the scales of the keys, of the tokens that it sees, in double precision. A
// score may be off by 2^-11 of the sum of its terms' magnitudes, for the rounding of products to FP16, and
// 2^-24 of it for each of its additions.
std::string compare_scores(const IndexCase& index, const IndexInputs& in, std::uint32_t row,
                           std::span<const float> scores);

// The places in the cache of the tokens that a row chooses by its scores times the scales of the keys: the
// largest first, equal ones in the order of tokens; all tokens in order where they are no more than `chosen`.
std::vector<std::uint32_t> chosen_places(const IndexCase& index, const IndexInputs& in, std::uint32_t row,
                                         std::span<const float> scores);

// Different tokens of each row, as many as it chooses, drawn evenly: their places in the cache, rows x
// `chosen`.
std::vector<std::uint32_t> draw_places(const IndexCase& index);

// Compares attention of all queries over the tokens that they have chosen, in a cache of rows (SparseRow)
// that the pages of `in` are read as: bounds as compare_mla().
std::string compare_sparse_mla(const IndexCase& index, const MlaCase& mla, const MlaInputs& in,
                               std::span<const std::uint32_t> places, std::span<const std::uint16_t> out);

}  // namespace cm384::reference
