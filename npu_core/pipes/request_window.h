// An engine's outstanding requests to its own die's memory: bounded in bytes of whole sectors, whose buffer
// space frees in the order of the requests.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace cm384::npu {

class RequestWindow {
 public:
  static constexpr std::uint32_t kSectorBytes = 128;
  // Sectors that a request touches; memory moves whole ones.
  static std::uint32_t sectors_of(std::uint64_t address, std::uint32_t bytes) {
    return (static_cast<std::uint32_t>(address % kSectorBytes) + bytes + kSectorBytes - 1) / kSectorBytes;
  }

  // The time (ps, `at` at least) from which a request of so many sectors has room in a window of `limit`
  // bytes.
  std::int64_t room(std::uint32_t sectors, std::int64_t limit, std::int64_t at) {
    const std::int64_t needed = std::int64_t{sectors} * kSectorBytes;
    while (bytes_ != 0 && bytes_ + needed > limit) {
      const std::uint64_t oldest = ring_[first_++ & mask()];
      bytes_ -= static_cast<std::int64_t>(oldest & 7) * kSectorBytes;
      at = std::max(at, static_cast<std::int64_t>(oldest >> 3));
    }
    return at;
  }
  // A request of 1 to 7 sectors has left; its answer comes at `done` (ps).
  void add(std::uint32_t sectors, std::int64_t done) {
    freed_ = std::max(freed_, done);
    if (last_ - first_ == ring_.size()) grow();
    ring_[last_++ & mask()] = static_cast<std::uint64_t>(freed_) << 3 | sectors;
    bytes_ += std::int64_t{sectors} * kSectorBytes;
  }
  void clear() {
    first_ = last_ = 0;
    bytes_ = 0;
  }
  // Asks the host's cache for what the next calls touch.
  void prefetch() const {
    if (ring_.empty()) return;
    __builtin_prefetch(&ring_[first_ & mask()]);
    __builtin_prefetch(&ring_[last_ & mask()], 1);
  }

 private:
  std::size_t mask() const { return ring_.size() - 1; }
  void grow() {
    std::vector<std::uint64_t> larger(std::max<std::size_t>(32, ring_.size() * 2));
    for (std::uint32_t n = first_; n != last_; ++n) larger[n & (larger.size() - 1)] = ring_[n & mask()];
    ring_.swap(larger);
  }

  std::vector<std::uint64_t> ring_;  // a power of two; time freed << 3 | sectors, in order of issue
  std::uint32_t first_ = 0, last_ = 0;
  std::int64_t bytes_ = 0, freed_ = 0;
};

}  // namespace cm384::npu
