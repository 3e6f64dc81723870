// The middle of values that members of an ensemble gave.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace cm384::studies {

// Between order statistics, linearly: type 7 of Hyndman and Fan (1996). At least one value.
inline double quantile_of_sorted(const std::vector<double>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  if (below + 1 >= sorted.size()) return sorted.back();
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[below + 1] - sorted[below]);
}

// Nine in ten of the values lie inside, as far as there are enough of them. At least one value.
struct Middle {
  double low = 0, high = 0;
};
inline Middle middle_of(std::vector<double> values) {
  constexpr double kTail = 0.05;
  std::ranges::sort(values);
  return {quantile_of_sorted(values, kTail), quantile_of_sorted(values, 1 - kTail)};
}

}  // namespace cm384::studies
