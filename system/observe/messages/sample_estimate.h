// What windows of a trace say of all of it: mean and percentiles with confidence, from how much the windows
// differ. Messages of a window may hang together as they like.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/text/json.h"
#include "system/observe/messages/quantiles.h"

namespace cm384::observe {

class SampleEstimate {
 public:
  // Values of one window after another; `window` never falls.
  void add(int window, double value);
  std::uint64_t count() const { return all_.count(); }
  int windows() const { return static_cast<int>(windows_.size()) + (present_.count() != 0 ? 1 : 0); }
  double at(double share) const { return all_.at(share); }

  struct Estimate {
    double value = 0;
    std::optional<double> low, high;  // of 95 %; nothing where the values do not reach that far
  };
  // Sum over count, both of all windows (a ratio estimator; its variance by linearisation).
  Estimate mean(int windows) const;
  // The interval of the share of values at most the percentile, read as values (Woodruff 1952).
  Estimate quantile(double share, int windows) const;
  // {count, mean, p50, p90, p99, p99.9}, each {value, low, high}. `windows`: as many were looked at, with
  // values or without.
  Json to_json(int windows) const;

 private:
  struct Window {
    double count = 0, sum = 0;
    std::vector<Quantiles::Point> curve;
    double at_most(double value) const;  // how many values
  };
  static Window window_of(const Quantiles& values);
  std::vector<Window> all_windows() const;
  double half_width(const std::vector<Window>& windows, const std::vector<double>& sums, int looked_at) const;

  int number_ = -1;
  Quantiles all_, present_;
  std::vector<Window> windows_;  // that have ended
};

}  // namespace cm384::observe
