// The kinds of cores, as far as the rules of their pipes go.
#pragma once

#include <array>
#include <cstddef>

namespace cm384::npu {

struct PipeShape {
  static constexpr std::size_t kMostEngines = 3;
  int pipes = 0;                                // with S
  std::size_t depth = 0;                        // of a pipe's queue
  std::array<int, kMostEngines> engine_pipe{};  // pipe of each engine, in the order of their events; 0: none
};

}  // namespace cm384::npu
