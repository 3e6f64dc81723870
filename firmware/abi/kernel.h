/* What `cm384 run kernel` passes to a kernel that brings no study of its own: some memory. Plain C. */
#ifndef CM384_ABI_KERNEL_H
#define CM384_ABI_KERNEL_H

#include <stdint.h>

/* The launch's argument block. A kernel linked for the bare-metal conformance tests ignores it. */
struct cm384_kernel {
  uint64_t scratch;       /* GM address in the die's own memory, 512 B aligned, zero */
  uint64_t scratch_bytes; /* at least 16 MiB */
};

#endif
