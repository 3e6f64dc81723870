// The order of work of kernel `gqa`, where its cores hand each other what, and a vector core's part.
#pragma once

#include "firmware/abi/gqa.h"
#include "online_softmax.h"
#include "split_items.h"

using GqaItem = SplitItem;  // pair: (batch number * queries + query) * sets of KV heads + set

// Tokens that the query of a pair sees.
struct GqaPair {
  CM384_INLINE GqaPair(const cm384_gqa& a, uint32_t pair) {
    const uint32_t sets = a.kv_heads / a.together, query = pair / sets;
    batch = query / a.queries;
    tokens = reinterpret_cast<const uint32_t*>(a.kv_lens)[batch] + (query - batch * a.queries);
    first = a.window != 0 && tokens > a.window ? tokens - a.window : 0;
    blocks = (tokens - first + a.block_tokens - 1) / a.block_tokens;
    parts = blocks < a.splits ? blocks : a.splits;
  }
  static CM384_INLINE uint32_t Count(const cm384_gqa& a) { return CM384_GQA_TASKS(a); }
  CM384_INLINE uint32_t First() const { return first; }
  uint32_t batch, tokens, first, blocks, parts;
};

using GqaWalker = SplitWalker<GqaPair, cm384_gqa>;

// Where a block keeps what its cores hand each other, three of each, taken in turn.
struct GqaWorkspace {
  CM384_INLINE GqaWorkspace(const cm384_gqa& a, uint32_t block)
      : scores(a.workspace + block * CM384_GQA_WORKSPACE(a)),
        probabilities(scores + CM384_GQA_TURNS * CM384_GQA_SCORES(a)),
        products(probabilities + CM384_GQA_TURNS * CM384_GQA_PROBABILITIES(a)) {}
  uint64_t scores, probabilities, products;
};

// What kernel `gqa_sinks` takes (cm384_gqa_sinks).
struct GqaWithSinks : cm384_gqa {
  uint64_t sinks;
};
static_assert(sizeof(GqaWithSinks) == sizeof(cm384_gqa_sinks));

template <uint32_t kHead>
struct GqaForm {
  using Arguments = cm384_gqa;
  using Item = GqaItem;
  using Walker = GqaWalker;
  using Workspace = GqaWorkspace;
  using Pair = GqaPair;
  // A piece has no rows of two KV heads, between which there may be padding.
  static constexpr uint32_t kWidth = kHead, kWholeRows = 8, kPieceRows = 8, kTurns = CM384_GQA_TURNS;

  static CM384_INLINE uint32_t Rows(const cm384_gqa& a) { return CM384_GQA_TILE_ROWS(a); }
  static CM384_INLINE uint64_t Scores(const cm384_gqa& a) { return CM384_GQA_SCORES(a); }
  static CM384_INLINE uint64_t Probabilities(const cm384_gqa& a) { return CM384_GQA_PROBABILITIES(a); }
  static CM384_INLINE uint64_t Products(const cm384_gqa& a) { return CM384_GQA_PRODUCTS(a); }
  static CM384_INLINE uint64_t Result(const cm384_gqa& a, const GqaItem& item, uint64_t row,
                                      uint32_t column) {
    return Out(a, item.pair, static_cast<uint32_t>(row)) + column * 2;
  }
  static CM384_INLINE uint64_t Pitch(const cm384_gqa&) { return kWidth * 2; }
  static CM384_INLINE uint32_t ResultRows(const cm384_gqa& a, const GqaItem&, uint64_t row) {
    return OutRows(a, static_cast<uint32_t>(row));
  }
  static CM384_INLINE uint64_t Part(const cm384_gqa& a, const GqaItem& item) {
    return (static_cast<uint64_t>(item.pair) * a.splits + item.split) * Rows(a);
  }
  static CM384_INLINE uint64_t Out(const cm384_gqa& a, uint32_t pair, uint32_t row) {
    const uint32_t sets = a.kv_heads / a.together, query = pair / sets, rows = CM384_GQA_ROWS(a);
    const uint32_t head = (pair - query * sets) * a.together + row / rows;
    return a.out +
           (static_cast<uint64_t>(query) * a.heads + head * (a.heads / a.kv_heads) + row % rows) * kWidth * 2;
  }
  // Of the eight rows from `row` on, those that are no padding.
  static CM384_INLINE uint32_t OutRows(const cm384_gqa& a, uint32_t row) {
    const uint32_t group = a.heads / a.kv_heads, within = row % CM384_GQA_ROWS(a);
    if (within >= group) return 0;
    return group - within < 8 ? group - within : 8;
  }
};

template <uint32_t kHead>
struct GqaSinksForm : GqaForm<kHead> {
  using Arguments = GqaWithSinks;

  static CM384_INLINE uint64_t Sinks(const Arguments& a, const GqaItem& item) {
    if (item.split != 0) return 0;
    const uint32_t sets = a.kv_heads / a.together, set = item.pair % sets;
    return a.sinks + static_cast<uint64_t>(set) * CM384_GQA_TILE_ROWS(a) * 4;
  }
};
