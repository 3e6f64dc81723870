// A layer's decode attention on one die, of either kind: what stands before it, attention over the cache,
// output projection.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/kernels/cube_run.h"
#include "workloads/operators/mla/mla.h"

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

  std::uint32_t tokens() const { return static_cast<std::uint32_t>(kv_lens.size()) * queries; }
  // Bytes of the cache of a token.
  std::uint64_t token_bytes() const {
    return kv_heads == 0 ? CM384_MLA_WIDTH * 2u : std::uint64_t{kv_heads} * head_width * 4;
  }
};

// Prolog, attention, output, one after another, as parts of a captured graph. Throws InputError for shapes
// that their kernels are not for.
Stages attention_stages(const AttentionSetting& setting, std::uint64_t seed);
inline constexpr std::size_t kAttentionStages = 3;

}  // namespace cm384::studies
