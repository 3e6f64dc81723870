#include "ub_fabric/topology/kinds.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/error.h"

namespace cm384::ub {
namespace {

constexpr TopologyKind kKinds[] = {
    {"clos", clos},       {"clos3", clos3},       {"full-mesh", full_mesh, true},
    {"mesh", mesh, true}, {"torus", torus, true}, {"dragonfly", dragonfly},
    {"star", star},       {"file", from_files},
};

}  // namespace

std::span<const TopologyKind> topology_kinds() {
  return kKinds;
}

const TopologyKind& kind_of(const hw::Topology& topology) {
  const auto* kind = std::ranges::find(kKinds, topology.kind, &TopologyKind::name);
  if (kind == std::end(kKinds))
    throw InputError(fmt::format("topology.kind: \"{}\" is unknown", topology.kind));
  return *kind;
}

Layout layout_of(const hw::Topology& topology) {
  return kind_of(topology).layout(topology.one_supernode());
}

std::vector<unsigned> grid_lengths(const hw::Topology& topology) {
  if (!kind_of(topology).grid) return {};
  const std::vector<int> lengths = topology.lengths();
  return {lengths.begin(), lengths.end()};
}

}  // namespace cm384::ub
