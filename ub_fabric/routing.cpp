#include "ub_fabric/routing.h"

#include <fmt/format.h>

#include "base/text/error.h"

namespace cm384::ub {

RoutingPolicy routing_policy(const std::string& name) {
  if (name == "spray") return RoutingPolicy::spray;
  if (name == "flow") return RoutingPolicy::flow;
  if (name == "adaptive") return RoutingPolicy::adaptive;
  if (name == "minimal") return RoutingPolicy::minimal;
  if (name == "valiant") return RoutingPolicy::valiant;
  if (name == "ugal") return RoutingPolicy::ugal;
  throw InputError(fmt::format("ub.switch.routing: \"{}\" is no routing policy", name));
}

}  // namespace cm384::ub
