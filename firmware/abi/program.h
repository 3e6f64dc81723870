/* What `cm384 run program` and the runtime of Ascend C kernels pass to each other. Plain C. */
#ifndef CM384_ABI_PROGRAM_H
#define CM384_ABI_PROGRAM_H

#include <stdint.h>

#define CM384_PROGRAM_ARGUMENTS 24
#define CM384_PROGRAM_CONTEXTS 4

/* The launch's argument block: the kernel's arguments in their order, as registers hold them. */
struct cm384_program {
  uint64_t argument[CM384_PROGRAM_ARGUMENTS];
  uint64_t context[CM384_PROGRAM_CONTEXTS]; /* what GetHcclContext<n>() returns; 0: there is none */
  uint64_t tiling_key;
};

#endif
