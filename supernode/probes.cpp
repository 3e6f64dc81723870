#include "supernode/probes.h"

#include <fmt/format.h>

namespace cm384::supernode {

std::string LinkName::text() const {
  switch (kind) {
    case Kind::from_endpoint:
      return fmt::format("plane {}, endpoint {} to node {}", plane, endpoint, node);
    case Kind::to_endpoint:
      return fmt::format("plane {}, node {} to endpoint {}", plane, node, endpoint);
    case Kind::up:
      return fmt::format("plane {}, node {} to L2 chip {}", plane, node, l2);
    case Kind::down:
      break;
  }
  return fmt::format("plane {}, L2 chip {} to node {}", plane, l2, node);
}

}  // namespace cm384::supernode
