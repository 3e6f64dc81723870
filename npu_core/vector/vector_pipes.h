// The pipes of a vector core, numbered from 0 without gaps.
#pragma once

#include <cstdint>

#include "npu_core/pipes/pipe_queue.h"

namespace cm384::npu {

enum VectorPipe : std::uint8_t { kPipeV = 1, kPipeMte2 = 2, kPipeMte3 = 3, kPipes = 4 };
const char* pipe_name(int pipe);

}  // namespace cm384::npu
