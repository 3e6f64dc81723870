#include "system/observe/messages/quantiles.h"

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <cmath>

namespace cm384::observe {

Quantiles::Value::Value(double of) : value(of), step(0) {
  int octave = 0;
  const double mantissa = std::frexp(value, &octave);  // 0.5 to 1
  if (value <= 0 || octave < kLowest) return;
  const int within = std::min(kSteps - 1, static_cast<int>((mantissa - 0.5) * 2 * kSteps));
  step = static_cast<std::uint32_t>((std::min(octave, kHighest) - kLowest) * kSteps + within) + 1;
}

void Quantiles::add(const Value& v) {
  if (counts_.empty()) counts_.resize(static_cast<std::size_t>((kHighest - kLowest + 1) * kSteps) + 1);
  min_ = count_ == 0 ? v.value : std::min(min_, v.value);
  ++count_;
  sum_ += v.value;
  max_ = std::max(max_, v.value);
  ++counts_[v.step];
}

void Quantiles::add(const Quantiles& others) {
  if (others.counts_.empty()) return;
  if (counts_.empty()) counts_.resize(others.counts_.size());
  for (std::size_t n = 0; n < counts_.size(); ++n) counts_[n] += others.counts_[n];
  min_ = count_ == 0 ? others.min_ : std::min(min_, others.min_);
  count_ += others.count_;
  sum_ += others.sum_;
  max_ = std::max(max_, others.max_);
}

namespace {

// The middle of a step.
double value_of(std::size_t step, int steps, int lowest) {
  if (step == 0) return 0;
  const auto n = static_cast<int>(step) - 1;
  return std::ldexp(0.5 + (n % steps + 0.5) / (2.0 * steps), n / steps + lowest);
}

}  // namespace

double Quantiles::of_rank(std::uint64_t rank) const {
  std::uint64_t below = 0;
  for (std::size_t n = 0; n < counts_.size(); ++n) {
    below += counts_[n];
    if (below >= rank) return std::clamp(value_of(n, kSteps, kLowest), min_, max_);
  }
  return max_;
}

double Quantiles::at(double share) const {
  if (count_ == 0) return 0;
  const double rank = std::ceil(static_cast<double>(count_) * share);
  return of_rank(std::clamp<std::uint64_t>(static_cast<std::uint64_t>(rank), 1, count_));
}

Quantiles::Interval Quantiles::interval(double share) const {
  if (count_ == 0) return {};
  // Values below the quantile are as many as successes of a binomial distribution.
  const boost::math::binomial below(static_cast<double>(count_), share);
  Interval found;
  const double low = std::floor(boost::math::quantile(below, 0.025));
  const double high = std::ceil(boost::math::quantile(boost::math::complement(below, 0.025))) + 1;
  // An end exists where the value of its rank is beyond the quantile with that confidence.
  if (low >= 1) found.low = of_rank(static_cast<std::uint64_t>(low));
  if (high <= static_cast<double>(count_)) found.high = of_rank(static_cast<std::uint64_t>(high));
  return found;
}

std::vector<Quantiles::Point> Quantiles::curve() const {
  std::vector<Point> points;
  std::uint64_t so_far = 0;
  for (std::size_t n = 0; n < counts_.size(); ++n) {
    if (counts_[n] == 0) continue;
    so_far += counts_[n];
    points.push_back(
        {value_of(n, kSteps, kLowest), static_cast<double>(so_far) / static_cast<double>(count_)});
  }
  return points;
}

}  // namespace cm384::observe
