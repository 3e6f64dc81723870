#include "studies/prefill_schedule.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <tuple>

namespace cm384::studies {

std::vector<std::vector<double>> ends_of(const std::vector<std::vector<PlannedPart>>& microbatches) {
  std::vector<std::vector<double>> ends(microbatches.size());
  std::array<double, kPrefillUnits> free{};
  const auto ready = [&](std::size_t m) { return ends[m].empty() ? 0.0 : ends[m].back(); };
  const auto start = [&](std::size_t m) {
    double at = ready(m);
    for (std::size_t unit = 0; unit < free.size(); ++unit) {
      if ((microbatches[m][ends[m].size()].units >> unit & 1U) != 0) at = std::max(at, free[unit]);
    }
    return at;
  };
  for (;;) {
    std::size_t next = microbatches.size();
    for (std::size_t m = 0; m < microbatches.size(); ++m) {
      if (ends[m].size() == microbatches[m].size()) continue;
      if (next == microbatches.size() ||
          std::tuple(start(m), ready(m)) < std::tuple(start(next), ready(next)))
        next = m;
    }
    if (next == microbatches.size()) return ends;
    const PlannedPart& part = microbatches[next][ends[next].size()];
    const double end = start(next) + part.us;
    for (std::size_t unit = 0; unit < free.size(); ++unit) {
      if ((part.units >> unit & 1U) != 0) free[unit] = end;
    }
    ends[next].push_back(end);
  }
}

}  // namespace cm384::studies
