/* Arguments of kernel `flash_grouped`: attention of a prefill as flash_attention.h has it, over keys and
 * values that groups of query heads share, and with a window: token t of a sequence sees tokens up to t, of
 * these the last `window`. Kernel `flash_full` has the same arguments, but no window and no mask: each token
 * sees all of its sequence. Queries, keys and values of a head have `width` elements. Kernel `flash_sinks`:
 * flash_grouped where every head has a score of its own, which a softmax counts beside those of tokens,
 * without a value. Plain C.
 */
#ifndef CM384_ABI_FLASH_GROUPED_H
#define CM384_ABI_FLASH_GROUPED_H

#include "firmware/abi/flash_attention.h"

struct cm384_flash_grouped {
  uint64_t q;         /* GM: tokens x heads x width; a tile past the last token is read too */
  uint64_t k, v;      /* GM: tokens x kv_heads x width */
  uint64_t out;       /* GM: tokens x heads x width */
  uint64_t workspace; /* GM: CM384_FLASH_WORKSPACE(block_tokens) bytes per block, which is enough */
  uint32_t sequences, heads, kv_heads;
  uint32_t length;       /* tokens of each sequence, a multiple of 16 */
  uint32_t block_tokens; /* keys of a work item: 128, 256 or 512 */
  float scale;
  uint32_t cached; /* tokens of each sequence, a multiple of CM384_FLASH_TILE, fewer than `length` */
  uint32_t width;  /* 64 or 128 */
  uint32_t window; /* a multiple of CM384_FLASH_TILE; 0: all */
};

struct cm384_flash_sinks {
  struct cm384_flash_grouped plain;
  uint64_t sinks; /* GM: float, of each head once for each query of a tile */
};

#endif
