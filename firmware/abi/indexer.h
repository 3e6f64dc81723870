/* Arguments of the kernels of sparse attention's choice (DeepSeek-V3.2, section 2.1). `indexer` scores cached
 * tokens for a query: score = scale of the token's key * sum over index heads of weight * relu(query . key),
 * queries and keys of 128 in INT8. `top_k` chooses the tokens with the largest scores. Plain C.
 *
 * The cache of index keys has pages like that of the latents (mla.h), and its page table: 128 keys in NZ, 4
 * columns of 32 B blocks, then their scales.
 */
#ifndef CM384_ABI_INDEXER_H
#define CM384_ABI_INDEXER_H

#include <stdint.h>

#define CM384_INDEX_WIDTH 128u
#define CM384_INDEX_PAGE_TOKENS 128u
#define CM384_INDEX_KEY_BYTES (CM384_INDEX_PAGE_TOKENS * CM384_INDEX_WIDTH) /* of a page; scales follow */
#define CM384_INDEX_PAGE_BYTES (CM384_INDEX_KEY_BYTES + CM384_INDEX_PAGE_TOKENS * 4u)
/* The fixpipe writes relu(query . key) / 32 as FP16, which holds all of it: 128 * 127 * 127 / 32 < 65504. */
#define CM384_INDEX_PRODUCT_SCALE 0.03125f

/* A launch of cube cores. The pages of all sequences are dealt out in equal runs; a page is read once for all
 * queries. Sequences of which no query sees more than `chosen` tokens are left out. */
struct cm384_indexer {
  uint64_t q;          /* GM: int8_t, batch x queries x heads x 128 */
  uint64_t weights;    /* GM: FP16, batch x queries x heads: with the scales of queries, and times 32 */
  uint64_t keys;       /* GM: pages */
  uint64_t page_table; /* GM: uint32_t, batch x table_width */
  uint64_t kv_lens;    /* GM: uint32_t per sequence: tokens that query 0 sees; query i sees i more */
  uint64_t scores;     /* GM: float, batch x queries x CM384_INDEX_PITCH: without the scales of keys */
  uint32_t batch, queries;
  uint32_t heads; /* a multiple of 16, at most 64; queries at most 16, queries x heads at most 256 */
  uint32_t table_width;
  uint32_t chosen;
  uint32_t reserved;
};
#define CM384_INDEX_PITCH(table_width) ((table_width)*CM384_INDEX_PAGE_TOKENS) /* scores of a query */

/* A launch of vector cores. The tokens of a query go into parts, of which cores make sorted lists; a core
 * merges those of a query. Chosen tokens stand in the order of their scores, equal ones in that of tokens. A
 * query that sees no more than k tokens has them all. */
#define CM384_TOP_K_MOST 2048u
#define CM384_TOP_K_BLOCK 2048u /* tokens sorted at a time; a part has whole ones */
struct cm384_top_k {
  uint64_t scores;     /* GM: as above */
  uint64_t keys;       /* GM: pages, for the scales */
  uint64_t page_table; /* GM: as above */
  uint64_t kv_lens;    /* GM: as above */
  uint64_t chosen;     /* GM: uint32_t, batch x queries x k: page * 128 + place in the page */
  uint64_t lists;      /* GM: {float score, uint32_t token}, batch x queries x parts x k; where parts > 1 */
  uint32_t batch, queries;
  uint32_t table_width;
  uint32_t k;     /* a multiple of 64, at most 2048 */
  uint32_t parts; /* 1..32 */
  uint32_t reserved;
};

#endif
