// Events of a service, in the order of their times; those of one moment in the order in which they came up.
#pragma once

#include <cstdint>
#include <queue>

#include "base/text/error.h"
#include "base/text/units.h"

namespace cm384::service {

struct Event {
  enum class Kind : std::uint8_t {
    arrival,
    prefill_done,
    transferred,
    swapped_in,
    mixed_done,
    scale,
    scaled_up,
    step_done,
    outage,
    back,
    die_lost,
    resume_prefill,
    resume_decode,
    plane_lost,
    plane_back,
    role_switch,
    role_taken
  };
  Time at{};
  std::uint64_t order = 0;
  Kind kind = Kind::arrival;
  std::uint32_t subject = 0,
                epoch = 0;  // of the request or instance; another epoch: it does not count any more
  bool operator<(const Event& o) const { return at != o.at ? at > o.at : order > o.order; }
};

class EventLine {
 public:
  // Throws InputError beyond the end of the clock, which is 2^63 ps.
  void push(Time at, Event::Kind kind, std::uint32_t subject, std::uint32_t epoch = 0) {
    if (at < now_)
      throw InputError("a service's clock ends after 106 days; allowed: a load that is served before");
    events_.push({at, order_++, kind, subject, epoch});
  }
  bool empty() const { return events_.empty(); }
  Time next_at() const { return events_.top().at; }
  // Removes the next event and advances the clock to it.
  Event pop() {
    const Event event = events_.top();
    events_.pop();
    now_ = event.at;
    return event;
  }
  Time now() const { return now_; }

 private:
  std::priority_queue<Event> events_;
  std::uint64_t order_ = 0;
  Time now_{};
};

}  // namespace cm384::service
