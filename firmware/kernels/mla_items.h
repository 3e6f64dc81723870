// The order of work of kernel `mla`, and where its cores hand each other what.
#pragma once

#include "firmware/abi/mla.h"
#include "online_softmax.h"
#include "split_items.h"

using MlaItem = SplitItem;  // pair: batch number * queries + query

// Tokens that a pair sees.
struct MlaPair {
  CM384_INLINE MlaPair(const cm384_mla& a, uint32_t pair)
      : batch(pair / a.queries),
        tokens(reinterpret_cast<const uint32_t*>(a.kv_lens)[batch] + (pair - batch * a.queries)),
        blocks((tokens + a.block_tokens - 1) / a.block_tokens),
        parts(blocks < a.splits ? blocks : a.splits) {}
  static CM384_INLINE uint32_t Count(const cm384_mla& a) { return a.batch * a.queries; }
  static CM384_INLINE uint32_t First() { return 0; }
  uint32_t batch, tokens, blocks, parts;
};

using MlaWalker = SplitWalker<MlaPair, cm384_mla>;

// Where a block keeps what its cores hand each other, taken in turn: two scores and probabilities, three
// products. Scores i are out after products i - 2, so that no core needs to say that it has read something.
struct MlaWorkspace {
  CM384_INLINE MlaWorkspace(const cm384_mla& a, uint32_t block)
      : scores(a.workspace + block * CM384_MLA_WORKSPACE(a)),
        probabilities(scores + 2 * CM384_MLA_SCORES(a)),
        products(probabilities + 2 * CM384_MLA_PROBABILITIES(a)) {}
  uint64_t scores, probabilities, products;
};
