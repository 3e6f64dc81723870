// Takes crossings (ub_fabric/crossing.h) to other processes that simulate the same machine, and brings
// theirs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/text/units.h"

namespace cm384::ub {

// Left in an event's `order` when it has departed; what stands so in a queue gets the next event that
// arrives.
inline constexpr std::uint64_t kDeparted = UINT64_MAX;

// With one, credits that are packed are gone, and those unpacked are put down as another module would;
// without, they come back to where they were, as events do.
struct CrossingCarrier {
  // Called by Crossings::turn() with what was packed: takes it away, or puts there what is to be unpacked.
  std::function<void(std::vector<std::byte>&)> turned;
  Time earliest_credits = Time::never();  // that departed
};

}  // namespace cm384::ub
