/* Arguments and results of kernel `stream`: every core reads rows of a matrix in GM, a vector core to its
 * UBuffer, a cube core to L1 (ND2NZ). Plain C. Models the data-copy measurements of ascend-facts A6.
 */
#ifndef CM384_ABI_STREAM_H
#define CM384_ABI_STREAM_H

#include <stdint.h>

/* The matrix has `rows` rows of `row_bytes` bytes, `pitch` bytes from row to row. It is cut into `parts`
 * ranges of rows, each read `passes` times before the next. Block b of n takes a contiguous share of a
 * range's rows (the first rows % n blocks one group of block_count rows more where groups do not divide). One
 * MTE2 instruction moves block_count rows of block_bytes; the last of a row or share may be smaller.
 * Instructions fill a buffer in turn; with wait_for_reuse a buffer is used again once all of it has arrived.
 */
struct cm384_stream {
  uint64_t source;       /* GM address of row 0 */
  uint64_t rows;         /* 12288 in A6 */
  uint64_t row_bytes;    /* 24576 (half); 24574 for N = 12287 */
  uint64_t pitch;        /* bytes, at least row_bytes */
  uint32_t block_count;  /* rows per instruction: 1, 64 */
  uint32_t block_bytes;  /* bytes of a row per instruction: 128, 2048 */
  uint32_t buffer_bytes; /* at least block_count * align32(block_bytes); buffers * buffer_bytes <= 184 KiB */
  uint32_t buffers;      /* 1..8 */
  uint32_t passes;       /* how often a range is read */
  uint32_t parts;        /* divides rows */
  uint32_t shared;       /* 0: shares; 1: every block reads all rows in the same order; 2: block b begins at
                            the b-th instruction of that order and ends before it */
  uint32_t wait_for_reuse; /* 0: nothing consumes the data, so later instructions may overwrite it at once */
  uint64_t results;        /* own die: one cm384_stream_result per block, 512 B apart */
};

#define CM384_STREAM_SAME 1
#define CM384_STREAM_ROTATED 2
#define CM384_STREAM_BUFFER_BYTES (184u * 1024u)
#define CM384_STREAM_RESULT_STRIDE 512u

struct cm384_stream_result {
  uint64_t start_cycle; /* core cycles since the start of the run */
  uint64_t end_cycle;
  uint64_t bytes;        /* read by this block */
  uint64_t instructions; /* MTE2 instructions of this block */
};

#endif
