#include "system/host/memory_ranges.h"

#include <algorithm>
#include <iterator>

namespace cm384::host {
namespace {

std::uint64_t aligned(std::uint64_t at, std::uint64_t alignment) {
  return (at + alignment - 1) / alignment * alignment;
}

}  // namespace

std::optional<std::uint64_t> MemoryRanges::allocate(std::uint64_t bytes, std::uint64_t alignment,
                                                    std::uint64_t capacity) {
  bytes = std::max<std::uint64_t>(bytes, 1);
  for (auto hole = holes_.begin(); hole != holes_.end(); ++hole) {
    const std::uint64_t room = hole->second;
    const std::uint64_t start = aligned(hole->first, alignment), before = start - hole->first;
    if (before > room || bytes > room - before) continue;
    holes_.erase(hole);
    if (room > before + bytes) holes_[start + bytes] = room - before - bytes;
    taken_[start] = {bytes, before};
    return start;
  }
  const std::uint64_t start = aligned(end_, alignment);
  if (start > capacity || bytes > capacity - start) return {};
  taken_[start] = {bytes, start - end_};
  end_ = start + bytes;
  return start;
}

std::optional<MemoryRanges::Range> MemoryRanges::release(std::uint64_t begin) {
  const auto found = taken_.find(begin);
  if (found == taken_.end()) return {};
  const Range range{begin, found->second.bytes};
  std::uint64_t first = begin - found->second.before, last = begin + range.bytes;
  taken_.erase(found);
  const auto after = holes_.find(last);
  if (after != holes_.end()) {
    last += after->second;
    holes_.erase(after);
  }
  if (const auto next = holes_.lower_bound(first); next != holes_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == first) {
      first = before->first;
      holes_.erase(before);
    }
  }
  if (last == end_) {
    end_ = first;
  } else {
    holes_[first] = last - first;
  }
  return range;
}

bool MemoryRanges::holds(std::uint64_t begin, std::uint64_t bytes) const {
  const std::uint64_t end = begin + bytes;
  auto range = taken_.upper_bound(begin);
  if (range == taken_.begin()) return false;
  --range;
  // Ranges may follow on each other without a gap.
  for (std::uint64_t at = begin; range != taken_.end() && range->first <= at; ++range) {
    const std::uint64_t range_end = range->first + range->second.bytes;
    if (range_end <= at) return false;
    at = range_end;
    if (at >= end) return true;
  }
  return false;
}

std::uint64_t MemoryRanges::used() const {
  std::uint64_t bytes = end_;
  for (const auto& [begin, room] : holes_) bytes -= room;
  return bytes;
}

}  // namespace cm384::host
