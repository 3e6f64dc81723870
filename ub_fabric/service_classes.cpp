#include "ub_fabric/service_classes.h"

#include "ub_fabric/wire_format.h"

namespace cm384::ub {
namespace {

Arbitration arbitration_of(const hw::UbQos& qos) {
  if (qos.arbitration == "strict") return Arbitration::strict;
  if (qos.arbitration == "drr") return Arbitration::drr;
  return qos.arbitration == "age" ? Arbitration::age : Arbitration::round_robin;
}

}  // namespace

ServiceClasses::ServiceClasses(const hw::UbQos& qos)
    : count_(static_cast<unsigned>(qos.classes)), arbitration_(arbitration_of(qos)) {
  for (unsigned lane = 0; lane < kMostLanes; ++lane) lanes_[of_lane(lane)] |= 1u << lane;
  const auto flits = static_cast<int>(qos.quantum.count / kFlitBytes);
  for (unsigned c = 0; c < count_; ++c) quanta_[c] = flits * qos.weight(static_cast<int>(c));
}

PacketIndex ClassQueues::pop(PacketPool& packets, unsigned ready) {
  const Arbitration arbitration = turns_.classes().arbitration();
  unsigned chosen = 0;
  if (arbitration == Arbitration::strict || arbitration == Arbitration::drr) {
    chosen = turns_.next(
        0, ready, [&](unsigned c) { return wire_flits(kRequestHeaderBytes, packets[front(c)].bytes); });
  } else {
    chosen = static_cast<unsigned>(std::countr_zero(ready));
    for (unsigned c = chosen + 1; c < turns_.classes().count(); ++c) {
      if (ready >> c & 1 && packets[front(c)].sent < packets[front(chosen)].sent) chosen = c;
    }
  }
  const PacketIndex index = queues_[chosen].pop(packets);
  if (queues_[chosen].empty()) {
    waiting_ &= ~(1u << chosen);
    turns_.emptied(0, chosen);
  }
  return index;
}

TokenBucket::TokenBucket(Bandwidth rate, Bytes burst) {
  if (rate == Bandwidth{}) return;
  constexpr std::int64_t second = 1'000'000'000'000;
  // Below 2^63 at the lowest rate, 1 MB/s.
  per_byte_ = second / rate.bytes_per_second * kFraction +
              second % rate.bytes_per_second * kFraction / rate.bytes_per_second;
  depth_ = burst.count * per_byte_;
}

}  // namespace cm384::ub
