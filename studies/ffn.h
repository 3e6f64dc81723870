// The feed-forward network of a die's experts.
#pragma once

#include <vector>

#include "studies/cube_run.h"

namespace cm384::studies {

struct FfnSetting {
  std::vector<std::uint32_t> expert_rows;
  std::uint32_t hidden = 7168, width = 2048;
  int blocks = 24;
  bool full = false;
};

CubeReading measure_ffn(const StudyContext& context, const FfnSetting& setting, SimulatorCounts& counts);

}  // namespace cm384::studies
