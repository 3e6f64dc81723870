// RTL chips among transaction-level ones in a fabric: the same times where packets do not meet, all packets
// under load, ports of another rate, and what the RTL cannot be.
#include <gtest/gtest.h>

#include <array>

#include "base/text/error.h"
#include "testbenches/ub_fabric/switch_exchange/chip_bench.h"

namespace cm384::ub::chip_test {
namespace {

using namespace cm384::literals;
using sim::Operation;
using Settings = std::vector<std::string>;

TEST(RtlChip, TakesAsLongAsTheModelWherePacketsDoNotMeet) {
  // No port is faster than those of dies: at the clock of another link a chip is off by a part of its cycle.
  const Parameters p =
      small({"ub.controller.spreading=flow", "ub.switch.routing=flow", "cpu.bandwidth=40GB/s"});
  std::vector<std::vector<Time>> times;
  for (const bool rtl : {false, true}) {
    FabricBench bench(p, {0, 1, 4, 5});
    std::vector<std::unique_ptr<RtlSwitch>> chips;
    if (rtl) chips = put_rtl(bench, p);
    for (std::uint32_t i = 0; i < 100; ++i) {
      const std::uint64_t to = std::array<std::uint64_t, 3>{1, 4, 5}[i % 3];
      bench.at(0).request(Time{3'000'077} * i, i % 2 ? Operation::read : Operation::write,
                          cm384_gm_die(to, 0) | CM384_GM_VIA_UB_BIT, 512, i, 0, i % 40);
    }
    bench.run();
    times.emplace_back();
    for (const auto& d : bench.at(0).done) times.back().push_back(d.at);
    if (rtl) {
      EXPECT_GT(packets(chips), 300u);
    }
  }
  ASSERT_EQ(times[0].size(), 100u);
  EXPECT_EQ(times[0], times[1]);
}

TEST(RtlChip, CarriesLoadBesideTheModelInTheSameTime) {
  const Parameters p = small();
  EXPECT_NEAR(time_under_load(p, true, 1'500).us() / time_under_load(p, false, 1'500).us(), 1, 0.01);
}

TEST(RtlChip, KeepsToScarceCredits) {
  expect_same_times_with("32", 6);
}

// A socket's port is slower than a die's.
TEST(RtlChip, WaitsForASlowerPort) {
  const Parameters p = small({"topology.sub_planes=1", "cpu.bandwidth=10GB/s"});
  std::array<Time, 2> last;
  for (const bool rtl : {false, true}) {
    FabricBench bench(p, {0, static_cast<unsigned>(p.topology.socket_endpoint(0))});
    std::vector<std::unique_ptr<RtlSwitch>> chips;
    if (rtl) chips = put_rtl(bench, p);
    bench.at(0).stream(Operation::write, 512, 500, 100,
                       [](std::uint64_t i) { return cm384_gm_cpu(0, i % 512 * 512); });
    bench.run();
    EXPECT_EQ(bench.at(0).completions, 500u);
    last[rtl] = bench.at(0).last_done;
  }
  EXPECT_NEAR(last[1].us() / last[0].us(), 1, 0.01);
}

// Sub-planes, links between chips, and lanes of links that have other rates than ub.link.bandwidth.
class RtlChipAtRates : public ::testing::TestWithParam<std::vector<std::string>> {};

TEST_P(RtlChipAtRates, MovesFlitsAtTheRateOfItsLinks) {
  std::vector<std::string> set{"topology.sub_planes=1", "ub.controller.write_interval=0ps"};
  set.insert(set.end(), GetParam().begin(), GetParam().end());
  const Parameters p = small(set);
  EXPECT_NEAR(time_under_load(p, true, 600).us() / time_under_load(p, false, 600).us(), 1, 0.01);
}

INSTANTIATE_TEST_SUITE_P(Rates, RtlChipAtRates,
                         ::testing::Values(std::vector<std::string>{"ub.link.plane_rates=2"},
                                           std::vector<std::string>{"ub.link.plane_rates=0.5"},
                                           std::vector<std::string>{"ub.link.trunk_rate=2"},
                                           std::vector<std::string>{"ub.link.trunk_rate=0.25"}));

TEST(RtlChip, ArbitratesClassesAsTheModelDoes) {
  const Tenants drr = two_tenants({.rtl = true, .arbitration = "drr"}),
                model = two_tenants({.arbitration = "drr"});
  for (unsigned n = 0; n < 2; ++n) EXPECT_NEAR(drr.done[n] / model.done[n], 1, 0.02) << "class " << n;
  const double flits_of[] = {28, 12};  // of 512 and 200 B: 28 B before the payload, 4 B behind
  EXPECT_NEAR(drr.done[1] * flits_of[1] / (drr.done[0] * flits_of[0]), 2, 0.04);
  for (const char* arbitration : {"strict", "drr"}) {
    const Tenants single = two_tenants({.rtl = true, .arbitration = arbitration, .pauses = true}),
                  wanted = two_tenants({.arbitration = arbitration, .pauses = true});
    // A chip picks its next packet a packet's length ahead.
    EXPECT_NEAR(single.longest, wanted.longest, 28 * 0.7143 + 10) << arbitration;
    EXPECT_NEAR(single.done[0] / wanted.done[0], 1, 0.02) << arbitration;
  }
  // Lanes in turn: the writes of 512 B take more than their class's share.
  const Tenants turns = two_tenants({.rtl = true, .arbitration = "round-robin"});
  EXPECT_NEAR(turns.done[1] / turns.done[0], 1, 0.02);
}

std::unique_ptr<RtlSwitch> chip_of(const std::vector<std::string>& set, unsigned ports) {
  const Parameters p = machine(set);
  return make_rtl_switch(p, LinkTimings(p, *Network::of(p.topology), 0).of_chip(0), ports);
}

TEST(RtlChip, SaysWhatItCannotBe) {
  EXPECT_THROW(chip_of({"ub.switch.forwarding=packet-store"}, 16), InputError);
  EXPECT_THROW(chip_of({"ub.link.buffer_cells=257"}, 16), InputError);
  EXPECT_THROW(chip_of({}, 49), InputError);
  EXPECT_THROW(chip_of({"ub.switch.pipeline_latency=3ns"}, 16), InputError);
  EXPECT_NE(chip_of({"ub.switch.pipeline_latency=4ns"}, 16), nullptr);
  EXPECT_THROW(chip_of({"ub.switch.pipeline_latency=4ns", "ub.link.plane_rates=0.5"}, 16), InputError);
  EXPECT_NE(chip_of({"ub.switch.pipeline_latency=3ns", "ub.link.plane_rates=2"}, 16), nullptr);
  EXPECT_THROW(chip_of({"ub.link.lanes=4", "ub.qos.classes=2", "ub.qos.arbitration=age"}, 16), InputError);
  EXPECT_THROW(
      chip_of({"ub.link.lanes=4", "ub.qos.classes=2", "ub.qos.arbitration=drr", "ub.qos.quantum=620B"}, 16),
      InputError);
  EXPECT_NE(
      chip_of({"ub.link.lanes=4", "ub.qos.classes=2", "ub.qos.arbitration=drr", "ub.qos.quantum=640B"}, 16),
      nullptr);
  EXPECT_NE(chip_of({"ub.link.lanes=8"}, 16), nullptr);
  EXPECT_NE(chip_of({"ub.link.lanes=8"}, 48), nullptr);
  // Classes are told apart by a chip of 16 ports alone.
  EXPECT_NE(chip_of({"ub.link.lanes=8", "ub.qos.classes=4", "ub.qos.arbitration=strict"}, 16), nullptr);
  EXPECT_THROW(chip_of({"ub.link.lanes=8", "ub.qos.classes=4", "ub.qos.arbitration=strict"}, 17), InputError);
  EXPECT_NE(chip_of({"ub.link.lanes=8", "ub.qos.classes=4"}, 48), nullptr);
}

// A chip of another model that knows no classes.
struct Turns final : SwitchChip {
  void arrived(ChipHost&, unsigned, Hop) override {}
  void woken(ChipHost&, unsigned) override {}
};

TEST(OtherChip, IsRefusedWhereClassesMatterAndItKnowsNone) {
  PacketPool packets;
  Turns chip;
  const Settings two{"ub.link.lanes=4", "ub.qos.classes=2", "topology.sub_planes=1"};
  for (const bool strict : {false, true}) {
    Settings set = two;
    set.push_back(strict ? "ub.qos.arbitration=strict" : "ub.qos.arbitration=round-robin");
    const Parameters p = machine(set);
    SubPlane plane(0, p, packets, 1, 1);
    if (strict) {
      EXPECT_THROW(plane.install(0, &chip), InputError);
    } else {
      plane.install(0, &chip);
    }
  }
}

}  // namespace
}  // namespace cm384::ub::chip_test
