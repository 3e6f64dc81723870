// The fused flow: dispatch, the experts, combine, one after the other on each rank; nothing but the
// operators' own flags holds the ranks together.
#include <fmt/format.h>

#include <optional>

#include "workloads/moe/moe_experts.h"
#include "workloads/moe/moe_flow.h"
#include "workloads/moe/moe_run.h"

namespace cm384::studies {

MoeReading measure_fused_flow(const StudyContext& context, const MoeCase& setting, SimulatorCounts& counts,
                              double progress_from, double progress_to) {
  MoeRun run(context, setting, &setting, fmt::format("fused flow, {} ranks", setting.ranks), progress_from,
             progress_to);
  host::Runtime& runtime = run.session().runtime();
  const auto dispatch = run.session().built_in(run.dispatched().kernel()),
             experts = run.session().built_in("experts"), combine = run.session().built_in("combine");
  const std::vector<RankTask> delays = expert_delays(runtime, run.dispatched().tasks(), setting.expert_time);
  std::optional<ExpertNetworks> networks;
  if (setting.expert_network)
    networks.emplace(run, static_cast<std::uint32_t>(setting.expert_width), setting.expert_cores);
  auto reading = run.begin_reading<MoeReading>();
  FlowTally tally({"dispatch", "experts", "combine"});
  traces::Random skew(context.seed, 1);
  const int rounds = setting.warmup + setting.iterations;
  run.session().expect(1.0 / rounds, run.about_an_operator() * 2 + setting.expert_time);
  for (int round = 0; round < rounds; ++round) {
    if (setting.full) run.combined().spoil();
    if (networks) networks->spoil();
    if (round == setting.warmup) run.session().begin_counted();
    const auto first = run.launch(run.dispatched().tasks(), dispatch, run.cores(), skew);
    const auto between = networks ? networks->launch() : run.launch(delays, experts, {0}, skew);
    const auto last = run.launch(run.combined().tasks(), combine, run.cores(), skew);
    if (!runtime.wait()) break;
    run.session().done((round + 1.0) / rounds);
    if (round < setting.warmup) continue;
    for (std::size_t rank = 0; rank < first.size(); ++rank) {
      const npu::LaunchRecord& dispatched = runtime.record(first[rank]);
      const Time ready = between.empty() ? dispatched.task_end : runtime.record(between[rank]).task_end;
      tally.add(dispatched.task_start, {dispatched.task_end, ready, runtime.record(last[rank]).task_end});
    }
    if (setting.full && reading.first_difference.empty()) reading.first_difference = run.difference();
  }
  if (setting.full) reading.correct = reading.first_difference.empty() && !tally.empty();
  tally.to(reading);
  run.count(counts);
  return reading;
}

}  // namespace cm384::studies
