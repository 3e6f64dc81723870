// What the flows of `run moe` share: readings summed up from the times of each rank's steps.
#pragma once

#include <string>
#include <vector>

#include "workloads/moe/moe.h"
#include "workloads/moe/moe_run.h"

namespace cm384::studies {

class FlowTally {
 public:
  explicit FlowTally(std::vector<std::string> phases) : names_(std::move(phases)), sums_(names_.size()) {}

  // One rank in one counted round: when it began, and when each phase ended (an end that is no later than the
  // one before it: the phase was left out).
  void add(Time begin, const std::vector<Time>& ends);
  bool empty() const { return latencies_.empty(); }
  void to(MoeReading& reading);

 private:
  std::vector<std::string> names_;
  std::vector<Time> sums_;
  std::vector<double> latencies_;
  std::vector<Time> ends_;
};

// A task a rank that keeps one core for `time`; none when it is 0.
std::vector<RankTask> expert_delays(host::Runtime& runtime, const std::vector<RankTask>& ranks, Time time);

// The flows. `setting` must be theirs.
MoeReading measure_fused_flow(const StudyContext& context, const MoeCase& setting, SimulatorCounts& counts,
                              double progress_from, double progress_to);

MoeReading measure_basic_flow(const StudyContext& context, const MoeCase& setting, SimulatorCounts& counts,
                              double progress_from, double progress_to);

}  // namespace cm384::studies
