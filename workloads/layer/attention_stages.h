// A layer's decode attention on one die, of either kind: what stands before it, attention over the cache,
// output projection.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/kernels/cube_run.h"
#include "workloads/operators/sparse/sparse.h"

namespace cm384::studies {

struct AttentionSetting {
  std::vector<std::uint32_t> kv_lens;  // a sequence: tokens that query 0 sees, the newest inside
  std::uint32_t queries = 1, heads = 128;
  std::uint32_t hidden = 7168;
  bool int8 = false;  // projections from and to hidden
  // 0 KV heads: a latent is cached (MLA), and queries are made from one of `q_lora`; else keys and values.
  std::uint32_t kv_heads = 0;
  std::uint32_t q_lora = 1536;
  std::uint32_t head_width = 128, window = 0;  // of grouped heads; window 0: all tokens
  // With a latent: tokens that a query sees at most, 0: all; heads of the indexer that chooses them, 0: a
  // layer before has chosen; elements of a head without rope, and of its value.
  std::uint32_t chosen = 0, index_heads = 0;
  std::uint32_t nope = 128, value = 128;
  bool head_norms = false, sinks = false;  // of grouped heads: GqaSetting

  std::uint32_t tokens() const { return static_cast<std::uint32_t>(kv_lens.size()) * queries; }
  bool has_indexer() const { return chosen != 0 && index_heads != 0; }
  // Bytes of the cache of a token; of an indexer a key in INT8 and its scale.
  std::uint64_t token_bytes() const {
    if (kv_heads != 0) return std::uint64_t{kv_heads} * head_width * 4;
    return CM384_MLA_WIDTH * 2u + (has_indexer() ? CM384_INDEX_WIDTH + 4u : 0);
  }
};

// Prolog, attention, output, one after another, as parts of a captured graph; where an indexer chooses, what
// it takes stands before the attention. Throws InputError for shapes that their kernels are not for.
Stages attention_stages(const AttentionSetting& setting, std::uint64_t seed);
std::vector<std::string> attention_names(const AttentionSetting& setting);  // of these stages

}  // namespace cm384::studies
