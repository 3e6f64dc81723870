// A controller with service classes, or with rates.
#include "ub_fabric/controller.h"

namespace cm384::ub {

UbController::ByClass::ByClass(const hw::UbQos& qos, unsigned port_count, unsigned die_level)
    : classes(qos),
      level(die_level),
      ports(classes, port_count),
      issuing{ClassQueues(classes), ClassQueues(classes)},
      serving{ClassQueues(classes), ClassQueues(classes)} {
  for (std::vector<TokenBucket>& of_direction : buckets) {
    for (int c = 0; c < qos.classes; ++c) of_direction.emplace_back(qos.rate(c), qos.burst);
  }
}

// As issue(), among the classes whose rates let their next request go.
void UbController::issue_by_class(Direction d, Time now) {
  Initiator& side = initiator_[d];
  ClassQueues& waiting = by_class_->issuing[d];
  std::vector<TokenBucket>& buckets = by_class_->buckets[d];
  while (!waiting.empty() && side.free_slots > 0) {
    Time soonest = side.next;
    unsigned ready = 0;
    if (side.next <= now) {
      soonest = Time::never();
      for (unsigned left = waiting.waiting(); left != 0; left &= left - 1) {
        const auto c = static_cast<unsigned>(std::countr_zero(left));
        const Time at = buckets[c].earliest(packets_[waiting.front(c)].bytes);
        if (at <= now) ready |= 1u << c;
        soonest = std::min(soonest, at);
      }
    }
    if (ready == 0) {
      Time& wake = by_class_->wake[d];
      if (wake > now && wake <= soonest) return;
      wake = soonest;
      queue_.push(soonest, unit_, kIssue, d);
      return;
    }
    const PacketIndex index = waiting.pop(packets_, ready);
    const Packet& p = packets_[index];
    buckets[by_class_->classes.of_lane(p.lane)].spend(p.bytes, now);
    --side.free_slots;
    side.next = now + side.interval;
    start(index, now);
  }
}

// Removes the request that is served next. Requires that one waits.
PacketIndex UbController::next_served(Direction d) {
  if (by_class_ == nullptr || by_class_->serving[d].empty()) return serving_[d].waiting.pop(packets_);
  ClassQueues& waiting = by_class_->serving[d];
  return waiting.pop(packets_, waiting.waiting());
}

}  // namespace cm384::ub
