/* Arguments of kernel `gqa`: decode attention over a paged cache of keys and values that groups of query
 * heads share (grouped-query attention; multi-head with groups of one). Scores of a head = (its query) . (key
 * of its group) * scale, its output = the softmax-weighted sum of the group's values. BF16 in and out. Plain
 * C.
 *
 * A block is a group of cores (MIX). The AIC multiplies, its two AIVs have half of a tile's rows each: online
 * softmax and the running sum. A tile is the query heads of some KV heads, those of each padded to 16 rows.
 * Work items are (sequence, query, KV heads, split); with more than one split the AIVs combine the partial
 * results at the end. Kernel `gqa_sinks`: the same where every head has a score of its own, which a softmax
 * counts beside those of tokens, without a value.
 */
#ifndef CM384_ABI_GQA_H
#define CM384_ABI_GQA_H

#include <stdint.h>

#define CM384_GQA_PAGE_TOKENS 128u
/* A page is NZ: of each KV head width / 16 columns of 32 B blocks, each 128 tokens high. */
#define CM384_GQA_PAGE_BYTES(kv_heads, width) ((kv_heads) * (width)*2u * CM384_GQA_PAGE_TOKENS)

struct cm384_gqa {
  uint64_t q;          /* GM: batch x queries x heads x width */
  uint64_t k, v;       /* GM: pages */
  uint64_t page_table; /* GM: uint32_t, batch x table_width: page of tokens 128 i .. of a sequence */
  uint64_t kv_lens;    /* GM: uint32_t per sequence: tokens up to query 0; query i has i more; 1 or more */
  uint64_t out;        /* GM: batch x queries x heads x width */
  uint64_t workspace;  /* GM: CM384_GQA_WORKSPACE(a) bytes per block */
  uint64_t partial_o;  /* GM: float, tasks x splits x tile rows x width, where splits > 1 */
  uint64_t partial_m;  /* GM: float, tasks x splits x tile rows: maxima of the scores */
  uint64_t partial_l;  /* GM: the same: sums of the exponentials */
  uint32_t batch, queries;
  uint32_t heads, kv_heads; /* heads a multiple of kv_heads */
  uint32_t width;           /* of a head: 64 or 128 */
  uint32_t together;        /* KV heads of a tile; a divisor of kv_heads */
  uint32_t table_width;
  uint32_t splits;       /* 1..32, parts of a sequence's tokens; of one with fewer KV blocks one part each */
  uint32_t block_tokens; /* CM384_GQA_PAGE_TOKENS */
  uint32_t window;       /* last tokens that a query sees; 0: all */
  float scale;
  uint32_t reserved;
};

struct cm384_gqa_sinks {
  struct cm384_gqa plain;
  uint64_t sinks; /* GM: float for each row of a tile, padding too; the tiles of a query one after another */
};

/* Rows of a KV head, of a tile; its tasks before they are split. */
#define CM384_GQA_ROWS(a) (((a).heads / (a).kv_heads + 15u) / 16u * 16u)
#define CM384_GQA_TILE_ROWS(a) (CM384_GQA_ROWS(a) * (a).together)
#define CM384_GQA_TASKS(a) ((a).batch * (a).queries * ((a).kv_heads / (a).together))
/* Scores, probabilities and products: three of each. */
#define CM384_GQA_TURNS 3u
#define CM384_GQA_SCORES(a) ((uint64_t)CM384_GQA_TILE_ROWS(a) * (a).block_tokens * 4u)
#define CM384_GQA_PROBABILITIES(a) ((uint64_t)CM384_GQA_TILE_ROWS(a) * (a).block_tokens * 2u)
#define CM384_GQA_PRODUCTS(a) ((uint64_t)CM384_GQA_TILE_ROWS(a) * (a).width * 4u)
#define CM384_GQA_WORKSPACE(a) \
  (CM384_GQA_TURNS * (CM384_GQA_SCORES(a) + CM384_GQA_PROBABILITIES(a) + CM384_GQA_PRODUCTS(a)))
/* L1: two tiles of queries, probabilities, two blocks of keys and four of values. */
#define CM384_GQA_KEY_SLOTS 2u
#define CM384_GQA_VALUE_SLOTS 4u
#define CM384_GQA_BLOCK_BYTES(a) ((a).together * (a).width * 2u * (a).block_tokens)
#define CM384_GQA_L1(a)                                                                            \
  (2u * CM384_GQA_TILE_ROWS(a) * (a).width * 2u + CM384_GQA_TILE_ROWS(a) * (a).block_tokens * 2u + \
   (CM384_GQA_KEY_SLOTS + CM384_GQA_VALUE_SLOTS) * CM384_GQA_BLOCK_BYTES(a))

#endif
