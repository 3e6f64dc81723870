// The host's side of a stream: what calls of the runtime cost, and how long its messages take.
#pragma once

#include "base/text/describe.h"

namespace cm384::hw {

struct Host {
  Time call{};
  Time submit_latency{};
  Time doorbell_latency{};
  Time completion_latency{};
  Time message_latency{};

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("call", self.call, Range{Time{0}, 1_ms}, "time of a host thread per runtime call");
    visit("submit_latency", self.submit_latency, Range{Time{0}, 1_ms},
          "from the call that submits an entry until the entry leaves the host: runtime and driver");
    visit("doorbell_latency", self.doorbell_latency, Range{Time{0}, 1_ms},
          "latency of a posted write (entry or doorbell) from the host to a die");
    visit("completion_latency", self.completion_latency, Range{Time{0}, 1_ms},
          "from the completion of an entry until the host thread waiting for it sees it");
    visit("message_latency", self.message_latency, Range{1_us, 10_ms},
          "latency of a message between the host threads of two dies; a barrier of host threads takes two");
  }
};

}  // namespace cm384::hw
