/* Arguments of kernel `mla_output`: what follows decode attention (mla.h) in a layer: the values of a
 * head from its weighted latent (512 to 128), BF16, then the output projection over all heads, BF16 or INT8:
 * the AIVs then quantise the values of each token to INT8 with a scale of its own. Plain C. One launch of
 * groups (MIX).
 */
#ifndef CM384_ABI_MLA_OUTPUT_H
#define CM384_ABI_MLA_OUTPUT_H

#include "firmware/abi/gemm.h"

#define CM384_MLA_VALUE 128u /* of a head */

struct cm384_mla_output {
  struct cm384_gemm value; /* one group per head; a: out of kernel `mla` */
  struct cm384_gemm out;   /* n = hidden, k = heads x 128; BF16: a: value.c; INT8: a, token_scales: by AIVs */
};

#endif
