/* Arguments, windows and tables of kernel `dispatch` (FusedDispatch by AIV-Direct). Plain C, read by host and
 * kernel. Layout and protocol: ascend-facts B1 and B2 (MoeDistributeDispatchV2); constants are its own.
 *
 * A rank is a die. Each rank has two windows that its peers write:
 *   data window: two halves, used in turn by successive calls; in a half first the combine area, then the
 *     dispatch area of ranks x local_experts x max_tokens slots: slot (source, local expert, position).
 *   status window (1 MiB): two halves CM384_STATUS_HALF_BYTES apart; dispatch entries of 32 B at
 *     index local_expert * ranks + source: word 0 = 1.0f when valid, word 1 = count; the receiver zeroes
 * them. At CM384_STATUS_DISPATCH_STATE + block * 512 each block keeps the number (0, 1) of the half to use,
 * and at CM384_STATUS_COMBINE_STATE + block * 512 that of combine.
 * The host zeroes the status window once, and again when it changes the number of blocks.
 */
#ifndef CM384_ABI_DISPATCH_H
#define CM384_ABI_DISPATCH_H

#include <stdint.h>

#include "firmware/abi/memory_map.h"

#define CM384_STATUS_BYTES (1024u * 1024u)
#define CM384_STATUS_HALF_BYTES (500u * 1024u)
#define CM384_STATUS_COMBINE_OFFSET (64u * 1024u) /* in a half; dispatch entries stand before it */
#define CM384_STATUS_DISPATCH_STATE (950u * 1024u)
#define CM384_STATUS_BLOCKS 64u /* of a launch at most; a state word each */
#define CM384_STATUS_COMBINE_STATE (CM384_STATUS_DISPATCH_STATE + CM384_STATUS_BLOCKS * 512u)
#define CM384_STATUS_ENTRY_BYTES 32u
#define CM384_STATUS_MAX_ENTRIES (CM384_STATUS_COMBINE_OFFSET / CM384_STATUS_ENTRY_BYTES)
/* Of combine, in a half: the second half ends where the state words begin. */
#define CM384_STATUS_COMBINE_ENTRIES                                                       \
  ((CM384_STATUS_DISPATCH_STATE - CM384_STATUS_HALF_BYTES - CM384_STATUS_COMBINE_OFFSET) / \
   CM384_STATUS_ENTRY_BYTES)

/* Windows of one rank, as GM addresses. */
struct cm384_peer {
  uint64_t window;
  uint64_t status;
};

/* Copies of a logical expert: physical slots first .. first + copies - 1. A source rank uses copy
 * rank % copies. */
struct cm384_expert_copies {
  uint32_t first;
  uint32_t copies;
};

/* A physical expert slot: where it lives and whose copy it is. */
struct cm384_expert_slot {
  uint32_t rank;
  uint32_t local;  /* index among the rank's experts, 0 .. local_experts - 1 */
  uint32_t expert; /* logical; shared experts follow the routed ones */
  uint32_t copy;   /* 0 .. copies - 1 */
};

struct cm384_dispatch {
  uint32_t rank;
  uint32_t ranks;
  uint32_t batch;         /* tokens of this rank */
  uint32_t top_k;         /* routed experts per token */
  uint32_t hidden;        /* elements per row; multiple of 32 */
  uint32_t experts;       /* logical routed experts */
  uint32_t shared;        /* shared experts every token also goes to (0 or more) */
  uint32_t slots;         /* physical expert slots of the machine, shared ones inside */
  uint32_t local_experts; /* most slots on any rank: the stride of the windows */
  uint32_t own_experts;   /* slots on this rank */
  uint32_t max_tokens;    /* positions per (source, slot) pair; at least every rank's batch */
  uint32_t reserved;
  uint64_t x;             /* bf16 [batch][hidden] */
  uint64_t expert_ids;    /* int32 [batch][top_k], distinct in a row, 0 .. experts - 1 */
  uint64_t expert_copies; /* cm384_expert_copies [experts + shared] */
  uint64_t expert_slots;  /* cm384_expert_slot [slots] */
  uint64_t peers;         /* cm384_peer [ranks], this rank's own inside */
  uint64_t window_half_bytes;
  uint64_t window_dispatch_offset; /* of the dispatch area in a half (after the combine area) */
  uint64_t workspace;              /* cm384_dispatch_workspace_bytes */
  /* Outputs; rows in the order local expert, source rank, position. */
  uint64_t expand_x;          /* int8 [rows][hidden] */
  uint64_t expand_scales;     /* float [rows]: x is about expand_x * scale */
  uint64_t expand_triples;    /* int32 [rows][3]: source rank, token, k (shared: k = top_k + which) */
  uint64_t send_counts;       /* int32 [own_experts][ranks]: rows up to and with this entry */
  uint64_t expert_token_nums; /* int64 [own_experts] */
};

