// How far the clocks of ranks are ahead, from when each saw the same collectives end.
#pragma once

#include <cstddef>
#include <vector>

namespace cm384::traces {

struct CollectiveEnd {
  std::size_t rank = 0;
  double end_us = 0, duration_us = 0;  // by the rank's clock
};

struct ClockOffsets {
  std::vector<double> ahead_us;  // by rank, against the first rank of those that share collectives
  std::vector<bool> known;       // by rank
  std::size_t disagreeing = 0;   // pairs of ranks whose ends differ by unlike amounts: their clocks stay
};

// `ends`: of each collective. All members of one see its end at about the same time, whatever their begin.
// The median of what two ranks differ by is an offset if half of the differences lie within a tenth of a
// collective's duration of it.
ClockOffsets clock_offsets(std::size_t ranks, const std::vector<std::vector<CollectiveEnd>>& ends);

}  // namespace cm384::traces
