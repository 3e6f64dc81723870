#include "traces/importers/clock_offsets.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <optional>
#include <utility>

namespace cm384::traces {
namespace {

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  if (values.size() % 2 != 0) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

struct Differences {
  std::vector<double> of_ends, durations;
};

std::optional<double> agreed(const Differences& all) {
  const double middle = median(all.of_ends);
  std::vector<double> off;
  for (const double one : all.of_ends) off.push_back(std::abs(one - middle));
  if (median(off) > 0.1 * median(all.durations)) return std::nullopt;
  return middle;
}

}  // namespace

ClockOffsets clock_offsets(std::size_t ranks, const std::vector<std::vector<CollectiveEnd>>& ends) {
  std::map<std::pair<std::size_t, std::size_t>, Differences> pairs;  // first member, other one
  for (const auto& members : ends) {
    for (std::size_t n = 1; n < members.size(); ++n) {
      Differences& all = pairs[{members[0].rank, members[n].rank}];
      all.of_ends.push_back(members[n].end_us - members[0].end_us);
      all.durations.push_back(std::min(members[0].duration_us, members[n].duration_us));
    }
  }
  ClockOffsets offsets{std::vector<double>(ranks), std::vector<bool>(ranks), 0};
  std::map<std::size_t, std::vector<std::pair<std::size_t, double>>> neighbours;
  for (const auto& [pair, all] : pairs) {
    const auto ahead = agreed(all);
    if (!ahead) {
      ++offsets.disagreeing;
      continue;
    }
    neighbours[pair.first].emplace_back(pair.second, *ahead);
    neighbours[pair.second].emplace_back(pair.first, -*ahead);
  }
  for (const auto& [first, others] : neighbours) {
    if (offsets.known[first]) continue;
    offsets.known[first] = true;
    for (std::deque<std::size_t> next{first}; !next.empty(); next.pop_front()) {
      for (const auto& [other, ahead] : neighbours[next.front()]) {
        if (offsets.known[other]) continue;
        offsets.known[other] = true;
        offsets.ahead_us[other] = offsets.ahead_us[next.front()] + ahead;
        next.push_back(other);
      }
    }
  }
  return offsets;
}

}  // namespace cm384::traces
