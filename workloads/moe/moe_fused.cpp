// The fused flow: dispatch, the experts, combine, one after the other on each rank; nothing but the
// operators' own flags holds the ranks together.
#include <fmt/format.h>

#include <optional>
#include <utility>
#include <vector>

#include "workloads/moe/moe_experts.h"
#include "workloads/moe/moe_flow.h"
#include "workloads/moe/moe_run.h"
#include "workloads/operators/reference/expert_accuracy.h"

namespace cm384::studies {
namespace {

std::vector<std::size_t> ranks_with_experts(const MoeRun& run) {
  const std::vector<int>& own = run.layer().placement.own_experts;
  std::vector<std::size_t> ranks;
  for (std::size_t rank = 0; rank < own.size(); ++rank) {
    if (own[rank] > 0) ranks.push_back(rank);
  }
  return ranks;
}

// What the last round left on all ranks.
reference::MoeAccuracy accuracy_of(MoeRun& run, const MoeCase& setting) {
  const host::Runtime& runtime = run.session().runtime();
  std::vector<reference::MoeValues> got;
  for (int rank = 0; rank < run.layer().placement.ranks; ++rank) {
    const cm384_dispatch& d = run.dispatched().arguments(rank);
    const cm384_combine& c = std::as_const(run).combined().arguments(rank);
    const std::size_t rows = run.dispatched().expected().rank(rank).rows.size(), hidden = d.hidden;
    got.push_back({runtime.get<std::int8_t>(d.expand_x, rows * hidden),
                   runtime.get<float>(d.expand_scales, rows),
                   runtime.get<std::uint16_t>(c.expert_x, rows * hidden),
                   runtime.get<std::uint16_t>(c.x, d.batch * hidden)});
  }
  return reference::moe_accuracy(run.layer(), static_cast<std::uint32_t>(setting.expert_width),
                                 !setting.no_shared_output, got);
}

}  // namespace

MoeReading measure_fused_flow(const StudyContext& context, const MoeCase& setting, SimulatorCounts& counts,
                              double progress_from, double progress_to) {
  MoeRun run(context, setting, &setting, fmt::format("fused flow, {} ranks", setting.ranks), progress_from,
             progress_to);
  host::Runtime& runtime = run.session().runtime();
  const auto dispatch = run.session().built_in(run.dispatched().kernel()),
             experts = run.session().built_in("experts"),
             combine = run.session().built_in(std::as_const(run).combined().kernel());
  const std::vector<std::size_t> holders = ranks_with_experts(run);
  std::vector<RankTask> of_holders;
  for (const std::size_t rank : holders) of_holders.push_back(run.dispatched().tasks()[rank]);
  const std::vector<RankTask> delays = expert_delays(runtime, of_holders, setting.expert_time);
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
    std::vector<Time> ready(first.size());
    const auto last = run.launch(run.combined().tasks(), combine, run.cores(), skew);
    if (!runtime.wait()) break;
    run.session().done((round + 1.0) / rounds);
    if (round < setting.warmup) continue;
    for (std::size_t n = 0; n < between.size(); ++n) ready[holders[n]] = runtime.record(between[n]).task_end;
    for (std::size_t rank = 0; rank < first.size(); ++rank) {
      const npu::LaunchRecord& dispatched = runtime.record(first[rank]);
      tally.add(dispatched.task_start,
                {dispatched.task_end, ready[rank], runtime.record(last[rank]).task_end});
    }
    if (setting.full && reading.first_difference.empty()) reading.first_difference = run.difference();
  }
  if (setting.full) reading.correct = reading.first_difference.empty() && !tally.empty();
  if (setting.drawn && reading.correct && !tally.empty()) {
    reference::MoeAccuracy found = accuracy_of(run, setting);
    reading.accuracy = std::move(found.stages);
    reading.rerouted = found.rerouted;
  }
  tally.to(reading);
  run.count(counts);
  return reading;
}

}  // namespace cm384::studies
