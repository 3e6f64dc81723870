// Where kernels of others look for it.
#pragma once

#include "cm384/matmul.h"
#include "kernel_operator.h"
