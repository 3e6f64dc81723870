/* Arguments of kernels `gqa_prolog` and `gqa_output`: what precedes and follows decode attention over
 * grouped keys and values (gqa.h) in a layer. Products are BF16, or INT8: rows then are quantised to INT8
 * with a scale per token, and sums are scaled to BF16. All else is BF16. Plain C. One launch of groups (MIX)
 * each.
 *
 * Prolog: x' = norm(x); queries, keys and values = x' * qkv, heads side by side; rope of queries and keys;
 * keys and values of the tokens to their slots of the cache. norm and rope as in mla_prolog.h, rope over the
 * whole head. Kernel `gqa_prolog_normed`: each head's query and key is normed before its rope. Output: out =
 * attention * o.
 */
#ifndef CM384_ABI_GQA_PROJECTIONS_H
#define CM384_ABI_GQA_PROJECTIONS_H

#include "firmware/abi/gemm.h"
#include "firmware/abi/gqa.h"

struct cm384_gqa_prolog {
  uint64_t x, gamma_x;   /* GM: tokens x hidden; hidden */
  uint64_t rope;         /* GM: float, tokens x 2 width: cosines, sines, those of the first half negated */
  uint64_t slots;        /* GM: uint32_t per token, where it goes: page * 128 + place in the page */
  uint64_t k, v;         /* GM: pages */
  uint64_t q;            /* GM: tokens x heads x width */
  struct cm384_gemm qkv; /* n = (heads + 2 kv_heads) x width; a, token_scales: x', written by the AIVs */
  uint32_t tokens;
  uint32_t hidden; /* a multiple of 64, at most 8192 */
  uint32_t heads, kv_heads, width;
  uint32_t heads_at_once; /* that an AIV rotates at a time, a divisor of heads */
  float epsilon;
  uint32_t reserved;
};

struct cm384_gqa_prolog_normed {
  struct cm384_gqa_prolog plain;
  uint64_t gamma_q, gamma_k; /* GM: width */
};

struct cm384_gqa_output {
  struct {
    uint64_t c, c_pitch; /* GM: tokens x (heads x width), BF16: out of kernel `gqa`; bytes of a row */
  } value;
  struct cm384_gemm out; /* n = hidden, k = heads x width; BF16: a: value.c; INT8: a, token_scales: by AIVs */
};

#endif
