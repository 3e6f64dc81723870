/* Arguments of kernel `mla`: decode attention over the compressed KV cache of multi-head latent attention,
 * with the projections absorbed: scores of a head = (its query of 576) . (token's latent 512 and rope 64) *
 * scale, its output = the softmax-weighted sum of the latents. BF16 in and out. Plain C.
 *
 * A block is a group of cores (MIX). The AIC multiplies, its two AIVs have half of the heads each: online
 * softmax and the running sum. A KV block passes once through L1, in chunks of its NZ columns: a chunk is
 * free again when its latents have met the probabilities. Work items are (sequence, query, split); with more
 * than one split the AIVs combine the partial results at the end.
 */
#ifndef CM384_ABI_MLA_H
#define CM384_ABI_MLA_H

#include <stdint.h>

#define CM384_MLA_LATENT 512u
#define CM384_MLA_ROPE 64u
#define CM384_MLA_WIDTH 576u /* elements of a token and of a query */
/* A page is NZ: 36 columns of 32 B blocks, each 128 tokens high. */
#define CM384_MLA_PAGE_TOKENS 128u
#define CM384_MLA_PAGE_BYTES (CM384_MLA_PAGE_TOKENS * CM384_MLA_WIDTH * 2u)

struct cm384_mla {
  uint64_t q;          /* GM: batch x queries x heads x 576 */
  uint64_t kv;         /* GM: pages */
  uint64_t page_table; /* GM: uint32_t, batch x table_width: page of tokens 128 i .. of a sequence */
  uint64_t kv_lens; /* GM: uint32_t per sequence: tokens that query 0 sees; query i sees i more; 1 or more */
  uint64_t out;     /* GM: batch x queries x heads x 512 */
  uint64_t workspace; /* GM: CM384_MLA_WORKSPACE(a) bytes per block */
  uint64_t partial_o; /* GM: float, batch x queries x splits x heads x 512, where splits > 1 */
  uint64_t partial_m; /* GM: float, batch x queries x splits x heads: maxima of the scores */
  uint64_t partial_l; /* GM: the same: sums of the exponentials */
  uint32_t batch, queries;
  uint32_t heads; /* a multiple of 16, at most 128 */
  uint32_t table_width;
  uint32_t splits;       /* 1..32, parts of a sequence's tokens; of one with fewer KV blocks one part each */
  uint32_t block_tokens; /* a KV block, a multiple of 16, at most 128 */
  uint32_t chunks;       /* of a KV block: 2 or 3 */
  uint32_t slots;        /* for chunks in L1, taken in turn: more than 2 KV blocks, at most 7 */
  float scale;
  uint32_t reserved;
};

/* Two scores and probabilities, three products. */
#define CM384_MLA_SCORES(a) ((uint64_t)(a).heads * (a).block_tokens * 4u)
#define CM384_MLA_PROBABILITIES(a) ((uint64_t)(a).heads * (a).block_tokens * 2u)
#define CM384_MLA_PRODUCTS(a) ((uint64_t)(a).heads * CM384_MLA_LATENT * 4u)
#define CM384_MLA_WORKSPACE(a) \
  (2u * (CM384_MLA_SCORES(a) + CM384_MLA_PROBABILITIES(a)) + 3u * CM384_MLA_PRODUCTS(a))
#define CM384_MLA_COLUMNS (CM384_MLA_WIDTH / 16u) /* of a KV block: 32 of latents, 4 of rope */
/* L1: queries, probabilities, slots. */
#define CM384_MLA_L1(a)                                                   \
  ((a).heads * CM384_MLA_WIDTH * 2u + (a).heads * (a).block_tokens * 2u + \
   (a).slots * (CM384_MLA_COLUMNS / (a).chunks) * (a).block_tokens * 32u)

#endif
