#include "base/text/nearest_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace cm384::hw {
namespace {

// Optimal string alignment distance.
std::size_t distance(std::string_view a, std::string_view b) {
  const std::size_t width = b.size() + 1;
  std::vector<std::size_t> cost((a.size() + 1) * width);
  const auto at = [&](std::size_t i, std::size_t j) -> std::size_t& { return cost[i * width + j]; };
  for (std::size_t i = 0; i <= a.size(); ++i) at(i, 0) = i;
  for (std::size_t j = 0; j <= b.size(); ++j) at(0, j) = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = at(i - 1, j - 1) + (a[i - 1] == b[j - 1] ? 0 : 1);
      at(i, j) = std::min({at(i - 1, j) + 1, at(i, j - 1) + 1, replace});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        at(i, j) = std::min(at(i, j), at(i - 2, j - 2) + 1);
      }
    }
  }
  return at(a.size(), b.size());
}

}  // namespace

std::string nearest_name(std::string_view typed, std::span<const std::string> names) {
  std::string best;
  std::size_t least = std::max<std::size_t>(2, typed.size() / 3) + 1;
  for (const std::string& name : names) {
    // Names of very different lengths are no closer than that; what was typed may be a megabyte.
    const std::size_t longer = std::max(typed.size(), name.size()),
                      shorter = std::min(typed.size(), name.size());
    if (longer - shorter >= least) continue;
    const std::size_t d = distance(typed, name);
    if (d < least) {
      least = d;
      best = name;
    }
  }
  return best;
}

std::string suggestion(std::string_view typed, std::span<const std::string> names) {
  const std::string name = nearest_name(typed, names);
  return name.empty() ? "" : fmt::format("; did you mean {}?", name);
}

}  // namespace cm384::hw
