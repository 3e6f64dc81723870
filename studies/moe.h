// A layer's token distribution from end to end: tokens to their experts, expert compute as a stated delay or
// as firmware, results back and summed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "studies/combine.h"

namespace cm384::studies {

struct MoeCase : CombineCase {
  std::string flow = "fused";   // fused: dispatch and combine; basic: three all-to-alls (moe_basic.h)
  Time expert_time{};           // 0: no task of its own
  bool expert_network = false;  // the experts' real feed-forward network in place of a delay
  int expert_width = 2048;      // its elements between the multiplications
  int expert_cores = 24;        // AICs, each with its two AIVs
};

struct MoePhase {
  std::string name;
  double mean_us = 0;  // over ranks and counted iterations
};

struct MoeReading {
  Summary latency_us;  // of a rank: start of its first task to end of its last
  std::vector<MoePhase> phases;
  std::optional<bool> correct;  // payload mode full only
  std::string first_difference;
  int batch = 0, top_k = 0, experts = 0;  // effective; a trace sets the last two
  std::vector<Time> ends;                 // of each rank in each counted iteration
};

// Runs the case on a machine of its own, counters added to `counts`.
MoeReading measure_moe(const StudyContext& context, const MoeCase& setting, SimulatorCounts& counts,
                       double progress_from = 0, double progress_to = 1);

}  // namespace cm384::studies
