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
};
std::span<const TopologyKind> topology_kinds();
// The layout of topology.kind.
Layout layout_of(const hw::Topology& topology);

Layout clos(const hw::Topology& topology);
Layout clos3(const hw::Topology& topology);
Layout full_mesh(const hw::Topology& topology);
Layout torus(const hw::Topology& topology);
Layout dragonfly(const hw::Topology& topology);
Layout star(const hw::Topology& topology);
Layout from_files(const hw::Topology& topology);

}  // namespace cm384::ub
