// Grouped matrix multiplication on the cube cores of one die.
#pragma once

#include "workloads/kernels/cube_run.h"
#include "workloads/operators/gemm/gemm.h"

namespace cm384::studies {

struct GemmSetting : operators::GemmSetting, CubeSetting {};

struct GemmReading : CubeReading {
  cm384_gemm_tiling tiling{};
};

GemmReading measure_gemm(const StudyContext& context, const GemmSetting& setting, SimulatorCounts& counts);

}  // namespace cm384::studies
