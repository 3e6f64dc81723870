// How far what a service used is from the machine, over all that an audit has looked at.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>

#include "workloads/frame/row.h"

namespace cm384::studies {

class AuditSum {
 public:
  // A share of the machine's: 0.1 where the service used 10 % more.
  void add(double difference) {
    worst_ = std::max(worst_, std::abs(difference));
    sum_ += std::abs(difference);
    ++count_;
  }
  double worst() const { return worst_; }
  double mean() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }
  // Fields `name`_worst and `name`_mean, without values where nothing was looked at.
  void set(Row& row, const std::string& name) const {
    const bool any = count_ > 0;
    row.set(name + "_worst", any ? Value(worst_) : Value())
        .set(name + "_mean", any ? Value(mean()) : Value());
  }

 private:
  double worst_ = 0, sum_ = 0;
  std::size_t count_ = 0;
};

}  // namespace cm384::studies
