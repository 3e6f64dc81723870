/* Arguments and buffers of kernel `all_to_all`: what a die computes between the copies of the basic flow
 * (three all-to-alls by SDMA, [P] 4.2.1). Plain C, read by host and kernel. One launch is one step.
 *
 * A buffer that is exchanged has one region per rank, `region_rows` rows of bf16 [hidden] each, so that its
 * addresses need no agreement: in `send` and `returned` the region of the rank that owns the experts, in
 * `received` and `results` that of the rank that owns the tokens. In a region rows stand in the order local
 * expert, pair. A message of counts is int32 [local_experts], `message_bytes` long, one per rank.
 */
#ifndef CM384_ABI_ALL_TO_ALL_H
#define CM384_ABI_ALL_TO_ALL_H

#include "firmware/abi/dispatch.h"

enum cm384_all_to_all_step {
  CM384_STEP_PACK = 0,     /* count, and copy rows of x to `send` in the order of their way */
  CM384_STEP_QUANTISE = 1, /* rows of `received` to expand_x in the order local expert, rank */
  CM384_STEP_UNSORT = 2,   /* rows of expert_x, in that order, to `results` */
  CM384_STEP_SUM = 3       /* weighted sum of the rows of `returned` */
};

struct cm384_all_to_all {
  uint32_t step; /* cm384_all_to_all_step */
  uint32_t rank;
  uint32_t ranks;
  uint32_t batch;
  uint32_t top_k;
  uint32_t hidden; /* elements per row; multiple of 32 */
  uint32_t experts;
  uint32_t local_experts; /* most on any rank */
  uint32_t region_rows;
  uint32_t message_bytes;
  uint64_t x;            /* bf16 [batch][hidden] */
  uint64_t expert_ids;   /* int32 [batch][top_k] */
  uint64_t expert_cells; /* int32 [experts]: rank * local_experts + local of the copy that this rank uses */
  uint64_t cell_experts; /* int32 [ranks * local_experts]: the expert, or -1 where this rank sends nothing */
  uint64_t sent_counts;  /* messages to each rank */
  uint64_t received_counts; /* messages from each rank */
  uint64_t order;           /* int32 [batch][top_k]: row of `send`, and of `returned` */
  uint64_t send, received, results, returned;
  uint64_t expand_x;      /* int8 [rows][hidden] */
  uint64_t expand_scales; /* float [rows] */
  uint64_t expert_x;      /* bf16 [rows][hidden] */
  uint64_t scales;        /* float [batch][top_k] */
  uint64_t shared_x;      /* bf16 [batch][hidden], a shared expert's output made on this rank; 0: none */
  uint64_t out;           /* bf16 [batch][hidden] */
};

static inline uint64_t cm384_all_to_all_message_bytes(uint64_t local_experts) {
  return cm384_align(local_experts * 4, 64);
}

/* UBuffer layout. Vector instructions touch whole repeats: gaps of 256 B. */
struct cm384_all_to_all_layout {
  uint64_t scalars, ids, work0, work1, cells, counts, used, places, entries;
  uint64_t rows, row, product, sum, out; /* two rows of bf16; row, product and sum are float */
  uint64_t row_bytes, out_bytes;
  uint64_t end; /* must not exceed 192 KiB */
};
static inline struct cm384_all_to_all_layout cm384_all_to_all_ubuffer(const struct cm384_all_to_all* a,
                                                                      uint64_t blocks) {
  struct cm384_all_to_all_layout l;
  const uint64_t ids = cm384_align((uint64_t)a->batch * a->top_k * 4, 256) + 256;
  const uint64_t cells = (uint64_t)a->ranks * a->local_experts;
  const uint64_t tables = (a->experts > cells ? a->experts : cells) * 4;
  const uint64_t wide = cm384_align(4 * (uint64_t)a->hidden, 256);
  l.row_bytes = cm384_align(2 * (uint64_t)a->hidden, 256);
  l.out_bytes = cm384_align((uint64_t)a->hidden + 32, 256);
  l.scalars = 0;
  l.ids = l.scalars + 1024;
  l.work0 = l.ids + ids;
  l.work1 = l.work0 + ids;
  l.cells = l.work1 + ids;
  l.counts = l.cells + cm384_align(tables, 256) + 256;
  l.used = l.counts + cm384_align((uint64_t)a->ranks * a->message_bytes, 256) + 256;
  l.places = l.used + cm384_align((uint64_t)a->ranks * 4, 256);
  l.entries = l.places + ids;
  l.rows = l.entries + cm384_align((cells + blocks - 1) / blocks * 32, 256);
  l.row = l.rows + 2 * l.row_bytes;
  l.product = l.row + wide;
  l.sum = l.product + wide;
  l.out = l.sum + wide;
  l.end = l.out + (2 * l.out_bytes > l.row_bytes ? 2 * l.out_bytes : l.row_bytes);
  return l;
}
static inline int cm384_all_to_all_fits(const struct cm384_all_to_all* a, uint64_t blocks) {
  return cm384_all_to_all_ubuffer(a, blocks).end <= CM384_UBUFFER_BYTES;
}

#endif
