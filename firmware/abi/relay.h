/* Dispatch and combine over several supernodes by relays (kernels `dispatch_relay`, `combine_relay`). Plain
 * C, read by host and kernel.
 *
 * Ranks are numbered through, as many in each supernode; the relay of a rank in another supernode is the rank
 * of the same number there. Dispatch sends a token's row once to each other supernode that has experts for
 * it: to the relay's relay window, by the RDMA plane; the relay copies it on to the windows of these experts'
 * ranks, by the Unified Bus of its supernode, and sends them the counts. Combine goes the way back: experts
 * bring their outputs to the relay, which adds them up by weight, rounds the sum to BF16 and sends it to the
 * token's rank.
 *
 * A relay window has two halves, used in turn as those of the data window. What a half holds, by supernode of
 * the sender: see cm384_relay_window. Flags are entries of 32 B, 1.0f where set; the receiver clears them.
 */
#ifndef CM384_ABI_RELAY_H
#define CM384_ABI_RELAY_H

#include "firmware/abi/combine.h"
#include "firmware/abi/dispatch.h"

#define CM384_RELAY_SUPERNODES 32u /* at most */

/* The rank of this rank's number in a supernode. */
struct cm384_relay_peer {
  uint64_t window; /* its relay window as GM address */
  uint32_t rank;
  uint32_t batch; /* its tokens */
};

struct cm384_relay {
  uint32_t supernodes;
  uint32_t each;       /* ranks of a supernode */
  uint32_t own;        /* this rank's supernode */
  uint32_t max_tokens; /* at least every rank's batch */
  uint64_t across;     /* cm384_relay_peer [supernodes], this rank itself inside */
  uint64_t inside;     /* uint64_t [each]: relay windows of the ranks of this supernode */
};

struct cm384_dispatch_relay {
  struct cm384_dispatch dispatch;
  struct cm384_relay relay;
};
struct cm384_combine_relay {
  struct cm384_combine combine;
  struct cm384_relay relay;
  uint32_t slots; /* of the tables below */
  uint32_t reserved;
  uint64_t expert_copies; /* as given to dispatch */
  uint64_t expert_slots;
};

enum cm384_dispatch_relay_phase {
  CM384_DISPATCH_RELAY_INIT = 0,
  CM384_DISPATCH_RELAY_SEND = 1,
  CM384_DISPATCH_RELAY_FORWARD = 2,
  CM384_DISPATCH_RELAY_STATUS = 3,
  CM384_DISPATCH_RELAY_WAIT = 4,
  CM384_DISPATCH_RELAY_COPY = 5
};
enum cm384_combine_relay_phase {
  CM384_COMBINE_RELAY_INIT = 0,
  CM384_COMBINE_RELAY_SEND = 1,
  CM384_COMBINE_RELAY_RELAY = 2,
  CM384_COMBINE_RELAY_WAIT = 3,
  CM384_COMBINE_RELAY_SUM = 4
};

/* A row on its way to a relay: int8 elements and the block with the scale. */
static inline uint64_t cm384_relay_row_bytes(uint64_t hidden) {
  return cm384_dispatch_triple_offset(hidden);
}

/* Offsets in a half; the first index is the sender's supernode. */
struct cm384_relay_window {
  uint64_t id_flags;     /* [supernodes][blocks]: ids are there, an entry for each block that reads them */
  uint64_t row_flags;    /* [supernodes][blocks]: rows of a block's share of the tokens are there */
  uint64_t table_flags;  /* [supernodes][blocks]: ids and weights of combine are there */
  uint64_t output_flags; /* [supernodes][tokens][top_k]: an expert's output is there */
  uint64_t ids;          /* [supernodes] lists: expert ids, for dispatch */
  uint64_t tables;       /* [supernodes] two lists: expert ids, weights, for combine */
  uint64_t rows;         /* [supernodes][tokens] slots of dispatch */
  uint64_t outputs;      /* [supernodes][tokens][top_k] slots of combine */
  uint64_t list_bytes;   /* of a list: 4 B per token and expert */
  uint64_t bytes;        /* of a half */
};

