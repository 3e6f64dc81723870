// Bisection for the smallest or largest value of an axis that meets a target. It takes the metric as monotone
// in the axis: where that is not so, it finds one border of several, and says so if it has seen it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lab/sweeps/plan.h"

namespace cm384::sweeps {

class Search {
 public:
  Search(const Find& find, const Axis& axis);

  // Values that are to be run now: the ends first, then one at a time. Empty: done() or waiting for tell().
  std::vector<std::string> ask();
  // Whether the run with this value met the target; nothing: it failed.
  void tell(const std::string& value, std::optional<bool> met);
  bool done() const { return done_; }

  // Only if done().
  const std::optional<std::string>& found() const { return found_; }
  const std::string& reason() const { return reason_; }  // why nothing was found; empty: it was
  // Values that were run, in the order of the axis.
  std::vector<std::string> values() const;

 private:
  void end(std::optional<std::string> found, std::string reason);
  std::optional<double> middle() const;
  std::string text(double place) const;

  const Find& find_;
  const Axis& axis_;
  // Places run from the side where the target should be missed (0) to the one where it should be met (1).
  // Positions on the axis; of a list of values the index.
  double missed_ = 0, met_ = 0;
  std::map<double, std::optional<bool>> outcomes_;
  std::map<std::string, double> places_;
  bool done_ = false;
  std::optional<std::string> found_;
  std::string reason_;
};

}  // namespace cm384::sweeps
