/* Arguments of kernel `sparse_mla`: as `mla` (mla.h), but a query sees tokens of its own choice alone. Each
 * query is a sequence of `attention`, of one query; kv_lens counts what it sees. The cache has rows: a token
 * is one run of 1,152 B, gathered by itself in two bursts, a chunk each, between the products of a turn: the
 * scalar unit never fills the queue of MTE2 before what the other pipes are to do. Plain C.
 */
#ifndef CM384_ABI_SPARSE_MLA_H
#define CM384_ABI_SPARSE_MLA_H

#include "firmware/abi/mla.h"

/* A row: the first half of the latents and the rope, then the second half; all whole sectors of L2. */
#define CM384_SPARSE_ROW_BYTES (CM384_MLA_WIDTH * 2u)
#define CM384_SPARSE_FIRST_BYTES (CM384_MLA_LATENT + CM384_MLA_ROPE * 2u) /* of the first chunk */
#define CM384_SPARSE_SECOND_BYTES CM384_MLA_LATENT
/* Chunks in L1, of each kind taken in turn. */
#define CM384_SPARSE_FIRST_SLOTS 4u
#define CM384_SPARSE_SECOND_SLOTS 3u

struct cm384_sparse_mla {
  struct cm384_mla attention; /* batch: queries; queries: 1; kv: rows; no page table, chunks and slots */
  uint64_t chosen; /* GM: uint32_t, batch x chosen_pitch: rows of the cache, as `top_k` gives them */
  uint32_t chosen_pitch;
  uint32_t reserved;
};

/* L1: queries, probabilities, slots. */
#define CM384_SPARSE_L1(a)                                                   \
  ((a).heads * (CM384_MLA_WIDTH + (a).block_tokens) * 2u +                   \
   (a).block_tokens * (CM384_SPARSE_FIRST_SLOTS * CM384_SPARSE_FIRST_BYTES + \
                       CM384_SPARSE_SECOND_SLOTS * CM384_SPARSE_SECOND_BYTES))

#endif