static inline struct cm384_relay_window cm384_relay_window_of(const struct cm384_relay* r, uint64_t top_k,
                                                              uint64_t hidden) {
  struct cm384_relay_window w;
  const uint64_t flags = (uint64_t)r->supernodes * CM384_STATUS_BLOCKS * CM384_STATUS_ENTRY_BYTES;
  const uint64_t tokens = (uint64_t)r->supernodes * r->max_tokens;
  w.list_bytes = cm384_align((uint64_t)r->max_tokens * top_k * 4, 512);
  w.id_flags = 0;
  w.row_flags = w.id_flags + flags;
  w.table_flags = w.row_flags + flags;
  w.output_flags = w.table_flags + flags;
  w.ids = w.output_flags + cm384_align(tokens * top_k * CM384_STATUS_ENTRY_BYTES, 512);
  w.tables = w.ids + r->supernodes * w.list_bytes;
  w.rows = w.tables + 2 * r->supernodes * w.list_bytes;
  w.outputs = w.rows + tokens * cm384_dispatch_slot_bytes(hidden);
  w.bytes = w.outputs + tokens * top_k * cm384_combine_slot_bytes(hidden);
  return w;
}

/* UBuffer of `dispatch_relay` beside that of `dispatch`, for a launch of `blocks`. */
struct cm384_dispatch_relay_layout {
  uint64_t relays, ids, work0, work1, status, zero, ones, entries;
  uint64_t entry_share; /* entries of a source */
  uint64_t end;
};
static inline struct cm384_dispatch_relay_layout cm384_dispatch_relay_ubuffer(
    const struct cm384_dispatch_relay* a, uint64_t blocks) {
  struct cm384_dispatch_relay_layout l;
  const uint64_t list = cm384_align((uint64_t)a->relay.max_tokens * a->dispatch.top_k * 4, 256);
  l.entry_share = (a->dispatch.slots + blocks - 1) / blocks;
  l.relays = cm384_align(cm384_dispatch_ubuffer(&a->dispatch, blocks).end, 256);
  l.ids = l.relays + cm384_align(a->relay.supernodes * sizeof(struct cm384_relay_peer), 256);
  l.work0 = l.ids + list;
  l.work1 = l.work0 + list;
  l.status = l.work1 + list;
  l.zero = l.status + 256;
  l.ones = l.zero + 256;
  l.entries = l.ones + cm384_align(blocks * CM384_STATUS_ENTRY_BYTES, 256);
  l.end = l.entries + cm384_align(a->relay.supernodes * l.entry_share * CM384_STATUS_ENTRY_BYTES, 256);
  return l;
}
static inline int cm384_dispatch_relay_fits(const struct cm384_dispatch_relay* a, uint64_t blocks) {
  return blocks <= CM384_STATUS_BLOCKS && a->relay.supernodes <= CM384_RELAY_SUPERNODES &&
         cm384_dispatch_relay_ubuffer(a, blocks).end <= CM384_UBUFFER_BYTES;
}

/* The same of `combine_relay`. */
struct cm384_combine_relay_layout {
  uint64_t relays, inside, copies, slots, ids, weights, flag, ones;
  uint64_t end;
};
static inline struct cm384_combine_relay_layout cm384_combine_relay_ubuffer(
    const struct cm384_combine_relay* a, uint64_t blocks) {
  struct cm384_combine_relay_layout l;
  const uint64_t list = cm384_align((uint64_t)a->relay.max_tokens * a->combine.top_k * 4, 256);
  l.relays = cm384_align(cm384_combine_ubuffer(&a->combine, blocks).end, 256);
  l.inside = l.relays + cm384_align(a->relay.supernodes * sizeof(struct cm384_relay_peer), 256);
  l.copies = l.inside + cm384_align((uint64_t)a->relay.each * 8, 256);
  l.slots = l.copies + cm384_align((uint64_t)a->combine.experts * sizeof(struct cm384_expert_copies), 256);
  l.ids = l.slots + cm384_align((uint64_t)a->slots * sizeof(struct cm384_expert_slot), 256);
  l.weights = l.ids + list;
  l.flag = l.weights + list;
  l.ones = l.flag + 256;
  l.end = l.ones + cm384_align(blocks * CM384_STATUS_ENTRY_BYTES, 256);
  return l;
}
static inline int cm384_combine_relay_fits(const struct cm384_combine_relay* a, uint64_t blocks) {
  return cm384_combine_fits(&a->combine, blocks) && a->relay.supernodes <= CM384_RELAY_SUPERNODES &&
         cm384_combine_relay_ubuffer(a, blocks).end <= CM384_UBUFFER_BYTES;
}

#endif
