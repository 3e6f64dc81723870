// The kinds of topology by name.
#pragma once

#include <span>
#include <string_view>

#include "ub_fabric/topology/layout.h"

namespace cm384::ub {

struct TopologyKind {
  std::string_view name;  // as topology.kind has it
  // Throws InputError where the parameters do not fit together.
  Layout (*layout)(const hw::Topology& topology);
  bool grid = false;  // its chips stand in a grid of topology.shape, dies spread over them in order
};
std::span<const TopologyKind> topology_kinds();
// That of topology.kind. Throws InputError for an unknown one.
const TopologyKind& kind_of(const hw::Topology& topology);
// The layout of topology.kind.
Layout layout_of(const hw::Topology& topology);
// Chips per dimension, the first one's number changing fastest; empty: the kind is not a grid.
std::vector<unsigned> grid_lengths(const hw::Topology& topology);

Layout clos(const hw::Topology& topology);
Layout clos3(const hw::Topology& topology);
Layout full_mesh(const hw::Topology& topology);
Layout mesh(const hw::Topology& topology);
Layout torus(const hw::Topology& topology);
Layout dragonfly(const hw::Topology& topology);
Layout star(const hw::Topology& topology);
Layout from_files(const hw::Topology& topology);

}  // namespace cm384::ub
