#include "lab/uncertainty/morris.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "traces/random.h"

namespace cm384::uncertainty {
namespace {

constexpr double kStep = 2.0 / 3;  // of four levels: 0, 1/3, 2/3, 1

struct Change {
  std::size_t factor;
  double by;
};

Change change_between(const Point& from, const Point& to) {
  std::size_t factor = 0;
  while (from[factor] == to[factor]) ++factor;
  return {factor, to[factor] - from[factor]};
}

}  // namespace

Points morris_design(std::size_t factors, std::size_t trajectories, std::uint64_t seed) {
  Points design;
  std::vector<std::size_t> order(factors);
  for (std::size_t t = 0; t < trajectories; ++t) {
    traces::Random random(seed, t);
    Point point(factors);
    for (double& place : point) place = static_cast<double>(random.below(4)) / 3;
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (std::size_t i = factors; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    design.push_back(point);
    for (const std::size_t factor : order) {
      point[factor] += point[factor] < 0.5 ? kStep : -kStep;
      design.push_back(point);
    }
  }
  return design;
}

std::vector<Effect> elementary_effects(const Points& design, std::span<const double> outputs) {
  const std::size_t factors = design.front().size();
  std::vector<std::vector<double>> effects(factors);
  for (std::size_t i = 1; i < design.size(); ++i) {
    if (i % (factors + 1) == 0) continue;  // the next trajectory begins
    const Change change = change_between(design[i - 1], design[i]);
    const double effect = (outputs[i] - outputs[i - 1]) / change.by;
    if (std::isfinite(effect)) effects[change.factor].push_back(effect);
  }
  std::vector<Effect> all;
  for (const std::vector<double>& of_factor : effects) {
    Effect& effect = all.emplace_back();
    effect.count = of_factor.size();
    if (of_factor.empty()) continue;
    const auto count = static_cast<double>(of_factor.size());
    for (const double value : of_factor) {
      effect.mean += value / count;
      effect.mean_absolute += std::abs(value) / count;
    }
    if (of_factor.size() < 2) continue;
    double squares = 0;
    for (const double value : of_factor) squares += (value - effect.mean) * (value - effect.mean);
    effect.spread = std::sqrt(squares / (count - 1));
  }
  return all;
}

}  // namespace cm384::uncertainty
