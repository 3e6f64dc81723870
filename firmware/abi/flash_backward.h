/* Arguments of kernel `flash_backward`: gradients of the causal attention of flash_grouped.h, with heads of
 * 128 and no window. With P = exp(scale Q K^T - sums) of tokens that a token sees, and D = out . gradient of
 * a row: dV = P^T gradient, dS = scale P (gradient V^T - D), dQ = dS K, dK = dS^T Q. BF16 in and out, sums in
 * F32. Plain C.
 *
 * A block is a group of cores (MIX). A task is (sequence, head, tile of keys), its items are the tiles of
 * queries that see some of these. The AIC has keys and values of the task in L1 and multiplies five times an
 * item; scores and the gradient's products stand transposed, a row for each key, of which each AIV has half.
 * Products are added up in GM.
 */
#ifndef CM384_ABI_FLASH_BACKWARD_H
#define CM384_ABI_FLASH_BACKWARD_H

#include <stdint.h>

#define CM384_BACKWARD_TILE 128u /* queries at a time, and keys */
#define CM384_BACKWARD_HEAD 128u /* elements of a head */

struct cm384_flash_backward {
  uint64_t q;             /* GM: tokens x heads x 128 */
  uint64_t k, v;          /* GM: tokens x kv_heads x 128 */
  uint64_t out, gradient; /* GM: tokens x heads x 128: of the forward pass, and of it */
  uint64_t sums;  /* GM, F32: sequences x heads x length, log of the sum of exponentials of scaled scores; 512
                     B  behind are read, too */
  uint64_t rows;  /* GM, F32: as sums: D */
  uint64_t added; /* GM, F32: dQ, dK, dV one after another */
  uint64_t
      gradients; /* GM, BF16: dQ, dK, dV one after another, of tokens x heads, kv_heads, kv_heads x 128 */
  uint64_t workspace; /* GM: CM384_BACKWARD_WORKSPACE bytes per block */
  uint32_t sequences, heads, kv_heads;
  uint32_t length; /* tokens of each sequence, a multiple of 16 */
  float scale;
};

/* Scores and the gradient's products, probabilities and gradients of scores: three of each. */
#define CM384_BACKWARD_TURNS 3u
#define CM384_BACKWARD_SCORES (CM384_BACKWARD_TILE * CM384_BACKWARD_TILE * 4u)
#define CM384_BACKWARD_WEIGHTS (CM384_BACKWARD_TILE * CM384_BACKWARD_TILE * 2u)
#define CM384_BACKWARD_TURN (2u * (CM384_BACKWARD_SCORES + CM384_BACKWARD_WEIGHTS))
#define CM384_BACKWARD_WORKSPACE (CM384_BACKWARD_TURNS * CM384_BACKWARD_TURN)

#endif
