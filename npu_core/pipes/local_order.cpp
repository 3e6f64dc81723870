#include "npu_core/pipes/local_order.h"

#include <algorithm>
#include <utility>

namespace cm384::npu {

void LocalRanges::add(std::uint32_t offset, std::uint32_t bytes, bool write) {
  const LocalRange range{offset, offset + bytes, write};
  begin_ = std::min(begin_, range.begin);
  end_ = std::max(end_, range.end);
  if (!ranges_.empty() && ranges_.back().end == range.begin && ranges_.back().write == write) {
    ranges_.back().end = range.end;
  } else {
    ranges_.push_back(range);
  }
}

bool LocalRanges::meet(const LocalRange& other) const {
  if (other.begin >= end_ || begin_ >= other.end) return false;
  return std::ranges::any_of(ranges_, [&](const LocalRange& range) { return range.meets(other); });
}

bool LocalRanges::meet(const LocalRanges& other) const {
  if (other.begin_ >= end_ || begin_ >= other.end_) return false;
  return std::ranges::any_of(other.ranges_, [this](const LocalRange& range) { return meet(range); });
}

void LocalOrder::left(int pipe, LocalRanges touched, std::int64_t complete, std::int64_t from) {
  auto& works = works_[static_cast<std::size_t>(pipe)];
  while (!works.empty() && works.front().complete <= from) works.pop_front();
  works.push_back({std::move(touched), complete});
}

void LocalOrder::completed(int pipe, std::int64_t cycle) {
  for (Work& work : works_[static_cast<std::size_t>(pipe)]) {
    if (work.complete != kUnknown) continue;
    work.complete = cycle;
    return;
  }
}

}  // namespace cm384::npu
