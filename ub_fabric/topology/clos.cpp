// Two levels: an L1 chip per node, and above them L2 chips, each with one link to every L1 chip. Ports of an
// L1 chip: the node's dies, its sockets, then one per L2 chip; of an L2 chip: one per node.
#include "ub_fabric/topology/kinds.h"

namespace cm384::ub {

Layout clos(const hw::Topology& topology) {
  const auto nodes = static_cast<unsigned>(topology.nodes), l2 = static_cast<unsigned>(topology.l2_switches);
  Layout layout;
  for (unsigned node = 0; node < nodes; ++node) layout.add_chip("l1chip", node);
  for (unsigned k = 0; k < l2; ++k) layout.add_chip("l2chip", k);
  attach_nodes(layout, topology, [](int node) { return static_cast<unsigned>(node); });
  for (unsigned node = 0; node < nodes; ++node) {
    for (unsigned k = 0; k < l2; ++k) layout.connect(node, nodes + k);
  }
  return layout;
}

}  // namespace cm384::ub
