// History matching: machines drawn over the plausible ranges, of which those are kept that give every
// calibration figure within its tolerance when they are run. Surrogates of the figures, made from the runs so
// far, say which draws are worth a run.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lab/uncertainty/ensemble.h"
#include "lab/uncertainty/statistics.h"
#include "lab/uncertainty/unknowns.h"
#include "workloads/frame/published.h"

namespace cm384::uncertainty {

// What a member has to give.
struct Target {
  std::string id;
  double value = 0, tolerance = 0;  // the tolerance is relative
  bool holds(double predicted) const;
};
bool all_hold(const std::vector<Target>& targets, const Point& figures);

// The figures at points of the unit cube, a dimension per unknown, in the order of the targets; NaN where a
// run failed. Later targets may be left out (NaN) of points that miss an earlier one, if `stop_early`.
using FigureModel = std::function<Points(const Points& points, bool stop_early)>;

struct MatchingOptions {
  std::size_t members = 24;         // wanted
  std::size_t first = 128;          // draws of the first wave, whose figures are all run
  std::size_t batch = 32;           // draws of each further wave that are run
  std::size_t waves = 12;           // at most, after the first
  std::size_t candidates = 20'000;  // draws per wave that surrogates look at
  double discrepancy = 0.03;
  std::uint64_t seed = 1;
};

struct Matching {
  Points members;                // points that give every target
  Points figures;                // what they gave
  std::vector<std::string> log;  // a line per wave, for people
};

// `report` is given a line per wave as it ends; `cancelled` is asked after each; what is known then is
// returned.
Matching match(std::size_t unknowns, const std::vector<Target>& targets, const FigureModel& model,
               const MatchingOptions& options, const std::function<void(const std::string&)>& report,
               const std::function<bool()>& cancelled);

// Of a target, from the runs so far: a surrogate over the few factors that explain it.
class FigureSurrogate {
 public:
  // `values` are finite; at least ten points.
  FigureSurrogate(const Points& points, const Point& values);
  double at(const Point& point) const;
  // Standard deviation of its error at runs that it was not made from.
  double error() const { return error_; }
  const std::vector<std::size_t>& factors() const { return factors_; }

 private:
  std::vector<std::size_t> factors_;
  std::unique_ptr<Surrogate> surrogate_;
  double constant_ = 0, error_ = 0;
};

// Distance between figure and prediction, in units of what both are known to: tolerance, discrepancy and the
// surrogate's error together. Above 1 a run is not worth it.
double implausibility(const Target& target, double predicted, double surrogate_error, double discrepancy);

}  // namespace cm384::uncertainty
