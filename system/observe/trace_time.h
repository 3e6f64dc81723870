// Times as Chrome trace JSON has them.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <iterator>
#include <string>

#include "base/text/units.h"

namespace cm384::observe {

// The nanosecond that Perfetto reads a time of so many picoseconds in: a double of microseconds, times a
// thousand, cut.
inline std::int64_t perfetto_ns(std::int64_t ps) {
  return static_cast<std::int64_t>(static_cast<double>(ps) / 1e6 * 1e3);
}

// Appends microseconds, exact to the picosecond. Perfetto cuts beginning and length to nanoseconds and drops
// slices of a lane that overlap then. Slices that follow each other never do: where the product with a
// thousand falls below a whole nanosecond that `t` is, the number is larger by a few picoseconds.
inline void append_us(std::string& to, Time t) {
  std::int64_t ps = t.ps;
  while (perfetto_ns(ps) < t.ps / 1000) ++ps;
  fmt::format_to(std::back_inserter(to), "{}.{:06}", ps / 1'000'000, ps % 1'000'000);
}

}  // namespace cm384::observe
