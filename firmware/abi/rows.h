/* Arguments of the kernels that work on rows of a matrix one by one: `add`, `add_rms_norm`, `quantise_rows`,
 * `quantise_tiles`, `head_norm_rows`, `swiglu_rows`, `softmax`, `sort_rows`. Plain C. Values are BF16 and
 * computed in FP32, unless a line says otherwise.
 *
 *   add            out0 = in0 + in1
 *   add_rms_norm   out1 = in0 + in1; out0 = out1 / sqrt(mean(out1^2) + epsilon) * in2, one row of gamma; the
 *                  norm is that of the sum in FP32
 *   quantise_rows  out0 = int8(in0 * factor), nearest even, saturating. Dynamic: the factor is 127 / max
 *                  |in0| of the row, out1 its inverse, a float per row. Static: in1 holds a float per column
 *
 *   swiglu_rows    out0 = silu(first half of the row) * second half: rows of width, from rows of 2 * width
 *
 *   softmax        out0 = exp(in0 - max) / sum(exp(in0 - max)); floats, not BF16
 *
 *   quantise_tiles  the same, several rows at a time, where they are short
 *
 *   head_norm_rows  out0 = in0 / sqrt(mean(in0^2) + epsilon) * in2, one row of gamma; rows of 64 or 128
 *
 *   sort_rows      out0 = each row of in0 by value, largest first, equal ones in their order; floats. out1 =
 *                  their columns, uint32_t. in1, in2: room for 8 B per element. Rows of any width; in0 is no
 *                  payload, since what a merge reads depends on it
 *
 * Blocks are AIVs. `add` takes all rows as one; the others deal whole rows out to blocks.
 * `sort_rows` has the same number of blocks for every row, if there are more than rows.
 */
#ifndef CM384_ABI_ROWS_H
#define CM384_ABI_ROWS_H

#include <stdint.h>

#define CM384_SORT_RUNS 256u /* of `chunk` elements that a core sorts of a row, at most */
#define CM384_ROWS_STATIC 1u /* quantise_rows */

struct cm384_rows {
  uint64_t in[3];  /* GM, rows dense */
  uint64_t out[2]; /* GM, rows dense */
  uint32_t rows;   /* of the matrix */
  uint32_t width;  /* elements of a row of out0, a multiple of 64 */
  uint32_t
      chunk; /* elements in the UBuffer at a time, a multiple of 64: of `add`, `softmax`, and
                `sort_rows`; of `quantise_tiles` and `head_norm_rows` whole rows, 8, 16, ... 248 of them */
  uint32_t
      buffers; /* each way, 1 or 2: with 2 the next copy in and the last copy out overlap the vector unit */
  uint32_t flags;
  float epsilon;
};

#endif
