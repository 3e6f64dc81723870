// Names of the host's runtime, for declarations in sources that have kernels too: functions that use them are
// left out when kernels are built.
#pragma once

#include <stddef.h>
#include <stdint.h>

using aclError = int;
using aclrtStream = void*;
using aclrtContext = void*;
using aclrtEvent = void*;
inline constexpr aclError ACL_SUCCESS = 0;
