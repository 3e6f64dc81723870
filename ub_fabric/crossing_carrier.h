// Carries crossings (ub_fabric/crossing.h) between processes that simulate the same machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/text/units.h"

namespace cm384::ub {

// Marks, in an event's `order`, that the event has departed to another process; such a slot of a queue is
// reused by the next event that arrives.
inline constexpr std::uint64_t kDeparted = UINT64_MAX;

// With a carrier, credits that are packed leave the process, and unpacked ones are posted as another module
// would post them; without one they come back to where they were, as events do.
struct CrossingCarrier {
  // Called by Crossings::turn() with what was packed: takes it away, or puts there what is to be unpacked.
  std::function<void(std::vector<std::byte>&)> turned;
  Time earliest_credits = Time::never();  // that departed
};

}  // namespace cm384::ub
