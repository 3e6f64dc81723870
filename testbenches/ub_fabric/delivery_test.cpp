// Nothing is lost, repeated, altered or put out of the order it must keep, and nothing is left behind.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "firmware/abi/memory_map.h"
#include "testbenches/ub_fabric/random_traffic.h"

namespace cm384::ub::delivery_test {
namespace {

using namespace cm384::literals;
using sim::Operation;

struct Variant {
  const char* name;
  std::vector<std::string> overrides;
};

class Delivery : public ::testing::TestWithParam<Variant> {};

TEST_P(Delivery, ExactlyOnceAndUnaltered) {
  const Parameters p = machine(GetParam().overrides);
  std::vector<unsigned> units = kUnits;
  units.push_back(static_cast<unsigned>(p.topology.socket_endpoint(0)));
  units.push_back(static_cast<unsigned>(p.topology.socket_endpoint(191)));
  FabricBench bench(p, units);
  constexpr unsigned kRequests = 1'500;
  random_traffic(bench, p, units, kRequests, 7);
  bench.run();
  expect_all_done_once(bench, units, kRequests);
  expect_no_credit_lost(bench, units);
  std::size_t served = 0;
  for (const unsigned u : units) {
    for (const auto& a : bench.at(u).accesses) {
      ++served;
      if (a.request.operation != Operation::read) {
        ASSERT_EQ(static_cast<unsigned>(a.first), a.request.tag & 0xff);
      }
    }
  }
  EXPECT_EQ(served, units.size() * kRequests);
}

INSTANTIATE_TEST_SUITE_P(
    Variants, Delivery,
    ::testing::Values(
        Variant{"Default", {}}, Variant{"FourLanes", {"ub.link.lanes=4"}},
        Variant{"SixteenLanes", {"ub.link.lanes=16", "ub.link.buffer_cells=4"}},
        Variant{"SmallestBuffers", {"ub.link.buffer_cells=4"}},
        Variant{"Flow", {"ub.switch.routing=flow", "ub.controller.spreading=flow"}},
        Variant{"Adaptive", {"ub.switch.routing=adaptive", "ub.link.buffer_cells=16"}},
        Variant{"Clos3",
                {"topology.kind=clos3", "topology.l2_switches=2", "topology.l3_switches=4",
                 "ub.link.buffer_cells=8"}},
        Variant{"FullMesh", {"topology.kind=full-mesh", "topology.shape=6x4x2", "ub.link.buffer_cells=8"}},
        Variant{"FullMeshValiant",
                {"topology.kind=full-mesh", "topology.shape=6x4x2", "ub.link.buffer_cells=8",
                 "ub.link.lanes=4", "ub.switch.routing=valiant", "ub.controller.target_write_interval=20ns"}},
        Variant{"Torus",
                {"topology.kind=torus", "topology.shape=6x8", "ub.link.buffer_cells=4", "ub.link.lanes=4"}},
        Variant{"TorusTwoPairs",
                {"topology.kind=torus", "topology.shape=6x8", "ub.link.buffer_cells=4", "ub.link.lanes=8"}},
        Variant{"TorusUgal",
                {"topology.kind=torus", "topology.shape=6x8", "ub.link.buffer_cells=4", "ub.link.lanes=8",
                 "ub.switch.routing=ugal"}},
        Variant{"TorusSixteenLanes",
                {"topology.kind=torus", "topology.shape=6x8", "ub.link.buffer_cells=4", "ub.link.lanes=16",
                 "ub.switch.routing=valiant"}},
        Variant{"Mesh", {"topology.kind=mesh", "topology.shape=6x8", "ub.link.buffer_cells=4"}},
        Variant{"Dragonfly",
                {"topology.kind=dragonfly", "topology.groups=4", "topology.global_links=1",
                 "ub.link.buffer_cells=4", "ub.link.lanes=8", "ub.switch.routing=valiant",
                 "ub.controller.target_read_interval=30ns"}},
        Variant{"ManyPorts",
                {"topology.nodes=3", "topology.dies_per_node=256", "topology.sockets_per_node=64",
                 "ub.link.buffer_cells=8"}},
        Variant{"PacketStore", {"ub.switch.forwarding=packet-store", "ub.link.buffer_cells=8"}},
        Variant{"SlowTarget",
                {"ub.controller.target_write_interval=50ns", "ub.controller.target_read_interval=30ns"}},
        Variant{"Drr",
                {"ub.qos.classes=2", "ub.link.lanes=4", "ub.link.buffer_cells=4", "ub.qos.arbitration=drr",
                 "ub.qos.rates=none,20GB/s", "ub.controller.target_write_interval=20ns"}},
        Variant{"StrictTorus",
                {"topology.kind=torus", "topology.shape=6x8", "ub.link.buffer_cells=4", "ub.link.lanes=16",
                 "ub.switch.routing=valiant", "ub.qos.classes=2", "ub.qos.arbitration=strict"}},
        Variant{"DrrDragonfly",
                {"topology.kind=dragonfly", "topology.groups=4", "topology.global_links=1",
                 "ub.link.buffer_cells=4", "ub.link.lanes=16", "ub.switch.routing=valiant",
                 "ub.qos.classes=2", "ub.qos.arbitration=drr", "ub.controller.target_read_interval=30ns"}},
        Variant{"AgeManyPorts",
                {"topology.nodes=3", "topology.dies_per_node=256", "topology.sockets_per_node=64",
                 "ub.link.buffer_cells=8", "ub.qos.arbitration=age"}},
        Variant{"OneSlot", {"ub.controller.read_outstanding=1", "ub.controller.write_outstanding=1"}}),
    [](const auto& test) { return std::string(test.param.name); });

// Of two planes one lacks chips and links that ways lead by: what comes by the other, or around, comes once.
TEST(Broken, EverythingArrivesOnceByWhatIsLeft) {
  using Case = std::pair<bool, const char*>;  // a mesh or not; how requests are spread over planes
  for (const auto& [mesh, spreading] : {Case{false, "least-loaded"}, Case{true, "least-loaded"},
                                        Case{false, "round-robin"}, Case{false, "flow"}}) {
    SCOPED_TRACE(spreading);
    const std::string spread = fmt::format("ub.controller.spreading={}", spreading);
    const Parameters p = mesh ? machine({"topology.kind=full-mesh", "topology.shape=6x8",
                                         "topology.sub_planes=2", "ub.link.lanes=4", spread})
                              : machine({"topology.sub_planes=2", "ub.link.buffer_cells=8", spread});
    FabricBench bench(p, kUnits);
    const Network& whole = bench.plane(0).network();
    Outage outage;
    if (mesh) {
      for (unsigned chip = 1; chip < 5; ++chip)
        outage.cables.push_back(whole.link(whole.link_between(0, chip)).cable);
      outage.chips = {whole.chip_of(40)};
    } else {
      outage.chips = {whole.chip("l2chip", 3), whole.chip_of(40)};
      outage.endpoints = {2};
      outage.cables = {whole.link(link_up(bench.plane(0), 0, 5)).cable};
    }
    bench.plane(0).set_network(std::make_shared<const Network>(whole.layout(), outage));
    for (const unsigned u : kUnits) bench.at(u).controller.networks_changed();
    random_traffic(bench, p, kUnits, 1'500, 3);
    bench.run();
    expect_all_done_once(bench, kUnits, 1'500);
    expect_no_credit_lost(bench, kUnits);
    for (unsigned n = 0; n < bench.plane(0).network().links(); ++n) {
      const Network::Link& l = bench.plane(0).network().link(n);
      const bool out = std::ranges::count(outage.chips, l.chip) != 0 ||
                       (l.peer != Network::kNoLink && std::ranges::count(outage.cables, l.cable) != 0);
      if (out) {
        ASSERT_EQ(bench.plane(0).links().counters(n).packets, 0u) << n;
      }
    }
    EXPECT_GT(bench.plane(0).packet_hops(), 0u);
  }
}

// A target without an interval serves each request as it is delivered, and the sub-plane gives its cells back
// by itself; one with an interval keeps it and gives them back. An interval so short that no two requests of
// one flow meet in it changes no time.
TEST(Credits, ComeBackAlikeFromATargetThatHoldsRequestsAndOneThatDoesNot) {
  const auto run = [](const char* interval) {
    const Parameters p = machine({"ub.link.buffer_cells=8", "ub.controller.spreading=flow",
                                  std::string("ub.controller.target_read_interval=") + interval,
                                  std::string("ub.controller.target_write_interval=") + interval});
    FabricBench bench(p, {0, 16});
    for (unsigned i = 0; i < 400; ++i) {
      const auto operation = i % 3 == 0 ? Operation::read : Operation::write;
      bench.at(0).request(1_ns * static_cast<std::int64_t>(3 * i), operation, address_of(p, 16, i * 512),
                          i % 5 == 0 ? 512 : 96, i);
    }
    bench.run();
    std::vector<std::pair<unsigned, std::int64_t>> done;
    for (const auto& d : bench.at(0).done) done.emplace_back(d.tag, d.at.ps);
    return done;
  };
  const auto at_once = run("0ps");
  EXPECT_EQ(at_once.size(), 400u);
  EXPECT_EQ(at_once, run("1ps"));
}

// Which module of a window runs first changes nothing, to the picosecond.
TEST(Order, OfModulesInAWindowDoesNotMatter) {
  const Parameters p = machine({"ub.link.buffer_cells=8"});
  std::vector<std::vector<std::pair<std::uint32_t, Time>>> runs[2];
  for (const bool reversed : {false, true}) {
    FabricBench bench(p, kUnits);
    bench.reversed = reversed;
    random_traffic(bench, p, kUnits, 2'000, 11);
    bench.run();
    for (const unsigned u : kUnits) {
      runs[reversed].emplace_back();
      for (const auto& d : bench.at(u).done) runs[reversed].back().emplace_back(d.tag, d.at);
    }
  }
  EXPECT_EQ(runs[0], runs[1]);
}

TEST(Order, SeedMovesSprayAndNothingElseDoes) {
  const auto run = [](std::uint64_t seed) {
    const Parameters p = machine();
    FabricBench bench(p, kUnits, seed);
    random_traffic(bench, p, kUnits, 2'000, 11);
    bench.run();
    std::vector<std::int64_t> times;
    for (const unsigned u : kUnits) {
      for (const auto& d : bench.at(u).done) times.push_back(d.at.ps);
    }
    return times;
  };
  EXPECT_EQ(run(1), run(1));
  EXPECT_NE(run(1), run(2));
}

// One flow by one port and one L2 chip arrives in the order it was sent, for each core and lane.
TEST(Order, HoldsWithinAFlow) {
  const Parameters p =
      machine({"ub.switch.routing=flow", "ub.controller.spreading=flow", "ub.link.buffer_cells=8"});
  FabricBench bench(p, kUnits);
  for (const unsigned u : kUnits) {
    if (u == 40) continue;
    for (std::uint32_t i = 0; i < 1'000; ++i) {
      const auto bytes = static_cast<std::uint32_t>(1 + mix(i) % 512);
      bench.at(u).request(Time{static_cast<std::int64_t>(i) * 500}, Operation::write, cm384_gm_die(40, 0),
                          bytes, u * 1'000 + i, 0, i % 4);
    }
  }
  bench.run();
  std::map<std::uint32_t, std::uint32_t> last;  // by source and core
  for (const auto& a : bench.at(40).accesses) {
    const std::uint32_t key = a.request.tag / 1'000 * 64 + a.request.core;
    if (last.contains(key)) {
      ASSERT_LT(last[key], a.request.tag);
    }
    last[key] = a.request.tag;
  }
  EXPECT_EQ(bench.at(40).accesses.size(), 8'000u);
}

TEST(AddressFault, ComesBackToTheInitiator) {
  const Parameters p = machine();
  FabricBench bench(p, {0, 1, 17});
  bench.at(17).memory_bytes = 1 << 20;
  bench.at(1).memory_bytes = 1 << 20;
  bench.at(0).request(0_ns, Operation::read, cm384_gm_die(17, 1 << 20), 512, 1);
  bench.at(0).request(0_ns, Operation::write, cm384_gm_die(17, 1 << 20), 512, 2);
  bench.at(0).request(0_ns, Operation::read, cm384_gm_die(768, 0), 512, 3);
  bench.at(0).request(0_ns, Operation::write, cm384_gm_cpu(192, 0), 512, 4);
  bench.at(0).request(0_ns, Operation::read, cm384_gm_die(1, 1 << 20), 512, 5);
  bench.at(0).request(0_ns, Operation::read, cm384_gm_die(17, 0), 512, 6);
  bench.run();
  ASSERT_EQ(bench.at(0).done.size(), 6u);
  for (const auto& d : bench.at(0).done) {
    EXPECT_EQ(d.outcome, d.tag == 6 ? sim::Outcome::done : sim::Outcome::address_fault) << d.tag;
  }
  EXPECT_EQ(bench.at(0).controller.counters().faults, 5u);
  EXPECT_EQ(bench.packets.in_use(), 0u);
  EXPECT_EQ(bench.payloads.in_use(), 0u);
}

}  // namespace
}  // namespace cm384::ub::delivery_test
