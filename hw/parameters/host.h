// The host's side of a stream: what calls of the runtime cost, and how long its messages take.
#pragma once

#include "hw/parameters/describe.h"

namespace cm384::hw {

struct Host {
  Time call{};
  Time submit_latency{};
  Time doorbell_latency{};
  Time completion_latency{};
  Time message_latency{};

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("call", self.call, Range{Time{0}, 1_ms}, "of a host thread that each call of the runtime takes");
    visit("submit_latency", self.submit_latency, Range{Time{0}, 1_ms},
          "from a call that submits an entry to the entry's leaving the host: runtime and driver");
    visit("doorbell_latency", self.doorbell_latency, Range{Time{0}, 1_ms},
          "of a posted write of the host, of an entry or a doorbell, to a die");
    visit("completion_latency", self.completion_latency, Range{Time{0}, 1_ms},
          "from an entry's completion to its being seen by a host thread that waits for it");
    visit("message_latency", self.message_latency, Range{1_us, 10_ms},
          "of a message between the host threads of two dies; a barrier of host threads takes two");
  }
};

}  // namespace cm384::hw
