/* Windows and UBuffer of kernel `dispatch_full_mesh`: dispatch with the flags inside the rows' 512 B blocks
 * (ascend-facts B3). Plain C, read by host and kernel. Arguments are those of kernel `dispatch`.
 *
 * A slot of the dispatch area is a packet: blocks of 512 B, each 480 B of payload and 32 B of flag (1.0f in
 * its words). A write of one block is atomic: who sees the flag sees the payload. The payload: the int8 row,
 * at align32(hidden) the float scale; the triple begins the last block. The receiver zeroes the flags.
 *
 * Workspace: for each block of the launch a copy of the cumulative counts of all entries, and 512 B with a
 * flag (1.0f) that says that the copy is there.
 */
#ifndef CM384_ABI_DISPATCH_FULL_MESH_H
#define CM384_ABI_DISPATCH_FULL_MESH_H

#include "firmware/abi/dispatch.h"

#define CM384_PACKET_BLOCK 512u
#define CM384_PACKET_PAYLOAD 480u
#define CM384_PACKET_BATCH 4u /* rows that a core of the receiver waits for and copies at once */

enum cm384_dispatch_full_mesh_phase {
  CM384_FULL_MESH_INIT = 0,
  CM384_FULL_MESH_SEND = 1,   /* rows, or counts on the trailing cores */
  CM384_FULL_MESH_COUNTS = 2, /* until the cumulative counts are there */
  CM384_FULL_MESH_COPY = 3    /* wait for rows and copy them */
};

/* Blocks with row and scale. */
static inline uint64_t cm384_packet_row_blocks(uint64_t hidden) {
  return (cm384_align(hidden, 32) + 32 + CM384_PACKET_PAYLOAD - 1) / CM384_PACKET_PAYLOAD;
}
static inline uint64_t cm384_packet_blocks(uint64_t hidden) {
  return cm384_packet_row_blocks(hidden) + 1;
}
static inline uint64_t cm384_packet_bytes(uint64_t hidden) {
  return cm384_packet_blocks(hidden) * CM384_PACKET_BLOCK;
}
/* The last blocks that send counts: a thirty-second of the experts, at most half of them. */
static inline uint64_t cm384_full_mesh_count_blocks(uint64_t slots, uint64_t blocks) {
  uint64_t n = slots / 32;
  if (n > blocks / 2) n = blocks / 2;
  return n < 1 ? 1 : n;
}
static inline uint64_t cm384_full_mesh_counts_bytes(uint64_t own_experts, uint64_t ranks) {
  return cm384_align(own_experts * ranks * 4, 512);
}
static inline uint64_t cm384_full_mesh_workspace_bytes(uint64_t blocks, uint64_t own_experts,
                                                       uint64_t ranks) {
  return blocks * (cm384_full_mesh_counts_bytes(own_experts, ranks) + 512);
}

/* UBuffer layout for a launch of `blocks`; what is sent and what is received share the space from `phase`. */
struct cm384_full_mesh_layout {
  uint64_t ids, mask, scalars, copies, slots, peers, phase;
  uint64_t x_in, stage, triple, x_out, row, absolute; /* two x_in, two x_out */
  uint64_t status_out;                                /* where counts are sent */
  uint64_t counts, entries, zero, token_nums, flags, rows;
  uint64_t x_in_bytes, packet_bytes, packet_payload;
  uint64_t chunk_entries;
  uint64_t end; /* must not exceed 192 KiB */
};

static inline struct cm384_full_mesh_layout cm384_full_mesh_ubuffer(const struct cm384_dispatch* a,
                                                                    uint64_t blocks) {
  struct cm384_full_mesh_layout l;
  const uint64_t ids = cm384_align((uint64_t)a->batch * a->top_k * 4, 256);
  const uint64_t entries = (uint64_t)a->own_experts * a->ranks;
  const uint64_t counters = cm384_full_mesh_count_blocks(a->slots, blocks);
  uint64_t send;
  l.packet_bytes = cm384_packet_bytes(a->hidden);
  l.packet_payload = cm384_packet_blocks(a->hidden) * CM384_PACKET_PAYLOAD;
  l.x_in_bytes = cm384_align(2 * (uint64_t)a->hidden, 256);
  l.chunk_entries = entries > 255 ? 255 : entries < 8 ? 8 : entries;
  l.ids = 0;
  l.mask = l.ids + ids;
  l.scalars = l.mask + cm384_align(ids / 32, 256);
  l.copies = l.scalars + CM384_DISPATCH_SCALARS_BYTES;
  l.slots =
      l.copies + cm384_align(((uint64_t)a->experts + a->shared) * sizeof(struct cm384_expert_copies), 32);
  l.peers = l.slots + cm384_align(a->slots * sizeof(struct cm384_expert_slot), 32);
  l.phase = cm384_align(l.peers + a->ranks * sizeof(struct cm384_peer), 256);
  l.x_in = l.phase;
  l.stage = l.x_in + 2 * l.x_in_bytes;
  l.triple = l.stage + cm384_align(l.packet_payload, 256);
  l.x_out = l.triple + 256;
  l.row = l.x_out + 2 * l.packet_bytes;
  l.absolute = l.row + cm384_align(4 * (uint64_t)a->hidden, 256);
  send = l.absolute + cm384_align(4 * (uint64_t)a->hidden, 256);
  l.status_out = l.phase;
  l.counts = l.phase + cm384_align((a->slots + counters - 1) / counters * CM384_STATUS_ENTRY_BYTES, 256);
  l.entries = l.counts + cm384_align(entries * 4, 256) + 256;
  l.zero = l.entries + cm384_align(l.chunk_entries * CM384_STATUS_ENTRY_BYTES, 256);
  l.token_nums = l.zero + cm384_align(l.chunk_entries * CM384_STATUS_ENTRY_BYTES, 256);
  l.flags = l.token_nums + cm384_align((uint64_t)a->own_experts * 8, 256);
  /* A reduction touches whole repeats: the gap keeps it off the rows. */
  l.rows = l.flags + cm384_align(CM384_PACKET_BATCH * cm384_packet_blocks(a->hidden) * 32, 256) + 256;
  l.end = l.rows + 2 * CM384_PACKET_BATCH * l.packet_payload;
  if (l.end < send) l.end = send;
  return l;
}
static inline int cm384_full_mesh_fits(const struct cm384_dispatch* a, uint64_t blocks) {
  return cm384_full_mesh_ubuffer(a, blocks).end <= CM384_UBUFFER_BYTES;
}

#endif
