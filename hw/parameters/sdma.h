// The SDMA engine of a die: copies between memories without a core.
#pragma once

#include "hw/parameters/describe.h"

namespace cm384::hw {

struct Sdma {
  int channels = 0;
  Time parse_latency{};
  Time translation_latency{};
  Time descriptor_gap{};
  Bandwidth bandwidth{};
  int read_outstanding = 0;
  int write_outstanding = 0;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("channels", self.channels, Range{1, 64}, "descriptors under way at a time, each of another queue");
    visit("parse_latency", self.parse_latency, Range{Time{0}, 1_ms},
          "from a descriptor's arrival from memory to its being understood");
    visit("translation_latency", self.translation_latency, Range{Time{0}, 1_ms},
          "to translate a descriptor's addresses; pages after the first are translated ahead of the copy");
    visit("descriptor_gap", self.descriptor_gap, Range{Time{0}, 1_ms},
          "from a descriptor's end to its channel's taking the next one");
    visit("bandwidth", self.bandwidth, Range{1_GBps, 4000_GBps},
          "rate at which all channels together send requests of 512 B");
    visit("read_outstanding", self.read_outstanding, Range{1, 4096},
          "read requests without their data, of all channels");
    visit("write_outstanding", self.write_outstanding, Range{1, 4096},
          "write requests without their acknowledgement, of all channels");
  }
};

}  // namespace cm384::hw
