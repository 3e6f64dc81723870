/* Arguments of kernel `collective`: all-gather, reduce-scatter and all-reduce among ranks, one launch of AIVs
 * on each. Plain C. All ranks have the same numbers of ranks, bytes and blocks.
 *
 *   all-gather      out, of every rank: the parts of rank 0, 1, ... Each block writes a slice to one peer
 *   reduce-scatter  out: the sum of what all ranks have for this one. Each block writes a slice to one peer's
 *                   window; then what has arrived is summed
 *   all-reduce      out: the sum over all ranks. As reduce-scatter, but every rank is sent all: for what is
 * small
 *
 * Sums are BF16, added up in FP32 in order of ranks, rounded once. Ranks tell each other by flags: words of
 * 32 B that hold the number of the launch.
 */
#ifndef CM384_ABI_COLLECTIVE_H
#define CM384_ABI_COLLECTIVE_H

#include <stdint.h>

enum cm384_collective_kind { CM384_ALL_GATHER = 0, CM384_REDUCE_SCATTER = 1, CM384_ALL_REDUCE = 2 };

#define CM384_COLLECTIVE_RANKS 48u /* at most */
#define CM384_COLLECTIVE_FLAG 32u  /* bytes */
/* Flags of a rank: ready[rank], then done[slice][rank], which are the arrivals of reduce-scatter. */
#define CM384_COLLECTIVE_FLAGS (CM384_COLLECTIVE_FLAG * (CM384_COLLECTIVE_RANKS + 64u * 2u))

/* Addresses of a rank, as others see them. */
struct cm384_collective_peer {
  uint64_t in;     /* GM: part (all-gather), parts of rank 0, 1, ... (reduce-scatter), all (all-reduce) */
  uint64_t window; /* GM: what comes from rank 0, 1, ...; of all-gather it is `out` */
  uint64_t flags;  /* GM: CM384_COLLECTIVE_FLAGS bytes, zero before the first launch */
};

struct cm384_collective {
  uint64_t out;   /* GM */
  uint64_t bytes; /* of a part; of all-reduce, of all. A multiple of 32 */
  uint32_t ranks, rank;
  uint32_t kind;                                              /* cm384_collective_kind */
  uint32_t launch;                                            /* number of the launch: 1, 2, ... */
  struct cm384_collective_peer peers[CM384_COLLECTIVE_RANKS]; /* the first `ranks` */
};

#endif
