/* What kernel `flag_of_a_group` is given. Plain C, read by host and kernel. */
#ifndef CM384_TESTBENCHES_RUNS_KERNELS_FLAG_OF_A_GROUP_H
#define CM384_TESTBENCHES_RUNS_KERNELS_FLAG_OF_A_GROUP_H

#include <stdint.h>

struct cm384_flag_of_a_group {
  uint64_t meet;  /* not 0: all AIVs of the launch meet at a barrier first */
  uint64_t sets;  /* by each AIC, as soon as it begins, for both AIVs of its group */
  uint64_t waits; /* by each AIV */
};

#endif
