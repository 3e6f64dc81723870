// Relay windows of ranks in several supernodes, and what each rank knows of others' (firmware/abi/relay.h).
#pragma once

#include <vector>

#include "firmware/abi/relay.h"
#include "workloads/operators/collective.h"
#include "workloads/operators/reference/dispatch_reference.h"

namespace cm384::operators {

// By rank. The case has relays.
std::vector<cm384_relay> place_relays(const reference::DispatchCase& dispatch, RankMemory& memory);

}  // namespace cm384::operators
