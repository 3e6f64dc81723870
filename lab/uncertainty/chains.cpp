#include "lab/uncertainty/chains.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "lab/uncertainty/uniform.h"

namespace cm384::uncertainty {
namespace {

constexpr double kFirstDrawn = 8;  // coordinates of a point, on average
constexpr double kTaken = 0.25;    // of the moves

Point moved(Point point, double share, std::mt19937_64& random) {
  const auto one = static_cast<std::size_t>(uniform(random) * static_cast<double>(point.size()));
  for (std::size_t i = 0; i < point.size(); ++i) {
    if (uniform(random) < share || i == one) point[i] = uniform(random);
  }
  return point;
}

}  // namespace

Matching walk(const Points& from, const Points& figures, const std::vector<Target>& targets,
              const FigureModel& model, const ChainOptions& options,
              const std::function<void(const std::string&)>& report, const std::function<bool()>& cancelled) {
  Points at, gave;
  for (std::size_t chain = 0; chain < options.chains; ++chain) {
    at.push_back(from[chain % from.size()]);
    gave.push_back(figures[chain % from.size()]);
  }
  std::vector<std::size_t> left(options.chains);
  std::mt19937_64 random(options.seed);
  const auto unknowns = static_cast<double>(from.front().size());
  double share = std::min(1.0, kFirstDrawn / unknowns);
  Matching matching;
  for (std::size_t step = 1; step <= options.steps && !cancelled(); ++step) {
    Points next;
    for (const Point& point : at) next.push_back(moved(point, share, random));
    const Points gives = model(next, true);
    if (cancelled()) break;
    std::size_t taken = 0;
    for (std::size_t chain = 0; chain < at.size(); ++chain) {
      if (!all_hold(targets, gives[chain])) continue;
      at[chain] = next[chain];
      gave[chain] = gives[chain];
      ++left[chain];
      ++taken;
    }
    matching.log.push_back(fmt::format(
        "step {}: {:.1f} of {} unknowns drawn anew, {} of {} machines hold, {:.1f} moves per chain so far",
        step, 1 + share * (unknowns - 1), from.front().size(), taken, at.size(),
        static_cast<double>(std::accumulate(left.begin(), left.end(), std::size_t{0})) /
            static_cast<double>(at.size())));
    report(matching.log.back());
    const double rate = static_cast<double>(taken) / static_cast<double>(at.size());
    share *= std::exp((rate - kTaken) * 2 / std::sqrt(static_cast<double>(step)));
    share = std::clamp(share, 0.5 / unknowns, 1.0);
  }
  for (std::size_t chain = 0; chain < at.size(); ++chain) {
    if (left[chain] == 0) continue;
    matching.members.push_back(at[chain]);
    matching.figures.push_back(gave[chain]);
  }
  return matching;
}

}  // namespace cm384::uncertainty
