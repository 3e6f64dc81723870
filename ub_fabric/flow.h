// What stays in order where chips or controllers choose ways by flow: what a core issues for a target, or all
// requests of a transaction whose id says so.
#pragma once

#include "base/engine/transaction.h"

namespace cm384::ub {

// Bit of a transaction's id: its requests are one flow, whichever cores issue them. Set by replays.
inline constexpr sim::TransactionId kOwnFlow = sim::TransactionId{1} << 63;

}  // namespace cm384::ub
