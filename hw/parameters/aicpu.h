// An AICPU of a die: a small processor beside the cores, which fills streams in the host's place.
#pragma once

#include "base/text/describe.h"

namespace cm384::hw {

struct Aicpu {
  Time start{};
  Time entry{};
  Time doorbell_latency{};

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("start", self.start, Range{Time{0}, 1_ms},
          "from the arrival of the host's call until an AICPU begins with the first entry");
    visit("entry", self.entry, Range{Time{0}, 1_ms},
          "time of an AICPU per entry that it writes into a stream");
    visit("doorbell_latency", self.doorbell_latency, Range{Time{0}, 1_ms},
          "latency of a posted write (entry or doorbell) from an AICPU to the scheduler of its die");
  }
};

}  // namespace cm384::hw
