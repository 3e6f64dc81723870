// A chip per node, and one in the middle that all of them have a link to: the example of docs/topologies.md.
#include "ub_fabric/topology/kinds.h"

namespace cm384::ub {
namespace {

unsigned chip_of(int node) {
  return 1 + static_cast<unsigned>(node);
}

}  // namespace

Layout star(const hw::Topology& topology) {
  Layout layout;
  const unsigned hub = layout.add_chip("chip", 0);
  for (int node = 0; node < topology.nodes; ++node) layout.add_chip("chip", chip_of(node));
  attach_nodes(layout, topology, chip_of);
  for (int node = 0; node < topology.nodes; ++node) layout.connect(hub, chip_of(node));
  return layout;
}

}  // namespace cm384::ub
