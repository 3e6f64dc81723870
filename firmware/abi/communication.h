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

#endif
