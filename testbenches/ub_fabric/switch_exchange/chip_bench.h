// A fabric with RTL chips among transaction-level ones.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "firmware/abi/memory_map.h"
#include "testbenches/ub_fabric/fabric_bench.h"
#include "ub_fabric/rtl_switch.h"

namespace cm384::ub {

// Chips of two nodes' level one and one of level two, in every sub-plane, as RTL.
inline std::vector<std::unique_ptr<RtlSwitch>> put_rtl(FabricBench& bench, const Parameters& p) {
  std::vector<std::unique_ptr<RtlSwitch>> chips;
  for (unsigned plane = 0; plane < bench.planes(); ++plane) {
    const Network& network = bench.plane(plane).network();
    for (const unsigned chip : {0u, 1u, network.chip("l2chip", 0)}) {
      chips.push_back(make_rtl_switch(p, bench.plane(plane).timings().of_chip(chip), network.ports(chip)));
      bench.plane(plane).install(chip, chips.back().get());
    }
  }
  return chips;
}

// A machine whose chips have at most 16 ports, for speed.
inline Parameters small(std::vector<std::string> more = {}) {
  std::vector<std::string> overrides{"topology.nodes=4", "topology.dies_per_node=4",
                                     "topology.sockets_per_node=2", "topology.l2_switches=4",
                                     "topology.sub_planes=2"};
  overrides.insert(overrides.end(), more.begin(), more.end());
  return machine(overrides);
}

inline std::uint64_t packets(const std::vector<std::unique_ptr<RtlSwitch>>& chips) {
  std::uint64_t sum = 0;
  for (const auto& chip : chips) sum += chip->counters().packets;
  return sum;
}

// Requests and their answers cross two RTL chips of level one and some the RTL chip of level two, beside
// transaction-level ones. `second`: what the second die does.
inline Time time_under_load(const Parameters& p, bool rtl, std::uint64_t requests,
                            sim::Operation second = sim::Operation::write, std::uint64_t seed = 1) {
  FabricBench bench(p, {0, 2, 4, 6}, seed);
  std::vector<std::unique_ptr<RtlSwitch>> chips;
  if (rtl) chips = put_rtl(bench, p);
  for (const unsigned d : {0u, 2u}) {
    bench.at(d).stream(d == 0 ? sim::Operation::write : second, 512, requests, 200,
                       [](std::uint64_t i) { return cm384_gm_die(4 + i % 2 * 2, i % 512 * 512); });
  }
  bench.run();
  EXPECT_EQ(bench.at(0).completions, requests);
  EXPECT_EQ(bench.at(2).completions, requests);
  if (rtl) {
    EXPECT_GT(packets(chips), 4 * requests);
  }
  return std::max(bench.at(0).last_done, bench.at(2).last_done);
}

// Two dies of one node write to a third, one in each class, so that the third's link has to choose. `pauses`:
// the second die makes single requests. A library: the node has 16 dies, and its chip, of 36 ports, is that
// of it.
struct TenantsCase {
  bool rtl = false;
  std::string arbitration;
  bool pauses = false;
  bool wide = false;
  std::string library = {};
};
// Requests of each that are done within 30 us, and the longest of the single ones, in ns.
struct Tenants {
  std::array<double, 2> done{};
  double longest = 0;
};
inline Tenants two_tenants(const TenantsCase& of) {
  using namespace cm384::literals;
  std::vector<std::string> set{"topology.sub_planes=1",
                               "ub.link.lanes=4",
                               "ub.qos.classes=2",
                               "ub.controller.write_interval=0ps",
                               "ub.controller.write_outstanding=4000",
                               "ub.qos.arbitration=" + of.arbitration};
  if (of.arbitration == "drr") set.push_back("ub.qos.weights=1,2");
  if (of.wide) set.push_back("topology.nodes=2");
  const Parameters p = of.wide ? machine(set) : small(set);
  FabricBench bench(p, {0, 1, 2});
  std::vector<std::unique_ptr<RtlSwitch>> chips;
  if (of.rtl && of.wide) {
    chips.push_back(make_rtl_switch(p, bench.plane(0).timings().of_chip(0), bench.plane(0).network().ports(0),
                                    of.library));
    bench.plane(0).install(0, chips.back().get());
  } else if (of.rtl) {
    chips = put_rtl(bench, p);
  }
  const auto target = [](std::uint64_t i) { return cm384_gm_die(0, i % 512 * 512) | CM384_GM_VIA_UB_BIT; };
  bench.at(1).logs = false;
  bench.at(1).stream(sim::Operation::write, 512, 10'000'000, 400, target, 0);
  if (of.pauses) {
    for (std::uint32_t i = 0; i < 14; ++i)
      bench.at(2).request(6_us + Time{700'123} * i, sim::Operation::write, target(i), 200, i, 1, i % 40);
  } else {
    bench.at(2).logs = false;
    bench.at(2).stream(sim::Operation::write, 200, 10'000'000, 400, target, 1);
  }
  bench.run(6_us);
  const std::array<std::uint64_t, 2> before{bench.at(1).completions, bench.at(2).completions};
  bench.run(16_us);
  Tenants found;
  for (unsigned n = 0; n < 2; ++n)
    found.done[n] = static_cast<double>(bench.at(1 + n).completions - before[n]);
  for (const auto& d : bench.at(2).done) {
    const Time made = 6_us + Time{700'123} * static_cast<std::int64_t>(d.tag);
    found.longest = std::max(found.longest, (d.at - made).ns());
  }
  if (of.rtl) {
    EXPECT_GT(packets(chips), 1000u);
  }
  return found;
}

// With credits for a few packets much hangs on who gets them first, and one run may take a tenth more or less
// than another whose packets only start at other L2 chips. So many such runs are compared: what is left is
// what the chips do differently. Writes beside reads put packets of one and of four cells on both lanes.
inline void expect_same_times_with(const char* cells, std::uint64_t runs) {
  const Parameters p = small({std::string("ub.link.buffer_cells=") + cells});
  for (const sim::Operation second : {sim::Operation::write, sim::Operation::read}) {
    Time model, rtl;
    for (std::uint64_t seed = 1; seed <= runs; ++seed) {
      model += time_under_load(p, false, 150, second, seed);
      rtl += time_under_load(p, true, 150, second, seed);
    }
    EXPECT_NEAR(rtl.us() / model.us(), 1, 0.03)
        << cells << " cells, beside " << (second == sim::Operation::read ? "reads" : "writes");
  }
}

}  // namespace cm384::ub
