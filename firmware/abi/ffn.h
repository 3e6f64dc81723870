/* Arguments of kernel `ffn`: the feed-forward network of a die's experts, INT8, over rows grouped by expert
 * (what dispatch delivers). Plain C.
 *
 * gate_up multiplies every row by its expert's 2 * width columns, gate first, then up, to BF16; the AIVs
 * compute silu(gate) * up and quantise each row to INT8 with a scale of its own; down multiplies by the
 * expert's hidden columns, to BF16. All of it is one launch of groups (MIX).
 *
 * Kernel `ffn_bf16` has weights and products of BF16: silu(gate) * up is rounded to BF16. Rows that come in
 * INT8, as dispatch leaves them, are widened first, x * scale rounded to BF16.
 *
 * Kernel `ffn_w4a8` has weights of 4 bits with a scale per column, and activations of INT8: the AIVs split
 * rows into two of 4 bits (CM384_GEMM_INT4), cube cores multiply these, and the AIVs put the sums together.
 */
#ifndef CM384_ABI_FFN_H
#define CM384_ABI_FFN_H

#include <stdint.h>

#include "firmware/abi/gemm.h"

struct cm384_ffn {
  struct cm384_gemm gate_up; /* n = 2 * width, k = hidden */
  struct cm384_gemm down;    /* n = hidden, k = width; its a and token_scales are written by the AIVs */
  uint32_t width;            /* a multiple of 64, at most 4096 */
  uint32_t reserved;
};

struct cm384_ffn_w4a8 {
  struct cm384_ffn network;         /* both a are written by the AIVs: rows of k / 2 B, two for each of C */
  uint64_t x;                       /* GM: INT8, rows x hidden, dense */
  uint64_t hidden_rows;             /* GM: INT8, rows x width, dense: written by the AIVs */
  uint64_t gate_up_sums, down_sums; /* GM: float per group and column: 8 * the sum of its weights */
};

struct cm384_ffn_bf16 {
  struct cm384_ffn network; /* its gate_up.a is written by the AIVs where there is an x */
  uint64_t x;               /* GM: INT8, rows x hidden, dense; 0: none, gate_up.a has the rows */
  uint64_t scales;          /* GM: float per row */
};

#endif
