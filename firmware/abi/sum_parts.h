/* Arguments of the kernel `sum_parts`: sums of what has come from other dies, any number of them in one
 * launch of AIVs, each block a share of each. BF16, added up in FP32 in the order of the terms, rounded once.
 * Plain C.
 */
#ifndef CM384_ABI_SUM_PARTS_H
#define CM384_ABI_SUM_PARTS_H

#include <stdint.h>

/* At `sums`: `count` of these, each followed by the addresses of its terms. */
struct cm384_part_sum {
  uint64_t out;   /* GM; may be one of the terms */
  uint64_t bytes; /* a multiple of 32 */
};

struct cm384_sum_parts {
  uint64_t sums;  /* GM: `count` times struct cm384_part_sum and uint64_t [terms] */
  uint32_t count; /* of sums */
  uint32_t terms; /* of each, 2 or more */
};

#endif