enum cm384_dispatch_phase {
  CM384_DISPATCH_INIT = 0,
  CM384_DISPATCH_SEND = 1,
  CM384_DISPATCH_STATUS = 2,
  CM384_DISPATCH_WAIT = 3,
  CM384_DISPATCH_COPY = 4
};

static inline uint64_t cm384_align(uint64_t bytes, uint64_t unit) {
  return (bytes + unit - 1) / unit * unit;
}
/* A slot: the int8 row, at align32(hidden) the float scale, 32 B on the triple. 7212 of 7680 B at 7168. */
static inline uint64_t cm384_dispatch_scale_offset(uint64_t hidden) {
  return cm384_align(hidden, 32);
}
static inline uint64_t cm384_dispatch_triple_offset(uint64_t hidden) {
  return cm384_align(hidden, 32) + 32;
}
static inline uint64_t cm384_dispatch_transfer_bytes(uint64_t hidden) {
  return cm384_align(hidden, 32) + 32 + 12;
}
static inline uint64_t cm384_dispatch_slot_bytes(uint64_t hidden) {
  return cm384_align(cm384_dispatch_transfer_bytes(hidden), 512);
}
/* Areas of a half of the data window. */
static inline uint64_t cm384_combine_area_bytes(uint64_t max_tokens, uint64_t top_k_and_shared,
                                                uint64_t hidden) {
  return max_tokens * top_k_and_shared * cm384_align(2 * hidden, 512);
}
static inline uint64_t cm384_dispatch_area_bytes(uint64_t ranks, uint64_t local_experts, uint64_t max_tokens,
                                                 uint64_t hidden) {
  return ranks * local_experts * max_tokens * cm384_dispatch_slot_bytes(hidden);
}
/* Of slot (source, local, position) in the dispatch area. */
static inline uint64_t cm384_dispatch_slot_offset(uint64_t source, uint64_t local, uint64_t position,
                                                  uint64_t local_experts, uint64_t max_tokens,
                                                  uint64_t hidden) {
  return ((source * local_experts + local) * max_tokens + position) * cm384_dispatch_slot_bytes(hidden);
}
/* Workspace: blocks x blocks sums 512 B apart ([reader][writer]), then the counts of all entries (int32). */
static inline uint64_t cm384_dispatch_workspace_counts(uint64_t blocks) {
  return blocks * blocks * 512;
}
static inline uint64_t cm384_dispatch_workspace_bytes(uint64_t blocks, uint64_t own_experts, uint64_t ranks) {
  return cm384_align(cm384_dispatch_workspace_counts(blocks) + own_experts * ranks * 4, 512);
}
/* Most rows a rank can receive. */
static inline uint64_t cm384_dispatch_max_rows(uint64_t ranks, uint64_t own_experts, uint64_t max_tokens,
                                               uint64_t top_k_and_shared) {
  return ranks * max_tokens * (own_experts < top_k_and_shared ? own_experts : top_k_and_shared);
}

