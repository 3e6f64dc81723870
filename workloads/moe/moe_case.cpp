#include "workloads/moe/moe_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "base/text/error.h"
#include "firmware/abi/relay.h"
#include "traces/random.h"
#include "traces/routing/routing.h"
#include "workloads/frame/model_option.h"
#include "workloads/operators/reference/expert_balance.h"

namespace cm384::studies {
namespace {

// EP320 of [P] 4.2.1: 32 ranks hold the shared expert, the others 256 routed experts and 32 redundant copies.
constexpr int kDeploymentRanks = 320, kDeploymentShared = 32;

traces::Routing routing_of(const traces::RoutingSource& source, const DispatchCase& setting,
                           std::int64_t rows, std::int64_t drift_rows, std::uint64_t seed) {
  switch (source.kind) {
    case traces::RoutingSource::Kind::kUniform:
      return traces::uniform_routing(rows, setting.top_k, setting.experts, seed);
    case traces::RoutingSource::Kind::kZipf:
      if (drift_rows > 0)
        return traces::drifting_routing(rows, setting.top_k, setting.experts, source.exponent, drift_rows,
                                        seed);
      return traces::zipf_routing(rows, setting.top_k, setting.experts, source.exponent, seed);
    case traces::RoutingSource::Kind::kGroups:
      return traces::group_limited_routing(rows, setting.top_k, setting.experts, source.groups,
                                           source.top_groups, seed);
    case traces::RoutingSource::Kind::kTrace:
      break;
  }
  traces::Routing routing = traces::read_routing(source.path, {setting.drop_repeats, 0, -1});
  check_trace_of_model(setting.model, routing.experts, routing.top_k);
  return routing;
}

// Choices of each expert in some rows, which begin anew at the routing's end.
std::vector<double> loads_of(const traces::Routing& routing, std::int64_t first, std::int64_t rows) {
  std::vector<double> loads(static_cast<std::size_t>(routing.experts));
  for (std::int64_t row = first; row < first + rows; ++row) {
    for (const std::int32_t expert : routing.row(row % routing.rows()))
      ++loads[static_cast<std::size_t>(expert)];
  }
  return loads;
}

int shared_copies_of(const traces::RoutingSource& source, const DispatchCase& setting) {
  if (setting.shared_copies >= 0) return setting.shared_copies;
  return setting.ranks == kDeploymentRanks && source.kind != traces::RoutingSource::Kind::kTrace
             ? kDeploymentShared
             : 0;
}

reference::ExpertPlacement place(const DispatchCase& setting, const traces::Routing& routing, int shared,
                                 std::span<const double> loads) {
  const int redundant = setting.redundant >= 0
                            ? setting.redundant
                            : reference::free_slots(setting.holders(), routing.experts, shared);
  const double tokens = std::accumulate(loads.begin(), loads.end(), 0.0) / routing.top_k;
  return reference::place_by_load(setting.holders(), loads, redundant, shared, tokens);
}

// `first_block`: of the routing's rows, which the first rank gets.
reference::DispatchCase case_of(std::uint64_t seed, const traces::RoutingSource& source,
                                const DispatchCase& setting, const traces::Routing& routing,
                                reference::ExpertPlacement placement, std::int64_t first_block) {
  reference::DispatchCase made;
  if (source.kind == traces::RoutingSource::Kind::kTrace) made.trace_rows = routing.rows();
  made.placement = std::move(placement);
  made.batch = setting.batch;
  if (!setting.batches.empty())
    made.batches = batches_of(parse_batches(setting.batches), setting.ranks, seed);
  if (setting.token_ranks() > 0) {
    made.batches.resize(static_cast<std::size_t>(setting.ranks), setting.batch);
    std::fill(made.batches.begin() + setting.token_ranks(), made.batches.end(), 0);
  }
  made.top_k = routing.top_k;
  made.hidden = setting.hidden;
  made.seed = seed;
  made.drawn = setting.drawn;
  made.full_mesh = setting.full_mesh;
  // Each rank has a block of the routing as long as the largest batch, and leaves over what it has no tokens
  // for.
  for (int rank = 0; rank < setting.ranks; ++rank) {
    made.expert_ids.push_back(traces::rows_of_block(routing, first_block + rank, setting.batch));
    made.expert_ids.back().resize(static_cast<std::size_t>(made.tokens_of(rank)) *
                                  static_cast<std::size_t>(made.top_k));
  }
  return made;
}

}  // namespace

RoutedSetting routed_setting(const reference::DispatchCase& layer) {
  const int ranks = layer.placement.ranks, idle = static_cast<int>(std::ranges::count(layer.batches, 0)),
            with_tokens = ranks - idle;
  const bool alike =
      layer.batches.empty() || (idle > 0 && std::ranges::count(layer.batches, layer.batch) == with_tokens);
  return {alike ? layer.batch : 0,
          with_tokens,
          static_cast<double>(layer.tokens()) / with_tokens,
          layer.top_k,
          layer.placement.experts,
          std::int64_t{with_tokens} * layer.batch,
          layer.trace_rows};
}

RoutedRows routed_rows(const reference::DispatchCase& dispatch) {
  const reference::ExpertPlacement& placement = dispatch.placement;
  const std::size_t ranks = placement.own_experts.size();
  RoutedRows rows;
  for (const int own : placement.own_experts) rows.of_expert.emplace_back(static_cast<std::size_t>(own));
  rows.between.assign(ranks, std::vector<std::uint64_t>(ranks));
  for (std::size_t source = 0; source < dispatch.expert_ids.size(); ++source) {
    const auto count = [&](int expert, std::uint32_t tokens) {
      const cm384_expert_slot& slot = placement.slot_of(expert, static_cast<int>(source));
      rows.of_expert[slot.rank][slot.local] += tokens;
      rows.between[source][slot.rank] += tokens;
    };
    for (const std::int32_t expert : dispatch.expert_ids[source]) count(expert, 1);
    for (int shared = 0; shared < placement.shared; ++shared)
      count(placement.experts + shared,
            static_cast<std::uint32_t>(dispatch.tokens_of(static_cast<int>(source))));
  }
  return rows;
}

reference::DispatchCase make_moe_case(std::uint64_t seed, const DispatchCase& asked) {
  DispatchCase setting = asked;
  if (setting.expert_ranks >= setting.ranks)
    throw InputError(
        fmt::format("--expert-ranks {}: of {} ranks; allowed: 0 to {}, so that others have tokens",
                    setting.expert_ranks, setting.ranks, setting.ranks - 1));
  const int with_tokens = setting.expert_ranks == 0 ? setting.ranks : setting.token_ranks();
  if (!setting.batches.empty())
    setting.batch = std::ranges::max(batches_of(parse_batches(setting.batches), with_tokens, seed));
  const traces::RoutingSource source = traces::parse_routing_source(setting.routing);
  const std::int64_t rows = std::int64_t{setting.ranks} * setting.batch;
  const traces::Routing routing = routing_of(source, setting, rows, 0, seed);
  const int shared = shared_copies_of(source, setting);
  reference::ExpertPlacement placement;
  if (setting.by_load || setting.redundant >= 0) {
    std::vector<double> loads(static_cast<std::size_t>(routing.experts), 1.0);
    // What a balancer has seen: another draw, or the whole of a trace.
    if (setting.by_load) {
      const bool trace = source.kind == traces::RoutingSource::Kind::kTrace;
      const traces::Routing seen = trace ? routing : routing_of(source, setting, rows, 0, traces::mix(seed));
      loads = loads_of(seen, 0, seen.rows());
    }
    placement = place(setting, routing, shared, loads);
  } else {
    placement = reference::place_experts(setting.holders(), routing.experts, shared);
  }
  if (setting.token_ranks() > 0)
    placement = reference::place_after(setting.token_ranks(), std::move(placement));
  return case_of(seed, source, setting, routing, std::move(placement), 0);
}

RenewedLayer make_renewed_layer(std::uint64_t seed, const DispatchCase& setting, int microbatches,
                                const Renewal& renewal) {
  const traces::RoutingSource source = traces::parse_routing_source(setting.routing);
  const std::int64_t blocks = std::int64_t{setting.ranks} * microbatches, step = blocks * setting.batch;
  const std::int64_t every = renewal.every, shown = 2 * every + every / 2;
  const traces::Routing routing = routing_of(source, setting, (shown + 1) * step, renewal.drift * step, seed);
  const int shared = shared_copies_of(source, setting);
  const auto placed = [&](std::int64_t first) {
    return place(setting, routing, shared, loads_of(routing, first * step, every * step));
  };
  const reference::ExpertPlacement placement = placed(every);
  RenewedLayer made;
  made.new_copies = reference::new_copies(placed(0), placement);
  for (int n = 0; n < microbatches; ++n)
    made.parts.push_back(case_of(traces::mix(seed + static_cast<std::uint64_t>(n)), source, setting, routing,
                                 placement, shown * blocks + n * setting.ranks));
  return made;
}

void check_relays(int supernodes, bool full_mesh) {
  if (supernodes == 1)
    throw InputError("--across relay: joins several supernodes; allowed: with --supernodes 2 or more");
  if (supernodes > int{CM384_RELAY_SUPERNODES})
    throw InputError(fmt::format(
        "--across relay: a rank has relays in at most {} other supernodes; allowed: --supernodes 2 to {}",
        CM384_RELAY_SUPERNODES - 1, CM384_RELAY_SUPERNODES));
  if (full_mesh)
    throw InputError("--across relay: flags inside rows are for one supernode; allowed: --variant status");
}

}  // namespace cm384::studies
