#include "lab/uncertainty/sensitivity.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "base/text/error.h"

namespace cm384::uncertainty {
namespace {

constexpr std::size_t kIndexSamples = 4096;  // of the surrogate, which is quick

// Some coordinates of the whole cube; the others stay at the machine's own values.
class Subspace {
 public:
  Subspace(Point own, std::vector<std::size_t> free) : own_(std::move(own)), free_(std::move(free)) {}
  std::size_t size() const { return free_.size(); }
  std::size_t operator[](std::size_t i) const { return free_[i]; }
  Points whole(const Points& points) const {
    Points all;
    for (const Point& point : points) {
      Point& one = all.emplace_back(own_);
      for (std::size_t i = 0; i < free_.size(); ++i) one[free_[i]] = point[i];
    }
    return all;
  }

 private:
  Point own_;
  std::vector<std::size_t> free_;
};

std::string section_of(const std::string& key) {
  return key.substr(0, key.find('.'));
}

// All unknowns of a section at their lower ends together, then at their upper ends: a result that is the same
// to the last bit both times does not depend on any of them.
std::vector<std::size_t> active_of(const std::vector<Unknown>& unknowns, const Point& own, const Model& model,
                                   Sensitivity& result) {
  std::map<std::string, std::vector<std::size_t>> sections;
  for (std::size_t i = 0; i < unknowns.size(); ++i) sections[section_of(unknowns[i].key)].push_back(i);
  Points points;
  for (const auto& [name, members] : sections) {
    for (const double place : {0.0, 1.0}) {
      Point& point = points.emplace_back(own);
      for (const std::size_t i : members) point[i] = place;
    }
  }
  const Point values = model(points);
  result.runs += points.size();
  std::vector<std::size_t> active;
  std::size_t at = 0;
  for (const auto& [name, members] : sections) {
    const double low = values[at++], high = values[at++];
    auto& to = low == result.own && high == result.own ? result.inert
               : std::isnan(low) && std::isnan(high)   ? result.refused
                                                       : active;
    to.insert(to.end(), members.begin(), members.end());
  }
  std::ranges::sort(active);
  std::ranges::sort(result.inert);
  std::ranges::sort(result.refused);
  return active;
}

double variance_of(const Point& values) {
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return sum / static_cast<double>(values.size());
}

// Every fifth run is kept from a surrogate, and predicted by it.
double quality_of(Statistics& statistics, const Points& points, const Point& values) {
  Points seen, kept;
  Point seen_values, kept_values;
  for (std::size_t i = 0; i < points.size(); ++i) {
    (i % 5 == 2 ? kept : seen).push_back(points[i]);
    (i % 5 == 2 ? kept_values : seen_values).push_back(values[i]);
  }
  const auto surrogate = statistics.kriging(seen, seen_values);
  double squares = 0;
  for (std::size_t i = 0; i < kept.size(); ++i)
    squares += std::pow(surrogate->at(kept[i]).mean - kept_values[i], 2);
  const double variance = variance_of(kept_values);
  return variance > 0 ? 1 - squares / static_cast<double>(kept.size()) / variance : 1;
}

void add_indices(const Point& own, const Model& model, const SensitivityOptions& options,
                 Sensitivity& result) {
  std::vector<std::size_t> kept;
  for (const Sensitivity::Parameter& parameter : result.ranked) {
    if (kept.size() < options.keep && parameter.effect.mean_absolute > 0) kept.push_back(parameter.unknown);
  }
  if (kept.size() < 2 || options.samples == 0) return;
  const Subspace space(own, kept);
  Points points = statistics().latin_hypercube(kept.size(), options.samples, options.seed);
  Point values = model(space.whole(points));
  result.runs += points.size();
  for (std::size_t i = values.size(); i-- > 0;) {
    if (std::isfinite(values[i])) continue;
    ++result.failed;
    values.erase(values.begin() + static_cast<std::ptrdiff_t>(i));
    points.erase(points.begin() + static_cast<std::ptrdiff_t>(i));
  }
  if (points.size() < 3 * kept.size() || variance_of(values) == 0) return;
  result.surrogate_quality = quality_of(statistics(), points, values);
  const auto surrogate = statistics().kriging(points, values);
  const Points experiment = statistics().sobol_experiment(kept.size(), kIndexSamples);
  Point predicted;
  for (const Point& point : experiment) predicted.push_back(surrogate->at(point).mean);
  const SobolIndices indices = statistics().sobol_indices(experiment, predicted, kIndexSamples);
  for (std::size_t i = 0; i < kept.size(); ++i) {
    result.ranked[i].first = indices.first[i];
    result.ranked[i].total = indices.total[i];
  }
}

}  // namespace

std::optional<Sensitivity> analyse(const std::vector<Unknown>& unknowns, const Model& model,
                                   const SensitivityOptions& options,
                                   const std::function<bool()>& cancelled) {
  Sensitivity result;
  Point own;
  for (const Unknown& unknown : unknowns) own.push_back(unknown.own_place());
  result.own = model({own}).front();
  result.runs = 1;
  if (cancelled()) return {};
  if (!std::isfinite(result.own)) throw InputError("the run with the machine's own values failed");
  const Subspace space(own, active_of(unknowns, own, model, result));
  if (cancelled()) return {};
  if (space.size() > 0) {
    const Points design = morris_design(space.size(), options.trajectories, options.seed);
    const Point outputs = model(space.whole(design));
    if (cancelled()) return {};
    result.runs += design.size();
    result.failed +=
        static_cast<std::size_t>(std::ranges::count_if(outputs, [](double v) { return !std::isfinite(v); }));
    const std::vector<Effect> effects = elementary_effects(design, outputs);
    for (std::size_t i = 0; i < effects.size(); ++i) result.ranked.push_back({space[i], effects[i], {}, {}});
    std::ranges::stable_sort(result.ranked, std::greater<>(), [](const Sensitivity::Parameter& parameter) {
      return parameter.effect.mean_absolute;
    });
    add_indices(own, model, options, result);
    if (cancelled()) return {};
  }
  return result;
}

}  // namespace cm384::uncertainty
