#include "ub_fabric/routing.h"

#include <fmt/format.h>

#include <algorithm>

#include "hw/error.h"

namespace cm384::ub {

RoutingPolicy routing_policy(const std::string& name) {
  if (name == "spray") return RoutingPolicy::spray;
  if (name == "flow") return RoutingPolicy::flow;
  if (name == "adaptive") return RoutingPolicy::adaptive;
  throw InputError(
      fmt::format("ub.switch.routing: \"{}\" is no routing policy; allowed: spray, flow, adaptive", name));
}

ClosShape::ClosShape(const hw::Topology& topology)
    : nodes_(static_cast<unsigned>(topology.nodes)),
      l2_(static_cast<unsigned>(topology.l2_switches)),
      first_uplink_(static_cast<unsigned>(topology.dies_per_node + topology.sockets_per_node)),
      ports_(std::max(first_uplink_ + l2_, nodes_)) {
  for (int e = 0; e < topology.endpoints(); ++e) {
    node_.push_back(static_cast<std::uint8_t>(topology.node_of(e)));
    const int port = e < topology.dies()
                         ? e % topology.dies_per_node
                         : topology.dies_per_node + (e - topology.dies()) % topology.sockets_per_node;
    port_.push_back(static_cast<std::uint8_t>(port));
  }
}

}  // namespace cm384::ub
