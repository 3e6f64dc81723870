// Grouped matrix multiplication on the cube cores of one die.
#pragma once

#include <vector>

#include "studies/cube_run.h"
#include "studies/gemm_tiling.h"

namespace cm384::studies {

struct GemmSetting {
  std::vector<std::uint32_t> group_rows;
  std::uint32_t n = 4096, k = 4096;
  cm384_gemm_type type = CM384_GEMM_INT8;
  bool b_nz = true;
  std::uint32_t tile_m = 0, tile_n = 0;  // 0: choose_tiling()
  int blocks = 24;
  bool full = false;
};

struct GemmReading : CubeReading {
  cm384_gemm_tiling tiling{};
};

GemmReading measure_gemm(const StudyContext& context, const GemmSetting& setting, SimulatorCounts& counts);

}  // namespace cm384::studies
