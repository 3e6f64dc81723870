/* Arguments of kernel `mla_prolog`: what precedes decode attention (mla.h) in a layer, with the key
 * projection absorbed into the queries. `down` and `up` are both BF16, or both INT8: norms then give INT8
 * with a scale per token, and sums are scaled to BF16. All else is BF16. Plain C.
 *
 *   x' = norm(x)                                    rows of hidden
 *   latents = x' * down: q_lora for the queries, 512 for the cache, 64 to be rotated for the cache
 *   cache[slot] = norm(512), rope(64)
 *   queries = norm(q_lora) * up                     128 and 64 per head
 *   out = (128 of a head) * absorb[head], rope(64)  512 and 64 per head: q of kernel `mla`
 *
 * norm(v) = v / sqrt(mean(v^2) + epsilon) * gamma. rope rotates elements i and 32 + i by the angle i of the
 * token's position (the halves of a head, as after the usual permutation of the weights' columns). All that
 * is stored is rounded to BF16; vectors compute in FP32. One launch of groups (MIX).
 */
#ifndef CM384_ABI_MLA_PROLOG_H
#define CM384_ABI_MLA_PROLOG_H

#include <stdint.h>

#include "firmware/abi/gemm.h"
#include "firmware/abi/mla.h"

#define CM384_MLA_NOPE 128u                                    /* of a head, before it is absorbed */
#define CM384_MLA_HEAD (CM384_MLA_NOPE + CM384_MLA_ROPE)       /* of a head of `up` */
#define CM384_MLA_LATENTS(q_lora) ((q_lora) + CM384_MLA_WIDTH) /* columns of `down` */

struct cm384_mla_prolog {
  uint64_t x;                          /* GM: tokens x hidden */
  uint64_t gamma_x, gamma_q, gamma_kv; /* GM: hidden, q_lora, 512 */
  uint64_t rope;  /* GM: float, tokens x 128: cosines of elements 0 .. 63, sines, those of 0 .. 31 negated */
  uint64_t slots; /* GM: uint32_t per token, where it goes in the cache: page * 128 + place in the page */
  uint64_t kv;    /* GM: pages */
  struct cm384_gemm down;   /* a and token_scales: x', written by the AIVs; c: latents */
  struct cm384_gemm up;     /* a and token_scales: normed latents of the queries, the same; c: queries */
  struct cm384_gemm absorb; /* one group per head; a: queries; c: out */
  uint32_t tokens;
  uint32_t hidden; /* a multiple of 64, at most 8192 */
  uint32_t q_lora; /* the same */
  uint32_t heads;  /* a multiple of 16 */
  float epsilon;
  uint32_t reserved;
};

#endif
