#include "studies/moe_case.h"

#include <numeric>

#include "operators/reference/expert_balance.h"
#include "traces/random.h"
#include "traces/routing.h"

namespace cm384::studies {
namespace {

// EP320 of [P] 4.2.1: 32 ranks hold the shared expert, the others 256 routed experts and 32 redundant copies.
constexpr int kDeploymentRanks = 320, kDeploymentShared = 32;

traces::Routing routing_of(const traces::RoutingSource& source, const DispatchCase& setting,
                           std::uint64_t seed) {
  const std::int64_t rows = static_cast<std::int64_t>(setting.ranks) * setting.batch;
  switch (source.kind) {
    case traces::RoutingSource::Kind::kUniform:
      return traces::uniform_routing(rows, setting.top_k, setting.experts, seed);
    case traces::RoutingSource::Kind::kZipf:
      return traces::zipf_routing(rows, setting.top_k, setting.experts, source.exponent, seed);
    case traces::RoutingSource::Kind::kTrace:
      break;
  }
  return traces::read_routing(source.path, {setting.drop_repeats, 0, -1});
}

// What a balancer has seen: another draw, or the whole of a trace.
std::vector<double> seen_loads(const traces::Routing& routing) {
  std::vector<double> loads(static_cast<std::size_t>(routing.experts));
  for (const std::int32_t expert : routing.ids) ++loads[static_cast<std::size_t>(expert)];
  return loads;
}

}  // namespace

reference::DispatchCase make_moe_case(std::uint64_t seed, const DispatchCase& setting) {
  const traces::RoutingSource source = traces::parse_routing_source(setting.routing);
  const traces::Routing routing = routing_of(source, setting, seed);
  reference::DispatchCase made;
  if (source.kind == traces::RoutingSource::Kind::kTrace) made.trace_rows = routing.rows();
  const int shared = setting.shared_copies >= 0 ? setting.shared_copies
                     : setting.ranks == kDeploymentRanks && source.kind != traces::RoutingSource::Kind::kTrace
                         ? kDeploymentShared
                         : 0;
  if (setting.by_load || setting.redundant >= 0) {
    const int redundant = setting.redundant >= 0
                              ? setting.redundant
                              : reference::free_slots(setting.ranks, routing.experts, shared);
    std::vector<double> loads(static_cast<std::size_t>(routing.experts), 1.0);
    if (setting.by_load)
      loads = seen_loads(made.trace_rows > 0 ? routing : routing_of(source, setting, traces::mix(seed)));
    const double tokens = std::accumulate(loads.begin(), loads.end(), 0.0) / routing.top_k;
    made.placement = reference::place_by_load(setting.ranks, loads, redundant, shared, tokens);
  } else {
    made.placement = reference::place_experts(setting.ranks, routing.experts, shared);
  }
  made.batch = setting.batch;
  made.top_k = routing.top_k;
  made.hidden = setting.hidden;
  made.seed = seed;
  made.full_mesh = setting.full_mesh;
  for (int rank = 0; rank < setting.ranks; ++rank)
    made.expert_ids.push_back(traces::take_rows(routing, rank, setting.batch));
  return made;
}

}  // namespace cm384::studies
