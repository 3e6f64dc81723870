// Three levels: pods of nodes, each a Clos of two levels with l2_switches L2 chips of its own; L3 chips
// above. L2 chip k of every pod has a link to each L3 chip whose number is k modulo l2_switches.
#include <fmt/format.h>

#include "base/text/error.h"
#include "ub_fabric/topology/kinds.h"

namespace cm384::ub {

Layout clos3(const hw::Topology& topology) {
  const auto nodes = static_cast<unsigned>(topology.nodes), l2 = static_cast<unsigned>(topology.l2_switches);
  const auto l3 = static_cast<unsigned>(topology.l3_switches), pods = static_cast<unsigned>(topology.groups);
  if (nodes % pods != 0)
    throw InputError(fmt::format("topology.groups: {} pods do not share {} nodes evenly", pods, nodes));
  if (l3 % l2 != 0)
    throw InputError(fmt::format(
        "topology.l3_switches: {} is no multiple of topology.l2_switches ({}); allowed: a multiple", l3, l2));
  Layout layout;
  for (unsigned node = 0; node < nodes; ++node) layout.add_chip("l1chip", node);
  for (unsigned k = 0; k < pods * l2; ++k) layout.add_chip("l2chip", k);
  for (unsigned k = 0; k < l3; ++k) layout.add_chip("l3chip", k);
  attach_nodes(layout, topology, [](int node) { return static_cast<unsigned>(node); });
  const unsigned of_pod = nodes / pods;
  for (unsigned node = 0; node < nodes; ++node) {
    for (unsigned k = 0; k < l2; ++k) layout.connect(node, nodes + node / of_pod * l2 + k);
  }
  for (unsigned k = 0; k < pods * l2; ++k) {
    for (unsigned j = k % l2; j < l3; j += l2) layout.connect(nodes + k, nodes + pods * l2 + j);
  }
  return layout;
}

}  // namespace cm384::ub
