// Timing of a CPU socket's DRAM: a fixed latency behind one shared data bus.
#pragma once

#include <cstdint>

#include "base/text/units.h"
#include "hw/parameters/ub.h"

namespace cm384::ub {

class SocketDram {
 public:
  explicit SocketDram(const hw::CpuSocket& parameters)
      : clock_(Bytes{1}, parameters.memory_bandwidth),
        read_latency_(parameters.memory_read_latency),
        write_latency_(parameters.memory_write_latency) {}

  // When the data (read) or the acknowledgement (write) of an access at `now` is there.
  Time access(bool write, std::int64_t bytes, Time now) {
    const std::int64_t start = clock_.tick_at_or_after(now);
    const std::int64_t first = free_ < start ? start : free_;
    free_ = first + bytes;
    ++accesses_;
    bytes_ += static_cast<std::uint64_t>(bytes);
    const Time queued = first == start ? Time{} : clock_.start(first) - now;
    return now + queued + (write ? write_latency_ : read_latency_);
  }

  std::uint64_t accesses() const { return accesses_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  Clock clock_;
  Time read_latency_;
  Time write_latency_;
  std::int64_t free_ = 0;  // byte tick at which the bus is free
  std::uint64_t accesses_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace cm384::ub
