/* Arguments of kernel `ffn`: the feed-forward network of a die's experts, INT8, over rows grouped by expert
 * (what dispatch delivers). Plain C.
 *
 * gate_up multiplies every row by its expert's 2 * width columns, gate first, then up, to BF16; the AIVs
 * compute silu(gate) * up and quantise each row to INT8 with a scale of its own; down multiplies by the
 * expert's hidden columns, to BF16. All of it is one launch of groups (MIX).
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

#endif
