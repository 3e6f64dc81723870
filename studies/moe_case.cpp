#include "studies/moe_case.h"

#include "traces/routing.h"

namespace cm384::studies {
namespace {

// EP320 of [P] 4.2.1: 32 ranks hold the shared expert, the others 256 routed experts and 32 redundant copies.
constexpr int kDeploymentRanks = 320, kDeploymentShared = 32;

}  // namespace

reference::DispatchCase make_moe_case(std::uint64_t seed, const DispatchCase& setting) {
  const traces::RoutingSource source = traces::parse_routing_source(setting.routing);
  traces::Routing routing;
  reference::DispatchCase made;
  const std::int64_t rows = static_cast<std::int64_t>(setting.ranks) * setting.batch;
  switch (source.kind) {
    case traces::RoutingSource::Kind::kUniform:
      routing = traces::uniform_routing(rows, setting.top_k, setting.experts, seed);
      break;
    case traces::RoutingSource::Kind::kZipf:
      routing = traces::zipf_routing(rows, setting.top_k, setting.experts, source.exponent, seed);
      break;
    case traces::RoutingSource::Kind::kTrace:
      routing = traces::read_routing(source.path, {setting.drop_repeats, 0, -1});
      made.trace_rows = routing.rows();
      break;
  }
  const int shared = setting.shared_copies >= 0 ? setting.shared_copies
                     : setting.ranks == kDeploymentRanks && source.kind != traces::RoutingSource::Kind::kTrace
                         ? kDeploymentShared
                         : 0;
  made.placement = reference::place_experts(setting.ranks, routing.experts, shared);
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
