// Names of the host's collectives, for declarations in sources that have kernels too.
#pragma once

#include "acl/acl.h"

using HcclComm = void*;
