// The host: its name, its clock, and how often those who run many points look around.
#pragma once

#include <unistd.h>

#include <array>
#include <chrono>
#include <string>

namespace cm384::runs {

inline constexpr double kHeartbeat_s = 10;  // between a process's marks in the store
inline constexpr double kLook_s = 0.5;      // between looks at other processes' points
inline constexpr auto kTick = std::chrono::milliseconds(20);
inline constexpr auto kLimitedTick = std::chrono::milliseconds(5);  // of runs that are short

// Seconds from an arbitrary start; never goes backwards.
inline double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// As gethostname() has it.
inline std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

}  // namespace cm384::runs
