// Inputs of decode attention over a compressed KV cache and what must come out.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace cm384::reference {

struct MlaCase {
  std::uint64_t seed = 1;
  std::vector<std::uint32_t> kv_lens;  // a sequence
  std::uint32_t queries = 1, heads = 128;
  float scale = 0;
  bool one_prompt = false;  // sequences are the first tokens of one: they share its pages

  std::uint32_t batch() const { return static_cast<std::uint32_t>(kv_lens.size()); }
  // Pages the longest sequence takes with the tokens of its last query.
  std::uint32_t table_width() const;
};

struct MlaInputs {
  std::vector<std::uint16_t> q;           // BF16 bits, batch x queries x heads x 576
  std::vector<std::uint16_t> pages;       // NZ
  std::vector<std::uint32_t> page_table;  // pages in no order
};
// The page table alone.
std::vector<std::uint32_t> make_page_table(const MlaCase& mla);
// Number of pages: the largest entry of the table and one.
std::size_t pages_of(const std::vector<std::uint32_t>& page_table);
MlaInputs make_mla_inputs(const MlaCase& mla);

// Compares with sums in double precision. An element may be off by 2^-8 of its value, for its own rounding,
// and of the weighted sum of the latents' magnitudes, for the rounding of the probabilities. Empty when all
// are within.
std::string compare_mla(const MlaCase& mla, const MlaInputs& inputs, std::span<const std::uint16_t> out);
// The same of one head, by its query and the `tokens` of the cache that it sees, 576 elements each.
std::string compare_latent_head(const MlaCase& mla, std::span<const std::uint16_t> q,
                                std::span<const double> cache, std::uint32_t tokens,
                                std::span<const std::uint16_t> out);

}  // namespace cm384::reference
