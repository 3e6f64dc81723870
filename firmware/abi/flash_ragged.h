/* Arguments of kernel `flash_ragged`: causal attention of a prefill as flash_attention.h has it, over prompts
 * of any lengths, which stand one after another. Each query head has keys and values of its own (MLA), or
 * groups of them share some. Kernel `flash_ragged_sinks`: of these with sinks, as flash_grouped.h has them.
 * Plain C.
 *
 * A task is a tile of queries and a head; the host puts the tiles with the most keys first.
 */
#ifndef CM384_ABI_FLASH_RAGGED_H
#define CM384_ABI_FLASH_RAGGED_H

#include "firmware/abi/flash_attention.h"

struct cm384_flash_tile {
  uint32_t row;    /* of the first token of its prompt, among the tokens of all */
  uint32_t length; /* tokens of its prompt, a multiple of 16 */
  uint32_t tile;   /* of its prompt's queries; it sees keys up to its own tokens */
};

struct cm384_flash_ragged {
  uint64_t q;         /* GM: tokens x heads x key; a tile past the last token is read too */
  uint64_t k;         /* GM: tokens x kv_heads x key */
  uint64_t v;         /* GM: tokens x kv_heads x value */
  uint64_t out;       /* GM: tokens x heads x value */
  uint64_t workspace; /* GM: CM384_FLASH_WORKSPACE(block_tokens) bytes per block, which is enough */
  uint64_t tiles;     /* GM: cm384_flash_tile each */
  uint32_t tile_count;
  uint32_t heads, kv_heads;
  uint32_t key;          /* elements: 64 or 128, a value has as many; or 192, a value has 128 */
  uint32_t block_tokens; /* keys of a work item: 128, 256 or 512 */
  float scale;
};

struct cm384_flash_ragged_sinks {
  struct cm384_flash_ragged plain;
  uint64_t sinks; /* GM: float, of each head once for each query of a tile */
};

#endif
