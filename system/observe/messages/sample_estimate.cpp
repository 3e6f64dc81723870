#include "system/observe/messages/sample_estimate.h"

#include <algorithm>
#include <array>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <utility>

namespace cm384::observe {

void SampleEstimate::add(int window, double value) {
  if (window != number_ && present_.count() != 0) {
    windows_.push_back(window_of(present_));
    present_ = {};
  }
  number_ = window;
  present_.add(value);
  all_.add(value);
}

SampleEstimate::Window SampleEstimate::window_of(const Quantiles& values) {
  const auto count = static_cast<double>(values.count());
  return {count, values.mean() * count, values.curve()};
}

std::vector<SampleEstimate::Window> SampleEstimate::all_windows() const {
  std::vector<Window> all = windows_;
  if (present_.count() != 0) all.push_back(window_of(present_));
  return all;
}

double SampleEstimate::Window::at_most(double value) const {
  // Points are the middles of steps, and the highest value may lie below that of its own.
  constexpr double kStep = 1.002;
  const auto above = std::ranges::upper_bound(curve, value * kStep, {}, &Quantiles::Point::value);
  return above == curve.begin() ? 0 : std::prev(above)->at_most * count;
}

// Of a sum over the count, where windows without values have neither.
double SampleEstimate::half_width(const std::vector<Window>& windows, const std::vector<double>& sums,
                                  int looked_at) const {
  double count = 0, sum = 0, squares = 0;
  for (std::size_t n = 0; n < windows.size(); ++n) {
    count += windows[n].count;
    sum += sums[n];
  }
  for (std::size_t n = 0; n < windows.size(); ++n) {
    const double off = sums[n] - sum / count * windows[n].count;
    squares += off * off;
  }
  const double n = looked_at;
  const boost::math::students_t t(n - 1);
  return boost::math::quantile(boost::math::complement(t, 0.025)) * std::sqrt(n / (n - 1) * squares) / count;
}

SampleEstimate::Estimate SampleEstimate::mean(int looked_at) const {
  const std::vector<Window> windows = all_windows();
  std::vector<double> sums;
  for (const Window& w : windows) sums.push_back(w.sum);
  const double half = half_width(windows, sums, looked_at);
  return {all_.mean(), all_.mean() - half, all_.mean() + half};
}

SampleEstimate::Estimate SampleEstimate::quantile(double share, int looked_at) const {
  const std::vector<Window> windows = all_windows();
  Estimate estimate{all_.at(share), {}, {}};
  std::vector<double> below;
  for (const Window& w : windows) below.push_back(w.at_most(estimate.value));
  const double half = half_width(windows, below, looked_at);
  if (share - half > 0) estimate.low = all_.at(share - half);
  // As high as that lies the highest value, or beyond.
  if ((1 - share - half) * static_cast<double>(all_.count()) >= 1) estimate.high = all_.at(share + half);
  return estimate;
}

Json SampleEstimate::to_json(int looked_at) const {
  const auto put = [](const Estimate& e) {
    const auto end = [](const std::optional<double>& at) { return at ? Json(*at) : Json(); };
    return Json{{"value", e.value}, {"low", end(e.low)}, {"high", end(e.high)}};
  };
  constexpr std::array<std::pair<const char*, double>, 4> kShares{
      {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}}};
  Json all{{"count", count()}, {"mean", put(mean(looked_at))}};
  for (const auto& [name, share] : kShares) all[name] = put(quantile(share, looked_at));
  return all;
}

}  // namespace cm384::observe
