// One direction of the link between the two dies of a package: serialises packets in the order of their
// coming at its byte rate.
#pragma once

#include <cstdint>

#include "base/text/units.h"
#include "hw/parameters/ub.h"

namespace cm384::ub {

class PackageLink {
 public:
  explicit PackageLink(const hw::PackageLink& parameters)
      : clock_(Bytes{1}, parameters.bandwidth),
        latency_(parameters.latency),
        header_(parameters.header.count) {}

  // Sends a packet with `payload` bytes at or after `now`; returns when all of it is at the other die.
  Time send(std::int64_t payload, Time now) {
    const std::int64_t start = clock_.tick_at_or_after(now);
    if (free_ < start) free_ = start;
    free_ += payload + header_;
    ++packets_;
    bytes_ += static_cast<std::uint64_t>(payload + header_);
    return clock_.start(free_) + latency_;
  }

  std::uint64_t packets() const { return packets_; }
  std::uint64_t bytes() const { return bytes_; }
  Time busy() const { return clock_.start(static_cast<std::int64_t>(bytes_)); }

 private:
  Clock clock_;
  Time latency_;
  std::int64_t header_;
  std::int64_t free_ = 0;  // byte tick
  std::uint64_t packets_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace cm384::ub
