/* Arguments, windows and UBuffer of kernel `combine` (FusedCombine by AIV-Direct). Plain C, read by host and
 * kernel. Layout and protocol: ascend-facts B1 and B4 (MoeDistributeCombineV2).
 *
 * Combine uses the windows of dispatch (abi/dispatch.h): of the half that its own state word names, the
 * combine area, slot token * (top_k + shared) + k of align512(2 * hidden) bytes, and in the status window at
 * CM384_STATUS_COMBINE_OFFSET either one entry of 32 B per slot, all words 1.0f when the row is there
 * (completion by flag), or one entry per token whose word 0 counts the rows that are there (completion by
 * atomic add). The receiver zeroes what it has consumed. Each block keeps the number of the half to use at
 * CM384_STATUS_COMBINE_STATE + block * 512.
 */
#ifndef CM384_ABI_COMBINE_H
#define CM384_ABI_COMBINE_H

#include "firmware/abi/dispatch.h"

enum cm384_combine_completion {
  CM384_COMBINE_FLAG = 0,  /* a 32 B store per row, ascend-facts B4 */
  CM384_COMBINE_ATOMIC = 1 /* a remote atomic add per row, [P] 4.2.1 */
};

struct cm384_combine {
  uint32_t rank;
  uint32_t ranks;
  uint32_t batch;       /* tokens of this rank */
  uint32_t top_k;       /* routed experts per token */
  uint32_t hidden;      /* elements per row; multiple of 32 */
  uint32_t experts;     /* logical routed experts */
  uint32_t shared;      /* shared experts that every token went to by dispatch (0 or more), weight 1 */
  uint32_t own_experts; /* expert slots on this rank */
  uint32_t completion;  /* cm384_combine_completion; the same on all ranks */
  uint32_t reserved;
  /* What dispatch left: rows in the order it delivered them. */
  uint64_t triples;     /* int32 [rows][3]: source rank, token, k */
  uint64_t send_counts; /* int32 [own_experts][ranks]; the last one is the number of rows */
  uint64_t expert_x;    /* bf16 [rows][hidden]: the experts' outputs */
  uint64_t expert_ids;  /* int32 [batch][top_k], as given to dispatch */
  uint64_t scales;      /* float [batch][top_k]: weights of the experts */
  uint64_t shared_x;    /* bf16 [batch][hidden], a shared expert's output made on this rank; 0: none */
  uint64_t peers;       /* cm384_peer [ranks], this rank's own inside */
  uint64_t window_half_bytes;
  uint64_t x; /* output, bf16 [batch][hidden] */
};

enum cm384_combine_phase {
  CM384_COMBINE_INIT = 0,
  CM384_COMBINE_SEND = 1,
  CM384_COMBINE_WAIT = 2, /* for the rows of a token */
  CM384_COMBINE_SUM = 3
};

static inline uint64_t cm384_combine_slot_bytes(uint64_t hidden) {
  return cm384_align(2 * hidden, 512);
}

/* UBuffer layout of the kernel for a launch of `blocks`. Offsets in bytes. Vector instructions touch whole
 * repeats of 256 B: gaps keep them off what other pipes use. */
#define CM384_COMBINE_TRIPLES 1024u /* rows whose triples are loaded at once */
#define CM384_COMBINE_SCALARS_BYTES 1024u
struct cm384_combine_layout {
  uint64_t scalars, status, zero, peers, triples, scales;
  uint64_t rows, row, product, sum, out; /* two rows; row, product and sum are float */
  uint64_t row_bytes, status_bytes;
  uint64_t end; /* must not exceed 192 KiB: cm384_combine_fits */
};

static inline struct cm384_combine_layout cm384_combine_ubuffer(const struct cm384_combine* a,
                                                                uint64_t blocks) {
  struct cm384_combine_layout l;
  const uint64_t tokens = (a->batch + blocks - 1) / blocks;
  const uint64_t wide = cm384_align(4 * (uint64_t)a->hidden, 256);
  l.row_bytes = cm384_align(2 * (uint64_t)a->hidden, 256);
  l.status_bytes = (uint64_t)(a->top_k + a->shared) * CM384_STATUS_ENTRY_BYTES;
  l.scalars = 0;
  l.status = l.scalars + CM384_COMBINE_SCALARS_BYTES;
  l.zero = l.status + cm384_align(l.status_bytes, 256);
  l.peers = l.zero + cm384_align(l.status_bytes, 256);
  l.triples = l.peers + cm384_align(a->ranks * sizeof(struct cm384_peer), 256);
  l.scales = l.triples + CM384_COMBINE_TRIPLES * 12u;
  l.rows = l.scales + cm384_align(tokens * a->top_k * 4, 256);
  l.row = l.rows + 2 * l.row_bytes;
  l.product = l.row + wide;
  l.sum = l.product + wide;
  l.out = l.sum + wide;
  l.end = l.out + l.row_bytes;
  return l;
}
static inline int cm384_combine_fits(const struct cm384_combine* a, uint64_t blocks) {
  return blocks <= CM384_STATUS_BLOCKS &&
         (uint64_t)a->batch * (a->top_k + a->shared) <= CM384_STATUS_COMBINE_ENTRIES &&
         cm384_combine_ubuffer(a, blocks).end <= CM384_UBUFFER_BYTES;
}

#endif
