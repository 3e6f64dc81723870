#include "workloads/moe/moe.h"

#include <algorithm>

#include "workloads/moe/moe_flow.h"

namespace cm384::studies {

void FlowTally::add(Time begin, const std::vector<Time>& ends) {
  Time last = begin;
  for (std::size_t p = 0; p < ends.size(); ++p) {
    const Time end = std::max(last, ends[p]);
    sums_[p] += end - last;
    last = end;
  }
  latencies_.push_back((last - begin).us());
  ends_.push_back(last);
}

void FlowTally::to(MoeReading& reading) {
  const auto count = static_cast<double>(latencies_.size());
  for (std::size_t p = 0; p < names_.size(); ++p)
    reading.phases.push_back({names_[p], latencies_.empty() ? 0 : sums_[p].us() / count});
  reading.latency_us = summarise(std::move(latencies_));
  reading.ends = std::move(ends_);
}

std::vector<RankTask> expert_delays(host::Runtime& runtime, const std::vector<RankTask>& ranks, Time time) {
  std::vector<RankTask> tasks;
  if (time == Time{}) return tasks;
  for (const RankTask& rank : ranks) {
    tasks.push_back({rank.die, runtime.allocate(rank.die, 32)});
    runtime.put(tasks.back().arguments, time.ps / 20'000);  // ticks of 50 MHz
  }
  return tasks;
}

MoeReading measure_moe(const StudyContext& context, const MoeCase& setting, SimulatorCounts& counts,
                       double progress_from, double progress_to) {
  const auto measure = setting.flow == "basic" ? measure_basic_flow : measure_fused_flow;
  return measure(context, settled(setting, context.machine), counts, progress_from, progress_to);
}

}  // namespace cm384::studies
