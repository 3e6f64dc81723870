// Which accelerator a machine is made of, and the one without cores.
#pragma once

#include <string>

#include "base/text/describe.h"

namespace cm384::hw {

struct Accelerator {
  std::string kind;

  bool has_cores() const { return kind == "ascend"; }

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit(
        "kind", self.kind, OneOf{{"ascend", "transfer-engine"}},
        "what stands at each die's place: the Ascend die, or memory and a queue of transfers without cores");
  }
};

struct TransferEngine {
  int engines = 0;
  Bandwidth bandwidth{};
  Bytes request{};
  int outstanding = 0;
  Time start_latency{};
  Bytes memory{};
  Bandwidth memory_bandwidth{};
  Time memory_read_latency{};
  Time memory_write_latency{};

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("engines", self.engines, Range{1, 4096}, "transfers under way at once, in turn request by request");
    visit("bandwidth", self.bandwidth, Range{1_GBps, 10'000_GBps},
          "rate at which all engines together issue requests");
    visit("request", self.request, Range{32_B, 512_B, 32_B}, "bytes per request at most; a power of two");
    visit("outstanding", self.outstanding, Range{1, 65'536},
          "reads without data at most, and as many writes without acknowledgement, of all engines");
    visit("start_latency", self.start_latency, Range{Time{0}, 1_ms},
          "from a transfer's coming to the queue until its first request may leave");
    visit("memory", self.memory, Range{1_MiB, 64_GiB}, "capacity");
    visit("memory_bandwidth", self.memory_bandwidth, Range{1_GBps, 100'000_GBps},
          "reads and writes together");
    visit("memory_read_latency", self.memory_read_latency, Range{Time{0}, 1_ms}, "of an unloaded read");
    visit("memory_write_latency", self.memory_write_latency, Range{Time{0}, 1_ms},
          "of an unloaded write, to its acknowledgement");
  }
};

}  // namespace cm384::hw
