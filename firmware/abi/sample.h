/* Arguments of the kernel `sample`, which chooses a word for each row of a head. Plain C. Blocks are AIVs.
 *
 * Of a row's shares the top_k largest are kept, of equal ones the first; of these the shortest
 * beginning, largest first, whose sum reaches top_p, or all. The row's draw times the sum of what is kept
 * falls on one of them: out is its column, and its share of that sum.
 *
 * Several blocks may work on one row, the same number for every row: each leaves the largest of its part in
 * `lists`, and the row's first block merges them.
 */
#ifndef CM384_ABI_SAMPLE_H
#define CM384_ABI_SAMPLE_H

#include <stdint.h>

#define CM384_SAMPLE_TOP_K 256u  /* at most */
#define CM384_SAMPLE_CHUNK 4096u /* elements in the UBuffer at a time, at most */
#define CM384_SAMPLE_ROWS 1024u  /* of a block, at most */

struct cm384_sample {
  uint64_t shares; /* GM: float, rows x width; no payload, since the course depends on them */
  uint64_t draws;  /* GM: float per row, from 0 to below 1 */
  uint64_t
      lists; /* GM: per row 8 B x top_k, in blocks of 32 B, of each of its blocks where there are several */
  uint64_t words;  /* GM: int32_t per row */
  uint64_t chosen; /* GM: float per row */
  uint32_t rows;
  uint32_t width;
  uint32_t chunk; /* a multiple of 64 */
  uint32_t top_k; /* a block's part of a row has as many elements, where a row has several */
  float top_p;
};

#endif
