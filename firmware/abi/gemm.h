/* Arguments of kernel `gemm`: grouped matrix multiplication on cube cores, C = A * transpose(B) per group.
 * Plain C.
 *
 * Rows of A and C are those of group 0, then of group 1, and so on; a group may have none. BF16 alone: groups
 * may have their A and C at a distance of their own instead, such as heads side by side in a row. B of a
 * group has n rows of k elements (the weights, k contiguous), row-major or NZ. INT8: C[r][j] = sum *
 * token_scale[r] * channel_scale[group][j] in FP32, rounded to BF16; the sums pass from AIC to its AIVs
 * through the workspace, so blocks are groups of cores (MIX). BF16: the fixpipe rounds the FP32 sums; blocks
 * are AICs.
 */
#ifndef CM384_ABI_GEMM_H
#define CM384_ABI_GEMM_H

#include <stdint.h>

/* BF16_PARTS: BF16 whose C stays FP32. INT4: B has 4 bits per element, two in a byte, the low half first; a
 * row x of A in INT8 stands there as two rows of 4 bits, x = 16 * first + second + 8, so that the products of
 * both are of 4 bits (kernel `ffn_w4a8`). Rows that are counted are those of C. */
enum cm384_gemm_type {
  CM384_GEMM_INT8 = 0,
  CM384_GEMM_BF16 = 1,
  CM384_GEMM_BF16_PARTS = 2,
  CM384_GEMM_INT4 = 3
};

/* How the work is cut. Bytes of k count along rows of A and B. */
struct cm384_gemm_tiling {
  uint32_t tile_m, tile_n; /* of C, a block at a time */
  uint32_t l1_k, l0_k;     /* bytes of k in one buffer of L1, of L0; multiples of 32 */
  uint32_t l1_buffers;     /* 1..6 */
  uint32_t parts;          /* of a tile's columns, each with its own place in L0C: 1 or 2 */
  uint32_t part_n;         /* columns of a part, a multiple of 16; the last one has the rest */
  uint32_t places;         /* in L0C, parts take them in turn: more than parts let M and FIX overlap; 1..4 */
  uint32_t band;        /* tiles of m that follow each other before the next tile of n: what shares B in L2 */
  uint32_t vector_rows; /* rows an AIV takes at a time, a multiple of 8 */
};

struct cm384_gemm {
  uint64_t a; /* GM: rows x k, a_pitch bytes apart */
  uint64_t b; /* GM: groups x (n x k); NZ: k in blocks of 32 B x n rounded up to 16 x 32 B */
  uint64_t c; /* GM: rows x n BF16, c_pitch bytes apart */
  uint64_t a_pitch, c_pitch;
  uint64_t a_group, c_group; /* bytes from a group's first row to the next group's; both 0: rows follow on */
  uint64_t group_rows;       /* GM: uint32_t per group, group_row_words words apart; 0 words: one for all */
  uint64_t token_scales;     /* GM: float per row (INT8) */
  uint64_t channel_scales;   /* GM: float per group and column (INT8) */
  uint64_t workspace;        /* GM: CM384_GEMM_WORKSPACE(tiling) bytes per block (INT8) */
  uint32_t groups, n, k;     /* k in elements */
  uint32_t type;             /* cm384_gemm_type */
  uint32_t b_nz;             /* 1: B is NZ */
  uint32_t group_row_words;
  struct cm384_gemm_tiling tiling;
};

/* Arguments of kernel `split_gemm`: k in parts that are the groups of `gemm`, of type BF16_PARTS, each with
 * its part of the rows of A (a_group) and of B, and with a C of its own (c_group); the vector cores sum them.
 */
struct cm384_split_gemm {
  struct cm384_gemm gemm;
  uint64_t c;        /* GM: BF16, dense */
  uint64_t elements; /* of C */
};

/* Columns of a tile in the workspace and in the UBuffer. */
#define CM384_GEMM_PITCH(tile_n) (((tile_n) + 15u) / 16u * 16u)
/* Two tiles of S32 per block. */
#define CM384_GEMM_WORKSPACE(t) (2ull * (t).tile_m * CM384_GEMM_PITCH((t).tile_n) * 4u)
/* UBuffer that an AIV uses: two pieces of S32 and of BF16, the scales of columns, rows, and rows spread over
 * blocks. */
#define CM384_GEMM_UBUFFER(t)                                                                 \
  ((t).vector_rows * CM384_GEMM_PITCH((t).tile_n) * 12u + CM384_GEMM_PITCH((t).tile_n) * 4u + \
   (t).vector_rows * 72u + 256u)

#endif
