// Monotone interpolation: a curve through measured points that overshoots nowhere (Fritsch and Butland's
// slopes, cubic Hermite pieces).
#pragma once

#include <span>
#include <utility>
#include <vector>

namespace cm384::service {

class MonotoneCurve {
 public:
  // Points by rising x, at least one. Throws std::invalid_argument otherwise.
  explicit MonotoneCurve(const std::vector<std::pair<double, double>>& points);

  double low() const { return x_.front(); }
  double high() const { return x_.back(); }
  bool has(double x) const { return x >= low() && x <= high(); }
  bool is_point(double x) const;
  // Beyond the ends: straight on, with the slope of the last two points.
  double operator()(double x) const;

 private:
  std::vector<double> x_, y_, slope_;
};

// Largest share by which a curve misses an inner point when drawn without it; 0 with fewer than three points.
double leave_one_out_error(std::span<const std::pair<double, double>> points);

}  // namespace cm384::service
