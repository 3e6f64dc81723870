/* Arguments and results of kernel `sdma`: a vector core submits copies to the SDMA engine itself. Plain C.
 *
 * One block. It cuts `bytes` into entries of `entry_bytes`, rings once, posts a flag behind them and polls
 * it, as public software does (ascend-facts C); this `warmup` times and once more, timed.
 */
#ifndef CM384_ABI_SDMA_H
#define CM384_ABI_SDMA_H

#include <stdint.h>

struct cm384_sdma_run {
  uint64_t queue; /* struct cm384_queue of this core */
  uint64_t source;
  uint64_t destination; /* not used by a prefetch */
  uint64_t bytes;
  uint64_t source_stride; /* from the source of one round to that of the next */
  uint32_t entry_bytes;   /* public software: 1 MiB */
  uint32_t operation;     /* enum cm384_sdma_operation */
  uint32_t warmup;
  uint32_t completion; /* 1: wait for the last entry's completion instead of a flag */
  uint64_t arena;      /* 64 B of the own die: what flags are copied from */
  uint64_t flag;       /* 32 B aligned, of the own die */
  uint64_t result;     /* struct cm384_sdma_result, 64 B aligned, of the own die */
};

struct cm384_sdma_result {
  uint64_t start_cycle; /* before the first entry was built */
  uint64_t rung_cycle;  /* the doorbell was written */
  uint64_t end_cycle;   /* flag or completion seen */
  uint64_t status;      /* of the completion that was seen; 0 for a flag */
  uint64_t fault;
};

#endif
