// Grouped matrix multiplication on the cube cores of one die.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "npu_core/die/die.h"
#include "testbenches/studies/gemm_tiling.h"
#include "testbenches/studies/result.h"
#include "testbenches/studies/study.h"

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

// What a pipe of the cube cores did, as shares of the kernel's time, mean over the cores.
struct PipeShare {
  std::string name;
  double busy = 0;
  double waiting = 0;     // idle, at wait_flags
  std::string waits_for;  // the pipe it waited for longest
};

struct GemmReading {
  double task_us = 0, kernel_us = 0;
  double operations = 0;  // two a multiplication with its addition
  double hbm_bytes = 0;
  double l2_hit_rate = 0;
  cm384_gemm_tiling tiling{};
  std::vector<PipeShare> pipes;
  std::optional<bool> correct;
  std::string first_difference;
};

GemmReading measure_gemm(const StudyContext& context, const GemmSetting& setting, SimulatorCounts& counts);

// Peak of a die in operations a second.
double cube_peak(const hw::Machine& machine, cm384_gemm_type type);

// Shares of the cube cores `0 .. blocks - 1` of a die over `kernel_us`.
std::vector<PipeShare> pipe_shares(npu::Die& die, int blocks, double kernel_us);
Json to_json(const std::vector<PipeShare>& pipes);
// "MTE2: busy 93 %, waits for MTE1 4 %": the busiest pipe.
std::string bottleneck(const std::vector<PipeShare>& pipes);

}  // namespace cm384::studies
