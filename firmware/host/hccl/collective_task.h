/* What a host program's collective hands to its kernel (collectives.cpp). Plain C. */
#ifndef CM384_HOST_COLLECTIVE_TASK_H
#define CM384_HOST_COLLECTIVE_TASK_H

#include <stdint.h>

enum cm384_task_kind {
  CM384_TASK_ALL_REDUCE,
  CM384_TASK_ALL_GATHER,
  CM384_TASK_REDUCE_SCATTER,
  CM384_TASK_ALL_TO_ALL,
  CM384_TASK_ALL_TO_ALL_V
};
#define CM384_COLLECTIVE_TASK_RANKS 64 /* at most */

struct cm384_collective_task {
  uint64_t kind;          /* cm384_task_kind */
  uint64_t send, receive; /* GM */
  uint64_t count;         /* elements */
  uint32_t type, op;      /* as the library counts them */
  /* of ALL_TO_ALL_V, by rank: elements sent and from where, elements received and to where */
  uint64_t numbers[4][CM384_COLLECTIVE_TASK_RANKS];
};

#endif
