// Where kernels of others look for it.
#pragma once

#include "cm384/kernel.h"
#include "cm384/matmul_types.h"
#include "cm384/rows.h"