/* UBuffer layout of the kernel for a launch of `blocks`. Offsets in bytes. The buffers of the send phase and
 * those of the later phases share the space from `phase` on. */
struct cm384_dispatch_layout {
  uint64_t ids, work0, work1, scalars, copies, slots, peers, phase;
  uint64_t x_in, x_out, row, absolute; /* send: two x_in, two x_out */
  uint64_t status_out;                 /* status: this block's entries */
  uint64_t entries, zero, sums, counts, token_counts, token_sums, token_nums, rows_out; /* wait and copy */
  uint64_t x_in_bytes, slot_bytes, chunk_entries, count_row_bytes;
  uint64_t end; /* must not exceed 192 KiB: cm384_dispatch_fits */
};
#define CM384_DISPATCH_SCALARS_BYTES 2048u

static inline struct cm384_dispatch_layout cm384_dispatch_ubuffer(const struct cm384_dispatch* a,
                                                                  uint64_t blocks) {
  struct cm384_dispatch_layout l;
  const uint64_t ids = cm384_align((uint64_t)a->batch * a->top_k * 4, 256);
  const uint64_t share = ((uint64_t)a->own_experts * a->ranks + blocks - 1) / blocks;
  const uint64_t slot_share = (a->slots + blocks - 1) / blocks;
  uint64_t send;
  /* A reduction covers at most 255 repeats. Vector instructions touch whole repeats, masked off or not: the
     gaps of 256 B keep them off what the scalar unit writes. */
  l.chunk_entries = share < 8 ? 8 : share > 255 ? 255 : share;
  l.x_in_bytes = cm384_align(2 * (uint64_t)a->hidden, 256);
  l.slot_bytes = cm384_align(cm384_dispatch_transfer_bytes(a->hidden), 32);
  l.count_row_bytes = cm384_align((uint64_t)a->ranks * 4, 32);
  l.ids = 0;
  l.work0 = l.ids + ids;
  l.work1 = l.work0 + ids;
  l.scalars = l.work1 + ids;
  l.copies = l.scalars + CM384_DISPATCH_SCALARS_BYTES;
  l.slots =
      l.copies + cm384_align(((uint64_t)a->experts + a->shared) * sizeof(struct cm384_expert_copies), 32);
  l.peers = l.slots + cm384_align(a->slots * sizeof(struct cm384_expert_slot), 32);
  l.phase = cm384_align(l.peers + a->ranks * sizeof(struct cm384_peer), 256);
  l.x_in = l.phase;
  l.x_out = l.x_in + 2 * l.x_in_bytes;
  l.row = cm384_align(l.x_out + 2 * l.slot_bytes, 256);
  l.absolute = l.row + cm384_align(4 * (uint64_t)a->hidden, 256);
  send = l.absolute + cm384_align(4 * (uint64_t)a->hidden, 256);
  l.status_out = l.phase;
  l.entries = l.status_out + cm384_align(slot_share * CM384_STATUS_ENTRY_BYTES, 256);
  l.zero = l.entries + l.chunk_entries * CM384_STATUS_ENTRY_BYTES;
  l.sums = l.zero + l.chunk_entries * CM384_STATUS_ENTRY_BYTES;
  l.counts = l.sums + cm384_align(blocks * 32, 256) + 256;
  l.token_counts = l.counts + cm384_align(share * 4, 32);
  l.token_sums = l.token_counts + a->own_experts * l.count_row_bytes + 256;
  l.token_nums = l.token_sums + cm384_align((uint64_t)a->own_experts * 4, 32) + 256;
  l.rows_out = l.entries + cm384_align(l.token_nums + (uint64_t)a->own_experts * 8 - l.entries, 256);
  l.end = l.rows_out + 2 * l.slot_bytes;
  if (l.end < send) l.end = send;
  return l;
}
static inline int cm384_dispatch_fits(const struct cm384_dispatch* a, uint64_t blocks) {
  return cm384_dispatch_ubuffer(a, blocks).end <= CM384_UBUFFER_BYTES;
}

#endif
