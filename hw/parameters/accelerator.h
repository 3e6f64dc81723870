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
  int memory_stacks = 0;
  Bandwidth memory_bandwidth{};
  Time memory_read_latency{};
  Time memory_write_latency{};

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("engines", self.engines, Range{1, 4096}, "transfers under way at once, in turn request by request");
    visit("bandwidth", self.bandwidth, Range{1_GBps, 10'000_GBps},
          "rate at which all engines together issue requests");
    visit("request", self.request, Range{32_B, 512_B, 32_B},
          "bytes per request at most, but of 512 B on the RDMA plane; a power of two");
    visit("outstanding", self.outstanding, Range{1, 65'536},
          "reads without data at most, and as many writes without acknowledgement, of all engines");
    visit("start_latency", self.start_latency, Range{Time{0}, 1_ms},
          "from a transfer's coming to the queue until its first request may leave");
    visit("memory", self.memory, Range{1_MiB, 64_GiB}, "capacity");
    visit("memory_stacks", self.memory_stacks, Range{1, 64},
          "stacks of memory; counted, no time depends on it");
    visit("memory_bandwidth", self.memory_bandwidth, Range{1_GBps, 100'000_GBps},
          "reads and writes together");
    visit("memory_read_latency", self.memory_read_latency, Range{Time{0}, 1_ms}, "of an unloaded read");
    visit("memory_write_latency", self.memory_write_latency, Range{Time{0}, 1_ms},
          "of an unloaded write, to its acknowledgement");
  }
};

// Compute units of an accelerator without cores, as the kernels of an exchange use them, and all of them
// together as operators at grade formula do: nothing runs on them instruction by instruction.
struct Processor {
  int units = 0;
  Bandwidth unit_bandwidth{};
  double bf16_tflops = 0, fp8_tflops = 0, int8_tops = 0;
  double product_efficiency = 0, attention_efficiency = 0, memory_efficiency = 0;
  Time launch_latency{};
  Time barrier_latency{};
  Time post_latency{};
  Time poll_latency{};
  Time end_latency{};

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("units", self.units, Range{1, 4096}, "compute units, such as streaming multiprocessors");
    visit("unit_bandwidth", self.unit_bandwidth, Range{1_GBps, 10'000_GBps},
          "rate at which one unit moves bytes, those read and those written together");
    visit("bf16_tflops", self.bf16_tflops, Range{0.0, 1e6},
          "dense peak of all units in BF16, 10^12 operations per second, two for a multiply-add");
    visit("fp8_tflops", self.fp8_tflops, Range{0.0, 1e6}, "the same in FP8; 0: has none");
    visit("int8_tops", self.int8_tops, Range{0.0, 1e6}, "the same in INT8; 0: has none");
    visit("product_efficiency", self.product_efficiency, Range{0.01, 1.0},
          "share of these peaks that large products reach");
    visit("attention_efficiency", self.attention_efficiency, Range{0.01, 1.0},
          "share of them that attention reaches");
    visit("memory_efficiency", self.memory_efficiency, Range{0.01, 1.0},
          "share of transfer_engine.memory_bandwidth that a kernel's reads and writes reach");
    visit("launch_latency", self.launch_latency, Range{Time{0}, 1_ms},
          "from a kernel's turn until its units work");
    visit("barrier_latency", self.barrier_latency, Range{Time{0}, 1_ms},
          "until all units have told one another that they have come so far");
    visit("post_latency", self.post_latency, Range{Time{0}, 1_ms},
          "of a unit that writes a work request for the network interface and rings its doorbell");
    visit("poll_latency", self.poll_latency, Range{Time{0}, 1_ms},
          "from a flag in the memory until a unit that polls it acts");
    visit("end_latency", self.end_latency, Range{Time{0}, 1_ms},
          "from the last unit's last instruction to the end of the kernel");
  }
};

}  // namespace cm384::hw
