/* Arguments of kernel `mla_output`: what stands behind decode attention (mla.h) in a layer, BF16: the values
 * of a head from its weighted latent (512 to 128), then the output projection over all heads. Plain C. One
 * launch of groups (MIX).
 */
#ifndef CM384_ABI_MLA_OUTPUT_H
#define CM384_ABI_MLA_OUTPUT_H

#include "firmware/abi/gemm.h"

#define CM384_MLA_VALUE 128u /* of a head */

struct cm384_mla_output {
  struct cm384_gemm value; /* a group a head; a: out of kernel `mla` */
  struct cm384_gemm out;   /* a: value.c; n = hidden, k = heads x 128 */
};

#endif
