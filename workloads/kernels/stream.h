// Streaming reads of a die's memory by its cores (ascend-facts A6).
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "workloads/frame/study.h"

namespace cm384::studies {

// How the rows of a matrix are cut into MTE2 instructions, and who reads which.
struct StreamShape {
  std::string name;
  std::uint32_t block_count = 1;    // rows an instruction
  std::uint32_t block_bytes = 128;  // bytes of a row
  std::uint64_t rows = 12288;
  std::uint64_t row_bytes = 24576;
  std::uint64_t pitch = 24576;
  bool cube = false;        // AICs, to L1 in NZ
  std::uint32_t parts = 1;  // ranges of rows, each read `passes` times before the next
  std::uint32_t passes = 1;
  std::uint32_t shared = 0;  // as cm384_stream::shared
  double measured_us = 0;    // on the part, 48 AIVs or 24 AICs; 0: not measured

  // Cores that read where `cores` AIVs are asked for, and what all of them read in one pass of a launch.
  int readers(int cores) const { return cube ? (cores + 1) / 2 : cores; }
  std::uint64_t bytes(int cores) const {
    return rows * row_bytes * passes * (shared != 0 ? static_cast<std::uint64_t>(readers(cores)) : 1);
  }
};
// The measured rows of ascend-facts A6.
std::span<const StreamShape> stream_shapes();

struct StreamReading {
  double kernel_us = 0;  // first start to last end, without launch
  double task_us = 0;
  double bandwidth_TBps = 0;
  double l2_hit_rate = 0;
};
// `cores`: AIVs; of a shape for AICs half as many, one a group.
StreamReading measure_stream(const StudyContext& context, const StreamShape& shape, int cores, int passes,
                             bool wait_for_reuse, SimulatorCounts& counts);

}  // namespace cm384::studies
