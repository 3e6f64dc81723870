// The transaction-level chip against the RTL, same packets: what the tests hold both to.
#pragma once

#include <gtest/gtest.h>

#include "hw/machine.h"
#include "workloads/fabric/switch_bench.h"

namespace cm384::studies {

inline hw::Machine machine_with_bare_chip(std::vector<std::string> more = {}) {
  // As long as the RTL alone takes: nothing hides a difference.
  more.push_back("ub.switch.pipeline_latency=4ns");
  return hw::load_machine("cloudmatrix384", more);
}

inline SwitchReading measure(const hw::Machine& machine, SwitchCase setting, bool rtl) {
  setting.rtl = rtl;
  const SwitchReading r = run_switch(machine, setting);
  EXPECT_EQ(r.sent, setting.packets + setting.packets / 5);
  EXPECT_EQ(r.delivered, r.sent);
  EXPECT_EQ(r.wrong, 0u) << "packets out of order, twice or at a wrong port";
  return r;
}

// Runs every load of both models; gives back the packets that went through them.
inline std::uint64_t compare(const hw::Machine& machine, SwitchCase setting,
                             const std::vector<double>& loads) {
  std::uint64_t packets = 0;
  setting.offered = 0;
  double saturation[2];
  for (const bool rtl : {false, true}) {
    const SwitchReading r = measure(machine, setting, rtl);
    packets += r.delivered;
    saturation[rtl] = r.accepted;
  }
  EXPECT_NEAR(saturation[1] / saturation[0], 1, 0.03);
  for (const double load : loads) {
    SwitchReading readings[2];
    for (const bool rtl : {false, true}) {
      setting.offered = load * saturation[rtl];
      readings[rtl] = measure(machine, setting, rtl);
      packets += readings[rtl].delivered;
    }
    SCOPED_TRACE(testing::Message() << pattern_names()[static_cast<std::size_t>(setting.pattern)] << ", load "
                                    << load);
    const auto near = [](double rtl, double tlm, double tolerance) { EXPECT_NEAR(rtl / tlm, 1, tolerance); };
    near(readings[1].latency_ns.mean, readings[0].latency_ns.mean, load > 0.7 ? 0.15 : 0.05);
    near(readings[1].chip_latency_ns.mean, readings[0].chip_latency_ns.mean, load > 0.7 ? 0.15 : 0.05);
    if (load <= 0.7) near(readings[1].latency_ns.p99, readings[0].latency_ns.p99, 0.10);
  }
  return packets;
}

}  // namespace cm384::studies
