/* Arguments of kernel `flash_attention`: attention of a prefill over keys and values of each head, causal:
 * token t of a sequence sees tokens 0 .. t of it. Tokens before `cached` have keys and values, but no output.
 * Scores of a head = (its query of 192) . (key of 192) *
 * scale, its output = the softmax-weighted sum of the values of 128. BF16 in and out. Plain C.
 *
 * A block is a group of cores (MIX). The AIC multiplies, its two AIVs have half of a tile's rows each. Work
 * items are blocks of keys of a task, a task is (sequence, head, tile of queries); the tiles with the most
 * keys come first.
 */
#ifndef CM384_ABI_FLASH_ATTENTION_H
#define CM384_ABI_FLASH_ATTENTION_H

#include <stdint.h>

#define CM384_FLASH_KEY 192u   /* elements of a query and of a key of a head */
#define CM384_FLASH_VALUE 128u /* of a value, and of a row of the output */
#define CM384_FLASH_TILE 128u  /* queries at a time; keys that the cube core multiplies at a time */
#define CM384_FLASH_MOST_KEYS 512u

struct cm384_flash_attention {
  uint64_t q;         /* GM: tokens x heads x 192; a tile past the last token is read too */
  uint64_t k;         /* GM: tokens x heads x 192 */
  uint64_t v;         /* GM: tokens x heads x 128 */
  uint64_t out;       /* GM: tokens x heads x 128 */
  uint64_t workspace; /* GM: CM384_FLASH_WORKSPACE(block_tokens) bytes per block */
  uint32_t sequences, heads;
  uint32_t length;       /* tokens of each sequence, a multiple of 16 */
  uint32_t block_tokens; /* keys of a work item: 128, 256 or 512 */
  float scale;
  uint32_t cached; /* tokens of each sequence, a multiple of CM384_FLASH_TILE, fewer than `length` */
};

/* Scores, probabilities and products of an item: three of each. */
#define CM384_FLASH_TURNS 3u
#define CM384_FLASH_SCORES(keys) (CM384_FLASH_TILE * (keys)*4u)
#define CM384_FLASH_PROBABILITIES(keys) (CM384_FLASH_TILE * (keys)*2u)
#define CM384_FLASH_PRODUCTS (CM384_FLASH_TILE * CM384_FLASH_VALUE * 4u)
#define CM384_FLASH_WORKSPACE(keys) \
  (CM384_FLASH_TURNS * (CM384_FLASH_SCORES(keys) + CM384_FLASH_PROBABILITIES(keys) + CM384_FLASH_PRODUCTS))

#endif
