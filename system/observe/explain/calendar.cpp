#include "system/observe/explain/calendar.h"

#include <algorithm>

namespace cm384::observe {

double Calendar::reserve(double at, double service) {
  if (at < free_) [[unlikely]]
    return reserve_idle_time(at, service);
  if (at > free_) add({free_, at});
  free_ = at + service;
  return at;
}

double Calendar::reserve_idle_time(double at, double service) {
  double begin = free_;
  const auto take_idle = [&begin, &service](double from, double idle) {
    begin = std::min(begin, from);
    const double taken = std::min(idle, service);
    service -= taken;
    return taken;
  };
  if (first_ < last_ && at < gaps_[first_].begin) {
    const auto last = static_cast<std::int32_t>(gaps_[first_].begin / kBin) + 1;
    const auto first = static_cast<std::int32_t>(std::max(at, 0.0) / kBin) + 1;
    for (auto n = std::max(first, last - static_cast<std::int32_t>(kBins) + 1); n <= last && service > 0;
         ++n) {
      const std::size_t place = static_cast<std::uint32_t>(n) % kBins;
      if (bin_[place] != n || idle_[place] <= 0) continue;
      idle_[place] -=
          static_cast<float>(take_idle(std::max(at, (n - 1) * kBin), static_cast<double>(idle_[place])));
    }
  }
  const auto* const those = gaps_.data();
  auto n = static_cast<std::size_t>(
      std::upper_bound(those + first_, those + last_, at, [](double t, const Gap& g) { return t < g.end; }) -
      those);
  while (n < last_ && service > 0) {
    Gap& gap = gaps_[n];
    const double from = std::max(at, gap.begin);
    const Gap after{from + take_idle(from, gap.end - from), gap.end};
    const bool before = from > gap.begin;
    gap.end = from;
    if (after.begin >= after.end) {  // all of it
      if (before) {
        ++n;
      } else {
        std::copy(gaps_.data() + n + 1, gaps_.data() + last_, gaps_.data() + n);
        --last_;
      }
    } else if (!before) {
      gap = after;
    } else if (n == first_ && last_ - first_ == kGaps) {
      forget(gap);
      gap = after;
    } else {
      if (last_ - first_ == kGaps) forget(gaps_[first_++]);
      if (last_ == gaps_.size()) {
        n -= first_;
        move_down();
      }
      std::copy_backward(gaps_.data() + n + 1, gaps_.data() + last_, gaps_.data() + last_ + 1);
      ++last_;
      gaps_[n + 1] = after;
    }
  }
  free_ += service;
  return begin;
}

void Calendar::move_down() {
  std::copy(gaps_.data() + first_, gaps_.data() + last_, gaps_.data());
  last_ -= first_;
  first_ = 0;
}

void Calendar::add(const Gap& gap) {
  if (last_ - first_ == kGaps) forget(gaps_[first_++]);
  if (last_ == gaps_.size()) move_down();
  gaps_[last_++] = gap;
}

void Calendar::forget(const Gap& gap) {
  const auto last = static_cast<std::int32_t>(gap.end / kBin) + 1;
  const auto first =
      std::max(static_cast<std::int32_t>(gap.begin / kBin) + 1, last - static_cast<std::int32_t>(kBins) + 1);
  for (std::int32_t n = first; n <= last; ++n) {
    const std::size_t place = static_cast<std::uint32_t>(n) % kBins;
    if (bin_[place] > n) continue;
    if (bin_[place] < n) {
      bin_[place] = n;
      idle_[place] = 0;
    }
    const double begin = std::max(gap.begin, (n - 1) * kBin), end = std::min(gap.end, n * kBin);
    idle_[place] += static_cast<float>(std::max(0.0, end - begin));
  }
}

}  // namespace cm384::observe
