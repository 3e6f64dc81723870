// The SDMA engine of a die: copies between memories without a core.
#pragma once

#include "base/text/describe.h"

namespace cm384::hw {

struct Sdma {
  int channels = 0;
  Time parse_latency{};
  Time translation_latency{};
  Time descriptor_gap{};
  Bandwidth bandwidth{};
  int read_outstanding = 0;
  int write_outstanding = 0;
  int service_level = 0;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("channels", self.channels, Range{1, 64}, "descriptors in flight, each from a different queue");
    visit("parse_latency", self.parse_latency, Range{Time{0}, 1_ms},
          "from the arrival of a descriptor from memory until it is parsed");
    visit("translation_latency", self.translation_latency, Range{Time{0}, 1_ms},
          "time to translate the addresses of a descriptor; pages after the first are translated ahead of "
          "the copy");
    visit("descriptor_gap", self.descriptor_gap, Range{Time{0}, 1_ms},
          "from the end of a descriptor until its channel takes the next one");
    visit("bandwidth", self.bandwidth, Range{1_GBps, 4000_GBps},
          "rate at which all channels together issue requests of 512 B");
    visit("read_outstanding", self.read_outstanding, Range{1, 4096},
          "outstanding read requests, over all channels");
    visit("write_outstanding", self.write_outstanding, Range{1, 4096},
          "outstanding write requests, over all channels");
    visit("service_level", self.service_level, Range{0, 15},
          "of its copies over the Unified Bus (ub.qos); 0: as its die's other requests");
  }
};

}  // namespace cm384::hw
