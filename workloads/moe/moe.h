// A layer's token distribution from end to end: tokens to their experts, expert compute as a stated delay or
// as firmware, results back and summed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "workloads/moe/combine.h"

namespace cm384::studies {

struct MoeCase : CombineCase {
  std::string flow = "fused";   // fused: dispatch and combine; basic: three all-to-alls (moe_basic.cpp)
  Time expert_time{};           // 0: no task of its own
  bool expert_network = false;  // the experts' real feed-forward network in place of a delay
  int expert_width = 2048;      // its elements between the multiplications
  int expert_cores = 0;         // AICs, each with its two AIVs

  // Everything but ranks and flow.
  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("expert-time", self.expert_time, Range{Time{}, 1_s},
          "what the experts take, as a delay between dispatch and combine; 0: no task",
          Needs{"experts-compute", {"delay"}});
    visit("experts-compute", self.expert_network, Either{"delay", "firmware"},
          "firmware: the experts' feed-forward network on cube and vector cores, in the fused flow");
    visit("expert-width", self.expert_width, Range{64, 4096, 64},
          "elements between the multiplications of that network", Needs{"experts-compute", {"firmware"}});
    visit("expert-cores", self.expert_cores, Range{0, 64},
          "AICs per rank that it runs on, each with its two AIVs; 0: all of the die",
          Needs{"experts-compute", {"firmware"}});
    CombineCase::describe(self, visit);
  }
  static OptionValues of_model(const models::Model& model);
  void settle(const hw::Machine& machine) {
    all_if_zero(expert_cores, machine.die.groups());
    CombineCase::settle(machine);
  }
};

struct MoePhase {
  std::string name;
  double mean_us = 0;  // over ranks and counted iterations
};

struct MoeReading : RoutedSetting {
  Summary latency_us;  // of a rank: start of its first task to end of its last
  std::vector<MoePhase> phases;
  std::optional<bool> correct;  // payload mode full only
  std::string first_difference;
  std::vector<reference::StageAccuracy> accuracy;  // where tokens were drawn
  std::optional<double> rerouted;                  // reference::MoeAccuracy
  std::vector<Time> ends;                          // of each rank in each counted iteration
};

// Runs the case on a machine of its own, counters added to `counts`.
MoeReading measure_moe(const StudyContext& context, const MoeCase& setting, SimulatorCounts& counts,
                       double progress_from = 0, double progress_to = 1);

}  // namespace cm384::studies
