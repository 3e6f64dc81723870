/* What `cm384 run program` and the runtime of Ascend C kernels pass to each other. Plain C. */
#ifndef CM384_ABI_PROGRAM_H
#define CM384_ABI_PROGRAM_H

#include <stdint.h>

#define CM384_PROGRAM_ARGUMENTS 24
#define CM384_PROGRAM_CONTEXTS 4
#define CM384_PROGRAM_GROUP_SPACE (384 + 2 * (131072 + 196608))

/* What a kernel's launches start, as KERNEL_TYPE_* counts. An image has it as the value of the symbol
   cm384_kernel_type, and of cm384_kernel_type_<n> for tiling key n. */
enum cm384_kernel_type {
  CM384_KERNEL_AIV_ONLY = 0,
  CM384_KERNEL_AIC_ONLY = 1,
  CM384_KERNEL_MIX_AIV_1_0 = 2,
  CM384_KERNEL_MIX_AIC_1_0 = 3,
  CM384_KERNEL_MIX_AIC_1_1 = 4,
  CM384_KERNEL_MIX_AIC_1_2 = 5
};

/* The launch's argument block: the kernel's arguments in their order, as registers hold them. */
struct cm384_program {
  uint64_t argument[CM384_PROGRAM_ARGUMENTS];
  uint64_t context[CM384_PROGRAM_CONTEXTS]; /* what GetHcclContext<n>() returns; 0: there is none */
  uint64_t tiling_key;
  uint64_t vector_cores; /* of a block: 0 of cube cores alone, 1, or 2 of groups */
  uint64_t group_space; /* of groups: CM384_PROGRAM_GROUP_SPACE bytes each, zero, for the runtime's own use */
};

#endif
