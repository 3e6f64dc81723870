/* Arguments of the kernels `collective` and, at the end, `collective_rounds` and `collective_paired`.
 * `collective`: all-gather, reduce-scatter and all-reduce among ranks, one launch of AIVs on each. Plain C.
 * All ranks have the same numbers of ranks, bytes and blocks.
 *
 *   all-gather      out, of every rank: the parts of rank 0, 1, ... Each block writes a slice to one peer
 *   reduce-scatter  out: the sum of what all ranks have for this one. Each block writes a slice to one peer's
 *                   window; then what has arrived is summed
 *   all-reduce      out: the sum over all ranks. As reduce-scatter, but every rank is sent all: for small
 *                   amounts
 *
 * Sums are BF16, added up in FP32 in order of ranks, rounded once. Ranks signal to each other by flags: words
 * of 32 B that hold the number of the launch.
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

/* Kernel `collective_rounds`: the same for any number of ranks. A block serves one peer after another where
 * there are more ranks than blocks; an all-reduce is a reduce-scatter, whose sums each block writes to all
 * ranks: for what is large.
 *
 * Blocks 0 .. slices x portions - 1 work. Of what goes to a peer a block takes slice `block / portions`, and
 * of what is summed portion `block % portions` of that slice.
 */
struct cm384_rounds_peer {
  uint64_t in, window, flags; /* as above; flags: cm384_rounds_flag_bytes, zero before the launch */
  uint64_t out;
};
struct cm384_collective_rounds {
  uint64_t peers;         /* GM: cm384_rounds_peer [ranks] */
  uint64_t bytes;         /* of a part; of all-reduce, of all. A multiple of 32 */
  uint64_t window_stride; /* from what comes of one rank to what comes of the next: the largest part */
  uint32_t ranks, rank;
  uint32_t kind; /* cm384_collective_kind */
  uint32_t reserved;
};
#define CM384_ROUNDS_RANKS 2048u /* at most: their table has 64 KiB of the UBuffer */

static inline uint32_t cm384_rounds_slices(uint32_t ranks, uint32_t blocks) {
  return blocks > ranks ? blocks / ranks : 1;
}
static inline uint32_t cm384_rounds_portions(uint32_t ranks, uint32_t blocks) {
  return blocks > ranks ? ranks : blocks;
}
/* ready[rank]; sent[slice][rank]; summed[block][rank]. */
static inline uint64_t cm384_rounds_flag_bytes(uint32_t ranks, uint32_t blocks) {
  return CM384_COLLECTIVE_FLAG * (uint64_t)ranks * (1 + cm384_rounds_slices(ranks, blocks) + blocks);
}

/* Kernel `collective_paired`: all-gather and reduce-scatter with the arguments of `collective_rounds`, where
 * the ranks 2k and 2k + 1 are the dies of a package. Slices and portions are of as many peers as there are
 * packages. Of a reduce-scatter the sums of a package are rounded to BF16 before they go on.
 */
static inline uint64_t cm384_paired_flag_bytes(uint32_t ranks, uint32_t blocks) {
  return CM384_COLLECTIVE_FLAG * (uint64_t)ranks * (1 + cm384_rounds_slices(ranks / 2, blocks));
}

#endif
