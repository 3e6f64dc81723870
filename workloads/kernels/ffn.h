// The feed-forward network of a die's experts.
#pragma once

#include "workloads/kernels/cube_run.h"
#include "workloads/operators/ffn/ffn.h"

namespace cm384::studies {

struct FfnSetting : operators::FfnSetting, CubeSetting {};

CubeReading measure_ffn(const StudyContext& context, const FfnSetting& setting, SimulatorCounts& counts);

}  // namespace cm384::studies
