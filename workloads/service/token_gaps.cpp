#include "workloads/service/token_gaps.h"

#include <algorithm>

namespace cm384::service {

void TokenGaps::add(Time wait, std::int64_t requests) {
  if (gaps_.size() == most_) merge();
  gaps_.push_back({wait.us() * 1e-3, requests});
}

void TokenGaps::merge() {
  std::ranges::sort(gaps_, {}, &TokenGap::ms);
  std::size_t last = 0;
  for (std::size_t k = 1; k < gaps_.size(); ++k) {
    if (gaps_[k].ms == gaps_[last].ms)
      gaps_[last].requests += gaps_[k].requests;
    else
      gaps_[++last] = gaps_[k];
  }
  gaps_.resize(last + 1);
  most_ = std::max(kFirst, 2 * gaps_.size());
}

void StepGaps::add(Time wait) {
  while (!falling_.empty() && falling_.back().wait <= wait) falling_.pop_back();
  falling_.push_back({count_++, wait});
}

Time StepGaps::longest_since(std::uint32_t count) const {
  const auto first = std::ranges::lower_bound(falling_, count, {}, &Gap::number);
  return first == falling_.end() ? Time{} : first->wait;
}

}  // namespace cm384::service
