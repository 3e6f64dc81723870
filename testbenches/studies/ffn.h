// The feed-forward network of a die's experts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "testbenches/studies/gemm.h"

namespace cm384::studies {

struct FfnSetting {
  std::vector<std::uint32_t> expert_rows;
  std::uint32_t hidden = 7168, width = 2048;
  int blocks = 24;
  bool full = false;
};

struct FfnReading {
  double task_us = 0, kernel_us = 0;
  double operations = 0;  // two a multiplication with its addition
  double hbm_bytes = 0;
  double l2_hit_rate = 0;
  std::vector<PipeShare> pipes;
  std::optional<bool> correct;
  std::string first_difference;
};

FfnReading measure_ffn(const StudyContext& context, const FfnSetting& setting, SimulatorCounts& counts);

}  // namespace cm384::studies
