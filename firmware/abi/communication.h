/* The resources of a communication group as open kernels read them behind GetHcclContext(): places of the
 * fields that they use (struct HcclOpResParam of their own headers); all others are 0. Plain C. */
#ifndef CM384_ABI_COMMUNICATION_H
#define CM384_ABI_COMMUNICATION_H

#include <stdint.h>

#define CM384_GROUP_BYTES 2100456
#define CM384_GROUP_TABLE 2984 /* array of cm384_group_entry, by rank */

struct cm384_group_head {
  uint64_t work_space, work_space_bytes;
  uint32_t rank, ranks;
  uint64_t window_bytes;
  uint64_t window_in, window_out; /* of this rank */
  uint8_t name[128];
  uint64_t window_exp_bytes, window_exp;
};
struct cm384_group_entry {
  uint64_t host, device; /* address of the rank's cm384_group_rank */
};
struct cm384_group_rank {
  uint32_t rank, world_rank;
  uint64_t window_in, window_out, window_exp;
  uint64_t next_tag[4];
};

/* What stands in for the server of Hccl<>: where its word in the group's resources is, and the memory that
 * the ranks write to each other. A task has a number, the same at all ranks; slot = number % SLOTS. The image
 * of a kernel that calls collectives has the symbol cm384_collectives; without one there is no server. */
#define CM384_GROUP_SERVER 2100448 /* address of the rank's cm384_group_server */
#define CM384_GROUP_SLOTS 64

struct cm384_group_server {
  uint64_t queue; /* struct cm384_queue of SDMA copies, which block 0 submits */
  uint64_t boxes; /* array by rank: where that rank's boxes begin */
  uint64_t ended; /* tasks of launches before this one */
  uint64_t reserved[5];
};
/* Boxes of a rank, one kind after another: by slot and rank what a rank has sent for a task; by phase,
 * slot and rank how far a rank is; by slot and rank what this rank sends; by slot four words: what it says of
 * its two phases, the last that ended, and how far its copies are. */
struct cm384_group_post {
  uint64_t task; /* number + 1 */
  uint64_t from; /* what this rank is to take */
  uint64_t to;   /* where the other rank puts its result */
  uint64_t reserved[5];
};
#define CM384_GROUP_POSTS(ranks) (CM384_GROUP_SLOTS * (ranks)*64ull)
#define CM384_GROUP_LINE(ranks) (((ranks)*8ull + 63) / 64 * 64)
#define CM384_GROUP_WORDS(ranks) (2 * CM384_GROUP_SLOTS * CM384_GROUP_LINE(ranks))
#define CM384_GROUP_BOX_BYTES(ranks) \
  (2 * CM384_GROUP_POSTS(ranks) + CM384_GROUP_WORDS(ranks) + 4ull * CM384_GROUP_SLOTS * 64)

#endif
