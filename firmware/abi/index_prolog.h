/* Arguments of kernel `index_prolog`: queries, weights and the newest keys of an indexer (indexer.h), from
 * what `mla_prolog` has normed. Both products are BF16, or both INT8. Plain C.
 *
 *   queries = latents of the queries * query                128 a head
 *   key, weights = x' * key                                 128, one a head
 *   key = layer norm(key)
 *   the first 64 elements of each head and of the key are rotated by the token's position
 *   each head and the key to INT8 by 127 / its largest magnitude; scale: the inverse
 *   weights out = weights * the head's scale * weight_scale
 *
 * The rotation of both by a Hadamard matrix, which leaves their products as they are, is left out. One launch
 * of groups (MIX).
 */
#ifndef CM384_ABI_INDEX_PROLOG_H
#define CM384_ABI_INDEX_PROLOG_H

#include "firmware/abi/gemm.h"
#include "firmware/abi/indexer.h"

struct cm384_index_prolog {
  struct cm384_gemm query;   /* a: normed latents; c: tokens x heads x 128 BF16 */
  struct cm384_gemm key;     /* a: x'; c: tokens x (128 + heads) BF16 */
  uint64_t gamma, beta;      /* GM: BF16, 128 each, of the layer norm */
  uint64_t rope;             /* GM: float, tokens x 128, as in mla_prolog.h */
  uint64_t slots;            /* GM: uint32_t per token, the same */
  uint64_t q, weights, keys; /* GM: as cm384_indexer has them */
  uint32_t tokens;
  uint32_t heads; /* a multiple of 16, at most 64 */
  float epsilon;
  float weight_scale; /* 32 / sqrt(heads * 128): indexer.h divides products by 32 */
};

#endif
