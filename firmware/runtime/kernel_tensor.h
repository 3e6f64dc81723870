// A name under which kernels written elsewhere include the library.
#pragma once

#include "kernel_operator.h"
