#include "ub_fabric/virtual_output_queues.h"

namespace cm384::ub {

VirtualOutputQueues::VirtualOutputQueues(unsigned outputs, unsigned lanes, unsigned inputs)
    : lanes_(lanes),
      inputs_(inputs),
      state_(outputs),
      arbiters_(std::size_t{outputs} * lanes),
      last_(std::size_t{outputs} * lanes * inputs, kNone) {}

}  // namespace cm384::ub
