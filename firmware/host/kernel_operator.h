// Of the cores: kernels are left out where the host's part of a source is compiled.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#define GM_ADDR uint8_t*
#define __gm__
#define __global__
#define __aicore__

namespace AscendC {}
