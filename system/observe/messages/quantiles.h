// Quantiles of any number of values in constant memory: a histogram of 256 steps an octave, so that what it
// says is within 0.2 % of the value of that rank.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace cm384::observe {

class Quantiles {
 public:
  // A value and the step of the histogram that it falls into, found once for all that count it.
  struct Value {
    explicit Value(double of);
    double value;
    std::uint32_t step;
  };
  // Adds a value of at least 0; below 2^-25 it counts as 0.
  void add(double value) { add(Value(value)); }
  void add(const Value& value);
  void add(const Quantiles& others);
  std::uint64_t count() const { return count_; }
  double mean() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }
  double max() const { return max_; }
  // The value of rank ceil(count * share); of no values 0.
  double at(double share) const;
  // With 95 % confidence for independent values: from order statistics. Nothing where there are too few
  // values to say.
  struct Interval {
    std::optional<double> low, high;
  };
  Interval interval(double share) const;
  // Steps that hold values, as value and share of values at most it; for a curve.
  struct Point {
    double value = 0, at_most = 0;
  };
  std::vector<Point> curve() const;

 private:
  static constexpr int kSteps = 256, kLowest = -24, kHighest = 40;
  double of_rank(std::uint64_t rank) const;

  std::vector<std::uint64_t> counts_;
  std::uint64_t count_ = 0;
  double sum_ = 0, min_ = 0, max_ = 0;
};

}  // namespace cm384::observe
