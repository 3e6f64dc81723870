// Streaming reads of a die's memory by its vector cores (ascend-facts A6).
#pragma once

#include <array>
#include <cstdint>

#include "studies/study.h"

namespace cm384::studies {

// How the rows of a matrix are cut into MTE2 instructions.
struct StreamShape {
  std::string name;
  std::uint32_t block_count = 1;    // rows an instruction
  std::uint32_t block_bytes = 128;  // bytes of a row
  std::uint64_t rows = 12288;
  std::uint64_t row_bytes = 24576;
  std::uint64_t pitch = 24576;
};
// The measured rows of ascend-facts A6.
const std::array<StreamShape, 4>& stream_shapes();

struct StreamReading {
  double kernel_us = 0;  // first start to last end, without launch
  double task_us = 0;
  double bandwidth_TBps = 0;
  double l2_hit_rate = 0;
};
StreamReading measure_stream(const StudyContext& context, const StreamShape& shape, int cores, int passes,
                             bool wait_for_reuse, SimulatorCounts& counts);

}  // namespace cm384::studies
