// The corners of ub_link's parameters that are built; CMakeLists.txt has the same values.
#pragma once

#include "testbenches/hw/rtl/ub_link/link_bench.h"

namespace cm384::rtl {

// As in the machine's preset.
inline constexpr Shape kPreset{};
// With coverage and waves; buffers small enough to be full often, a lane just large enough for the longest
// packet.
inline constexpr Shape kSmall{.lanes = 4, .lane_cells = 64, .retry_flits = 128};
inline constexpr Shape kLeast{
    .block_flits = 2, .lanes = 1, .cell_flits = 1, .lane_cells = 2, .retry_flits = 4};
inline constexpr Shape kMost{
    .flit_bytes = 64, .lanes = 16, .cell_flits = 128, .lane_cells = 4, .retry_flits = 16384};
inline constexpr Shape kOdd{
    .flit_bytes = 22, .block_flits = 7, .lanes = 3, .cell_flits = 5, .lane_cells = 23, .retry_flits = 64};

}  // namespace cm384::rtl
