/* Submission and completion queues: of the streams that a die's task scheduler works off, and of the SDMA
 * engine. Plain C, read by host, firmware and models. After ascend-facts C: entries of 64 B, task types and
 * SDMA operation codes with their numbers; the layout of the other fields is cm384's own.
 *
 * A queue is a ring of `depth` entries in the memory of its die. Heads and tails count entries since the
 * queue was made and wrap at 2^32; entry n stands at n mod depth. Whoever submits writes entries from the
 * tail on, makes them visible in memory, then writes the new tail to the queue's doorbell. At most `depth`
 * entries may be submitted and not completed: a doorbell beyond that is refused with
 * CM384_STATUS_QUEUE_RANGE, and the tail stays as it was. Entries of a queue are worked off in order, one at
 * a time.
 *
 * Completions are written from completion 0 on: one for every entry that asks for it and for every entry or
 * doorbell that failed. The reader finds a new one by its `number`, and writes how many it has read to the
 * queue's completion doorbell; a queue whose completions are full waits.
 */
#ifndef CM384_ABI_QUEUE_H
#define CM384_ABI_QUEUE_H

#include <stdint.h>

#define CM384_QUEUE_ENTRY_BYTES 64u

enum cm384_task_type {
  CM384_TASK_NONE = 0, /* what fresh memory holds: refused */
  CM384_TASK_KERNEL = 1,
  CM384_TASK_SDMA = 11,
  CM384_TASK_EVENT_RECORD = 16,  /* writes `value` to `address` */
  CM384_TASK_EVENT_WAIT = 17,    /* waits until the 8 B at `address`, of the own die, are `value` or more */
  CM384_TASK_NOTIFY_RECORD = 18, /* adds `value` (32 bit) to the 4 B at `address` */
  CM384_TASK_NOTIFY_WAIT = 19    /* waits until the 4 B at `address` are `value` or more, and takes it off */
};

enum cm384_sdma_operation {
  CM384_SDMA_COPY = 0,    /* `bytes` from `source` to `destination`, GM addresses of any die or socket */
  CM384_SDMA_PREFETCH = 6 /* `bytes` from `source`, of the own die, into its L2 */
};

enum cm384_task_status {
  CM384_STATUS_DONE = 0,
  CM384_STATUS_BAD_ENTRY = 1,     /* type, operation, length or a field out of range */
  CM384_STATUS_READ_FAULT = 2,    /* `source` or part of its range is no memory */
  CM384_STATUS_WRITE_FAULT = 3,   /* `destination` or `address`, as above */
  CM384_STATUS_QUEUE_RANGE = 4,   /* a doorbell before the head or further than `depth` after it */
  CM384_STATUS_NO_SUCH_KERNEL = 5 /* `kernel` is not known to the die, or its cores are not there */
};

/* flags */
#define CM384_TASK_WRITE_COMPLETION 1u /* write a completion also when all is well */
#define CM384_TASK_GRAPH 2u /* a kernel of a captured graph: may be set up while the entry before runs */

/* One submission entry. */
struct cm384_task {
  uint8_t type; /* enum cm384_task_type */
  uint8_t flags;
  uint8_t operation; /* enum cm384_sdma_operation */
  uint8_t reserved;
  uint32_t number; /* the submitter's own; comes back in the completion */
  union {
    struct {
      uint64_t source;
      uint64_t destination;
      uint32_t bytes; /* 1 or more */
    } copy;
    struct {
      uint64_t arguments; /* GM address that the kernel gets */
      uint32_t kernel;    /* as the host registered it at the die */
      uint32_t blocks;    /* 0: one on each core that it was registered for */
    } kernel;
    struct {
      uint64_t address;
      uint64_t value;
    } word;
    uint64_t words[7];
  } u;
};

/* One completion. */
struct cm384_completion {
  uint32_t number; /* of completions of this queue up to and with this one: 1, 2, ... */
  uint32_t task;   /* `number` of the entry; of a refused doorbell, the value that was written */
  uint32_t status; /* enum cm384_task_status */
  uint32_t head;   /* entries completed, this one inside */
  uint64_t fault;  /* address that has no memory, for a fault */
  uint64_t sys_count;
  uint64_t reserved[4];
};

/* A queue as its submitter sees it. */
struct cm384_queue {
  uint64_t entries;     /* GM address of the submission ring */
  uint64_t completions; /* of the completion ring */
  uint64_t doorbell;    /* GM address of the 4 B tail; the next 4 B are the completions read */
  uint32_t depth;       /* of both rings */
  uint32_t tail;        /* entries submitted when the structure was written */
};

/* Doorbells of a die stand at the end of its memory, CM384_DOORBELL_STRIDE bytes apart: SDMA queue q has
 * number q. Queue q < number of AIVs is for AIV q, later ones are the task scheduler's. */
#define CM384_DOORBELL_STRIDE UINT64_C(512)

#ifdef __cplusplus
static_assert(sizeof(struct cm384_task) == CM384_QUEUE_ENTRY_BYTES, "an entry is 64 B");
static_assert(sizeof(struct cm384_completion) == CM384_QUEUE_ENTRY_BYTES, "a completion is 64 B");
#endif

#endif
