#include "ub_fabric/topology/kinds.h"

#include <fmt/format.h>

#include <algorithm>

#include "hw/error.h"

namespace cm384::ub {
namespace {

constexpr TopologyKind kKinds[] = {
    {"clos", clos},           {"clos3", clos3}, {"full-mesh", full_mesh}, {"torus", torus},
    {"dragonfly", dragonfly}, {"star", star},   {"file", from_files},
};

}  // namespace

std::span<const TopologyKind> topology_kinds() {
  return kKinds;
}

Layout layout_of(const hw::Topology& topology) {
  const auto* kind = std::ranges::find(kKinds, topology.kind, &TopologyKind::name);
  if (kind == std::end(kKinds))
    throw InputError(fmt::format("topology.kind: \"{}\" is unknown", topology.kind));
  return kind->layout(topology.one_supernode());
}

}  // namespace cm384::ub
