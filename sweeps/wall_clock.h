// The host's clock, and how often those who run many points look around.
#pragma once

#include <chrono>

namespace cm384::sweeps {

inline constexpr double kHeartbeat_s = 10;  // between a process's marks in the store
inline constexpr double kLook_s = 0.5;      // between looks at other processes' points
inline constexpr auto kTick = std::chrono::milliseconds(20);

// Seconds from an arbitrary start; never goes backwards.
inline double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace cm384::sweeps
