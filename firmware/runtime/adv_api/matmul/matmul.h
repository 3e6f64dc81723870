// Where kernels of others look for it.
#pragma once

#include "lib/matmul_intf.h"
