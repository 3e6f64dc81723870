// A die: its core clock, its cores, and what it costs them to meet.
#pragma once

#include "base/text/describe.h"

namespace cm384::hw {

struct Die {
  Frequency clock{};
  int aic = 0;
  int aiv = 0;
  Frequency sys_count{};
  Time sync_all_latency{};
  Time cross_core_flag_latency{};

  // Groups of an AIC and two AIVs, which kernels on both kinds of core run on.
  constexpr int groups() const { return aic < aiv / 2 ? aic : aiv / 2; }

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("clock", self.clock, Range{100_MHz, 4_GHz}, "core clock of scalar units, pipes and local buffers");
    visit("aic", self.aic, Range{0, 64}, "AIC (cube) cores per die available to programs");
    visit("aiv", self.aiv, Range{1, 64}, "AIV (vector) cores per die available to programs");
    visit("sys_count", self.sys_count, Range{1_MHz, 4_GHz}, "rate of the system counter that programs read");
    visit("sync_all_latency", self.sync_all_latency, Range{1_ps, 100_us},
          "from the arrival of the last core at an all-core barrier (cross-core flag of mode 0) until the "
          "waiting cores resume");
    visit("cross_core_flag_latency", self.cross_core_flag_latency, Range{1_ps, 100_us},
          "from setting a cross-core flag (modes 1 and 2: between an AIC and its two AIVs) until it is seen");
  }
};

}  // namespace cm384::hw
