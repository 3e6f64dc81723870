// Where kernels of others look for it.
#pragma once

#include "kernel_operator.h"
