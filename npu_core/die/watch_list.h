// Address watches of polling cores: which cores to notify when a write touches a range of the die's memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace cm384::npu {

// One range per core. Most writes are payload and lie outside all ranges: one comparison with the bounding
// range dismisses them.
class WatchList {
 public:
  explicit WatchList(std::size_t cores) : ranges_(cores) {}
  void resize(std::size_t cores) { ranges_.resize(cores); }

  // Watches [offset, offset + bytes) for `core`, replacing its range; 0 bytes ends it.
  void set(std::uint16_t core, std::uint64_t offset, std::uint64_t bytes) {
    ranges_[core] = {offset, offset + bytes};
    low_ = UINT64_MAX;
    high_ = 0;
    for (const Range& r : ranges_) {
      if (r.begin == r.end) continue;
      low_ = std::min(low_, r.begin);
      high_ = std::max(high_, r.end);
    }
  }

  // Calls notify(core) for every core whose range the write touches, in order of core numbers.
  template <class Notify>
  void written(std::uint64_t offset, std::uint64_t bytes, Notify&& notify) const {
    if (offset >= high_ || offset + bytes <= low_) return;
    for (std::size_t core = 0; core < ranges_.size(); ++core) {
      if (offset < ranges_[core].end && ranges_[core].begin < offset + bytes)
        notify(static_cast<std::uint16_t>(core));
    }
  }

 private:
  struct Range {
    std::uint64_t begin = 0, end = 0;
  };
  std::vector<Range> ranges_;
  std::uint64_t low_ = UINT64_MAX, high_ = 0;
};

}  // namespace cm384::npu
