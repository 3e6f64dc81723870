#include "workloads/service/monotone.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace cm384::service {

// Boost's pchip takes four points and more; its pieces take any two.
MonotoneCurve::MonotoneCurve(const std::vector<std::pair<double, double>>& points) {
  if (points.empty()) throw std::invalid_argument("a curve without points");
  for (const auto& [x, y] : points) {
    if (!x_.empty() && !(x > x_.back())) throw std::invalid_argument("points of a curve do not rise");
    x_.push_back(x);
    y_.push_back(y);
  }
  const std::size_t n = x_.size();
  slope_.assign(n, 0.0);
  if (n == 1) return;
  const auto step = [&](std::size_t k) { return x_[k + 1] - x_[k]; };
  const auto rise = [&](std::size_t k) { return (y_[k + 1] - y_[k]) / step(k); };
  slope_.front() = rise(0);
  slope_.back() = rise(n - 2);
  for (std::size_t k = 1; k + 1 < n; ++k) {
    const double before = rise(k - 1), after = rise(k);
    if (before * after <= 0) continue;
    const double w1 = 2 * step(k) + step(k - 1), w2 = step(k) + 2 * step(k - 1);
    slope_[k] = (w1 + w2) / (w1 / before + w2 / after);
  }
}

bool MonotoneCurve::is_point(double x) const {
  return std::ranges::binary_search(x_, x);
}

double MonotoneCurve::operator()(double x) const {
  if (x_.size() == 1) return y_.front();
  if (x < low()) return y_.front() + slope_.front() * (x - low());
  if (x > high()) return y_.back() + slope_.back() * (x - high());
  const auto above = std::ranges::upper_bound(x_, x);
  const auto k =
      static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(above - x_.begin(), 1, std::ssize(x_) - 1)) - 1;
  const double h = x_[k + 1] - x_[k], t = (x - x_[k]) / h, u = 1 - t;
  return (1 + 2 * t) * u * u * y_[k] + t * u * u * h * slope_[k] + t * t * (3 - 2 * t) * y_[k + 1] -
         t * t * u * h * slope_[k + 1];
}

double leave_one_out_error(std::span<const std::pair<double, double>> points) {
  double worst = 0;
  for (std::size_t k = 1; k + 1 < points.size(); ++k) {
    std::vector<std::pair<double, double>> others(points.begin(), points.end());
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(k));
    worst = std::max(worst, std::abs(MonotoneCurve(others)(points[k].first) / points[k].second - 1));
  }
  return worst;
}

}  // namespace cm384::service
