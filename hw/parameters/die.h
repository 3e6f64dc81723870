// A die: its core clock, its cores, and what it costs them to meet.
#pragma once

#include "hw/parameters/describe.h"

namespace cm384::hw {

struct Die {
  Frequency clock{};
  int aic = 0;
  int aiv = 0;
  Frequency sys_count{};
  Time sync_all_latency{};
  Time cross_core_flag_latency{};
  double peak_bf16_tflops = 0;
  double peak_int8_tops = 0;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("clock", self.clock, Range{100_MHz, 4_GHz}, "core clock: scalar units, pipes and local buffers");
    visit("aic", self.aic, Range{0, 64}, "AIC (cube) cores a die that programs may use");
    visit("aiv", self.aiv, Range{1, 64}, "AIV (vector) cores a die that programs may use");
    visit("sys_count", self.sys_count, Range{1_MHz, 4_GHz}, "rate of the system counter that programs read");
    visit("sync_all_latency", self.sync_all_latency, Range{1_ps, 100_us},
          "from the last core's arrival at an all-cores barrier (cross-core flag of mode 0) to the time the "
          "waiting cores go on");
    visit(
        "cross_core_flag_latency", self.cross_core_flag_latency, Range{1_ps, 100_us},
        "from a cross-core flag's setting (modes 1 and 2: within an AIC and its two AIVs) to its being seen");
    visit("peak_bf16_tflops", self.peak_bf16_tflops, Range{0.0, 1e6},
          "peak BF16 rate of a die in TFLOPS: the reference that utilisations are taken against");
    visit("peak_int8_tops", self.peak_int8_tops, Range{0.0, 1e6},
          "peak INT8 rate of a die in TOPS: the reference that utilisations are taken against");
  }
};

}  // namespace cm384::hw
