#include "lab/uncertainty/history.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <tuple>

#include "lab/uncertainty/uniform.h"

namespace cm384::uncertainty {
namespace {

constexpr std::size_t kMostFactors = 8;  // of a surrogate
constexpr double kLeastGain = 0.01;      // of the variance, that another factor has to explain
constexpr double kHopeless = 3;          // an implausibility that no further target makes up for
constexpr std::size_t kHeldBack = 5;     // every fifth run checks a surrogate
// Of subset simulation: draws that walk and their steps at each level; coordinates that a step moves, on
// average.
constexpr std::size_t kWalkers = 200;
constexpr int kMostLevels = 12, kSteps = 5;
constexpr double kMoved = 4;

double mean_of(const Point& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// The factors that explain most, one after another: each the one that what is left correlates with most,
// which is then taken out by a straight line.
std::vector<std::size_t> explaining(const Points& points, Point left) {
  std::vector<std::size_t> factors;
  const double mean = mean_of(left);
  double whole = 0;
  for (double& value : left) {
    value -= mean;
    whole += value * value;
  }
  const std::size_t most = std::min(kMostFactors, points.size() / 8);
  while (factors.size() < most && whole > 0) {
    std::size_t best = 0;
    double gain = 0, slope = 0, middle = 0;
    for (std::size_t f = 0; f < points.front().size(); ++f) {
      double sum = 0;
      for (const Point& point : points) sum += point[f];
      const double average = sum / static_cast<double>(points.size());
      double square = 0, product = 0;
      for (std::size_t i = 0; i < points.size(); ++i) {
        square += std::pow(points[i][f] - average, 2);
        product += (points[i][f] - average) * left[i];
      }
      if (square > 0 && product * product / square > gain) {
        gain = product * product / square;
        best = f;
        slope = product / square;
        middle = average;
      }
    }
    if (gain < kLeastGain * whole) break;
    for (std::size_t i = 0; i < points.size(); ++i) left[i] -= slope * (points[i][best] - middle);
    if (std::ranges::find(factors, best) != factors.end()) break;
    factors.push_back(best);
  }
  std::ranges::sort(factors);
  return factors;
}

Point projected(const Point& point, const std::vector<std::size_t>& factors) {
  Point few;
  for (const std::size_t f : factors) few.push_back(point[f]);
  return few;
}

Points projected(const Points& points, const std::vector<std::size_t>& factors) {
  Points few;
  for (const Point& point : points) few.push_back(projected(point, factors));
  return few;
}

// Runs so far of one target.
struct Known {
  Points points;
  Point values;
};

// A draw, how implausible the worst of its figures is, and how far the worst prediction is off, in
// tolerances.
struct Draw {
  Point point;
  double implausible = 1, off = 1;  // at least 1: what is better needs no order
};

bool comes_before(const Draw& one, const Draw& other) {
  return std::tie(one.implausible, one.off) < std::tie(other.implausible, other.off);
}

class Judge {
 public:
  Judge(const std::vector<Target>& targets, const std::vector<Known>& known, double discrepancy)
      : targets_(targets), discrepancy_(discrepancy) {
    for (const Known& one : known) surrogates_.emplace_back(one.points, one.values);
  }

  // Figures after one that is more implausible than `hopeless` are not looked at.
  Draw of(Point point, double hopeless) const {
    Draw draw{std::move(point)};
    for (std::size_t t = 0; t < targets_.size() && draw.implausible <= hopeless; ++t) {
      const Target& target = targets_[t];
      const double predicted = surrogates_[t].at(draw.point);
      draw.implausible =
          std::max(draw.implausible, implausibility(target, predicted, surrogates_[t].error(), discrepancy_));
      draw.off = std::max(draw.off,
                          std::abs(predicted - target.value) / (target.tolerance * std::abs(target.value)));
    }
    return draw;
  }

 private:
  const std::vector<Target>& targets_;
  double discrepancy_;
  std::vector<FigureSurrogate> surrogates_;
};

// Subset simulation (Au and Beck 2001) of the region that no surrogate calls implausible, where hardly one
// draw in `draws` finds it: the best of them set a level and walk below it, each step with some coordinates
// drawn anew over their whole range, so that they spread evenly over what is below the level; the best of
// these set the next one.
void close_in(std::vector<Draw>& draws, const Judge& judge, std::size_t wanted, std::mt19937_64& random) {
  for (int level = 0; level < kMostLevels; ++level) {
    std::ranges::stable_sort(draws, comes_before);
    const Draw& last = draws[std::min(wanted, draws.size()) - 1];
    if (last.implausible <= 1 && last.off <= 1) return;
    std::vector<Draw> walkers(draws.begin(),
                              draws.begin() + static_cast<std::ptrdiff_t>(std::min(kWalkers, draws.size())));
    const Draw allowed = walkers.back();
    draws = walkers;
    for (int step = 0; step < kSteps; ++step) {
      for (Draw& walker : walkers) {
        Point moved = walker.point;
        const double share = std::min(1.0, kMoved / static_cast<double>(moved.size()));
        for (double& coordinate : moved) {
          if (uniform(random) < share) coordinate = uniform(random);
        }
        Draw next = judge.of(std::move(moved), allowed.implausible);
        if (!comes_before(allowed, next)) walker = std::move(next);
      }
      draws.insert(draws.end(), walkers.begin(), walkers.end());
    }
  }
}

// Draws that no surrogate calls implausible, first those whose figures are predicted within their tolerance,
// as they come; if there are too few, those that come nearest.
Points worth_running(const std::vector<Target>& targets, const std::vector<Known>& known,
                     const Points& points, const MatchingOptions& options, std::mt19937_64& random) {
  const Judge judge(targets, known, options.discrepancy);
  std::vector<Draw> draws;
  for (const Point& point : points) draws.push_back(judge.of(point, kHopeless));
  close_in(draws, judge, options.batch, random);
  // Walkers that have gone farthest stand last.
  std::ranges::reverse(draws);
  std::ranges::stable_sort(draws, comes_before);
  Points chosen;
  for (const Draw& draw : draws) {
    if (chosen.size() == options.batch) break;
    if (std::ranges::find(chosen, draw.point) == chosen.end()) chosen.push_back(draw.point);
  }
  return chosen;
}

}  // namespace

bool Target::holds(double predicted) const {
  return std::abs(predicted - value) <= tolerance * std::abs(value);
}

bool all_hold(const std::vector<Target>& targets, const Point& figures) {
  for (std::size_t t = 0; t < targets.size(); ++t) {
    if (!targets[t].holds(figures[t])) return false;
  }
  return true;
}

double implausibility(const Target& target, double predicted, double surrogate_error, double discrepancy) {
  const double size = std::abs(target.value);
  const double known = std::hypot(target.tolerance * size, discrepancy * size, surrogate_error);
  return std::abs(predicted - target.value) / known;
}

FigureSurrogate::FigureSurrogate(const Points& points, const Point& values)
    : factors_(explaining(points, values)), constant_(mean_of(values)) {
  Points seen, kept;
  Point seen_values, kept_values;
  for (std::size_t i = 0; i < points.size(); ++i) {
    (i % kHeldBack == 0 ? kept : seen).push_back(points[i]);
    (i % kHeldBack == 0 ? kept_values : seen_values).push_back(values[i]);
  }
  if (!factors_.empty()) surrogate_ = statistics().kriging(projected(seen, factors_), seen_values);
  double squares = 0;
  for (std::size_t i = 0; i < kept.size(); ++i) squares += std::pow(at(kept[i]) - kept_values[i], 2);
  error_ = std::sqrt(squares / static_cast<double>(kept.size()));
  if (!factors_.empty()) surrogate_ = statistics().kriging(projected(points, factors_), values);
}

double FigureSurrogate::at(const Point& point) const {
  return surrogate_ ? surrogate_->at(projected(point, factors_)).mean : constant_;
}

Matching match(std::size_t unknowns, const std::vector<Target>& targets, const FigureModel& model,
               const MatchingOptions& options, const std::function<void(const std::string&)>& report,
               const std::function<bool()>& cancelled) {
  Matching matching;
  std::vector<Known> known(targets.size());
  const auto take = [&](const Points& points, const Points& figures) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < points.size(); ++i) {
      for (std::size_t t = 0; t < targets.size(); ++t) {
        if (!std::isfinite(figures[i][t])) continue;
        known[t].points.push_back(points[i]);
        known[t].values.push_back(figures[i][t]);
      }
      if (!all_hold(targets, figures[i]) || matching.members.size() == options.members) continue;
      matching.members.push_back(points[i]);
      matching.figures.push_back(figures[i]);
      ++kept;
    }
    matching.log.push_back(fmt::format("wave {}: {} machines run, {} kept, {} in all", matching.log.size(),
                                       points.size(), kept, matching.members.size()));
    report(matching.log.back());
  };
  const auto enough_known = [&] {
    return std::ranges::all_of(known, [](const Known& one) { return one.points.size() >= 10; });
  };
  std::mt19937_64 random(options.seed);
  const Points first = statistics().latin_hypercube(unknowns, options.first, options.seed);
  take(first, model(first, false));
  for (std::size_t wave = 1; wave <= options.waves; ++wave) {
    if (matching.members.size() >= options.members || cancelled() || !enough_known()) break;
    const Points draws = statistics().latin_hypercube(unknowns, options.candidates, options.seed + wave);
    const Points points = worth_running(targets, known, draws, options, random);
    take(points, model(points, true));
  }
  return matching;
}

}  // namespace cm384::uncertainty
