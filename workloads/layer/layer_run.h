// Consecutive decode layers on all ranks, each with microbatches that two streams of a die swap: one has
// attention, the other what follows it (layer_program.h). What belongs to a microbatch follows itself
// through both streams; nothing else orders them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "workloads/frame/confidence.h"
#include "workloads/layer/layer_program.h"
#include "workloads/layer/layer_setting.h"

namespace cm384::studies {

struct LayerStage {
  std::string name;
  LayerRanks ranks = LayerRanks::all;  // that it was measured on
  int half = 0;                        // 0: of attention, 1: of the experts
  bool replays = false;                // on ranks that are not in detail
  Summary task_us;                     // over ranks and microbatches
};

// A kernel on one rank. Times from the start of the first layer.
struct LayerKernel {
  int layer = 0, microbatch = 0;
  int stream = 0;  // of attention and of the experts; with one microbatch 0 has both
  std::string name;
  double start_us = 0, end_us = 0;  // of its task
};

// Times of the last layer, which stands for many alike.
struct LayerReading {
  std::vector<LayerStage> stages;  // in the order of a microbatch
  // By half: from its first task's start to its last one's end. Of two kinds of ranks the first half is of
  // those with tokens and ends with dispatch, the second is of those with experts.
  std::array<Summary, 2> half_us;
  Summary layer_us;     // over ranks: from the end of the layer before to its own
  double first_us = 0;  // the first layer, from its first task to its end, mean over ranks with tokens
  double rows_mean = 0, rows_max = 0;  // that dispatch brings to a rank
  double new_copies = 0;               // most that a rank loads at a renewal, mean over layers
  std::uint64_t hbm_bytes = 0;         // in all layers, on a rank in detail
  int recordings = 0;
  int followers = 0;  // ranks that follow others
  struct {
    double mean = 0, most = 0;
  } late_us;             // by how much their launches ended too late (npu_core/replay/pace.h)
  int kernels_rank = 0;  // the first in detail
  std::vector<LayerKernel>
      kernels;  // of that rank in all layers, in the order they were given to its streams
  // The same of the first one in detail with experts, of two kinds of ranks; else none. Times are the
  // other's.
  int experts_rank = 0;
  std::vector<LayerKernel> experts_kernels;
};

// Runs it on a machine of its own, and firmware for the recordings on others. Empty stages: interrupted.
LayerReading measure_layer(const StudyContext& context, const LayerSetting& setting, SimulatorCounts& counts);

// Number n of `detail` ranks among `ranks`, spread evenly.
int detail_rank(int n, int detail, int ranks);

}  // namespace cm384::studies
