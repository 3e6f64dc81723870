// Chips, links and lanes that go out of order while traffic runs: what is lost is sent again, nothing is
// performed twice, no credit is lost, and the times are those of closed forms.
#include "ub_fabric/breaks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/text/error.h"
#include "testbenches/ub_fabric/random_traffic.h"

namespace cm384::ub::breaks_test {
namespace {

using namespace cm384::literals;
using sim::Operation;

// 35,000 flits of a die's port: what is sent again meets the same ticks.
constexpr Time kTimeout = 25_us;
const std::string kWithTimeout = "ub.controller.resend_timeout=25us";

void break_at(FabricBench& bench, unsigned plane, const std::map<Time, Outage>& outages) {
  auto table = bench.plane(plane).shared_network();
  for (auto& unit : bench.units()) unit->controller.networks_changed();
  for (const auto& [at, more] : outages) {
    table = std::make_shared<const Network>(table->layout(), table->outage() + more);
    bench.plane(plane).change_at({at, table});
    for (auto& unit : bench.units()) unit->controller.change_at(plane, {at, table});
  }
  for (auto& unit : bench.units()) unit->controller.networks_changed();
}

Outage of_chip(const FabricBench& bench, const char* kind, unsigned number) {
  return {.chips = {const_cast<FabricBench&>(bench).plane(0).network().chip(kind, number)},
          .cables = {},
          .endpoints = {}};
}

struct Single {
  Time done;
  std::size_t accesses = 0;
  std::uint64_t lost = 0, resent = 0, repeated = 0, late = 0;
};

// One request of die 0 to die 16, over sub-plane 0 first.
Single single(Operation operation, Time at, const char* kind, unsigned number) {
  FabricBench bench(machine({kWithTimeout}), {0, 16});
  if (at != Time{}) break_at(bench, 0, {{at, of_chip(bench, kind, number)}});
  bench.at(0).request(0_ns, operation, cm384_gm_die(16, 0), 512, 7);
  bench.run();
  EXPECT_EQ(bench.at(0).done.size(), 1u);
  EXPECT_EQ(bench.packets.in_use(), 0u);
  EXPECT_EQ(bench.payloads.in_use(), 0u);
  Single s;
  s.done = bench.at(0).done.at(0).at;
  s.accesses = bench.at(16).accesses.size();
  s.lost = bench.plane(0).lost();
  s.resent = bench.at(0).controller.counters().resent;
  s.repeated = bench.at(16).controller.counters().repeated;
  s.late = bench.at(0).controller.counters().late;
  return s;
}

// By closed form: the timeout and what the way takes.
TEST(Breaks, ALostRequestTakesTheTimeoutMore) {
  for (const Operation operation : {Operation::read, Operation::write, Operation::atomic_add_s32}) {
    const Single whole = single(operation, Time{}, "", 0);
    EXPECT_EQ(whole.lost, 0u);
    for (const auto& [kind, number] : {std::pair{"l1chip", 0u}, {"l1chip", 1u}}) {
      // The translation is there after 500 ns; the head is at the second chip 450 ns later.
      const Single broken = single(operation, 510_ns, kind, number);
      EXPECT_EQ(broken.done, whole.done + kTimeout) << kind << number;
      EXPECT_EQ(broken.accesses, 1u);
      EXPECT_EQ(broken.lost, 1u);
      EXPECT_EQ(broken.resent, 1u);
      EXPECT_EQ(broken.repeated, 0u);
      EXPECT_EQ(broken.late, 0u);
    }
  }
}

// The target has performed it: it answers again at once, and does not perform it twice.
TEST(Breaks, ALostResponseIsAnsweredAgain) {
  for (const Operation operation : {Operation::read, Operation::write, Operation::atomic_add_s32}) {
    const Single whole = single(operation, Time{}, "", 0);
    const Single broken = single(operation, whole.done - 250_ns, "l1chip", 0);
    EXPECT_EQ(broken.done, whole.done + kTimeout);
    EXPECT_EQ(broken.accesses, 1u);
    EXPECT_EQ(broken.lost, 1u);
    EXPECT_EQ(broken.resent, 1u);
    EXPECT_EQ(broken.repeated, 1u);
  }
}

// To the picosecond: a chip that breaks as a head leaves its pipeline still loses it, 1 ps later it has gone.
// A link loses a tail that has not reached its endpoint.
TEST(Breaks, LoseWhatIsThereThen) {
  const Single whole = single(Operation::write, Time{}, "", 0);
  // 500 ns translation, 100 ns link, 100 ns chip.
  EXPECT_EQ(single(Operation::write, 700_ns, "l1chip", 0).lost, 1u);
  EXPECT_EQ(single(Operation::write, 700_ns + 1_ps, "l1chip", 0).lost, 0u);
  EXPECT_EQ(single(Operation::write, 700_ns + 1_ps, "l1chip", 0).done, whole.done);
  const auto port = [&](Time at) {
    FabricBench bench(machine({kWithTimeout}), {0, 16});
    break_at(bench, 0, {{at, {.chips = {}, .cables = {}, .endpoints = {0}}}});
    bench.at(0).request(0_ns, Operation::write, cm384_gm_die(16, 0), 512, 7);
    bench.run();
    return bench.plane(0).lost();
  };
  // The tail of the response is at the port 50 ns, its latency there, before the completion.
  EXPECT_EQ(port(whole.done - 50_ns), 0u);
  EXPECT_EQ(port(whole.done - 50_ns - 1_ps), 1u);
}

// A response that has no way in its request's sub-plane any more takes another; nothing is lost.
TEST(Breaks, AResponseTakesAnotherSubPlane) {
  FabricBench bench(machine({kWithTimeout}), {0, 16});
  bench.at(16).write_latency = 10_us;
  break_at(bench, 0, {{5_us, of_chip(bench, "l1chip", 1)}});
  bench.at(0).request(0_ns, Operation::write, cm384_gm_die(16, 0), 512, 7);
  bench.run();
  ASSERT_EQ(bench.at(0).done.size(), 1u);
  EXPECT_LT(bench.at(0).done[0].at, 13_us);
  EXPECT_EQ(bench.plane(0).lost(), 0u);
  EXPECT_EQ(bench.at(16).controller.ports().counters(0).packets, 0u);
}

struct Variant {
  const char* name;
  std::vector<std::string> overrides;
};

class BreaksUnderTraffic : public ::testing::TestWithParam<Variant> {};

// Chips and links at random times, sub-plane 6 alone stays whole.
TEST_P(BreaksUnderTraffic, LoseNothingAndRepeatNothing) {
  std::uint64_t lost = 0, rerouted = 0, repeated = 0;
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    std::vector<std::vector<std::pair<std::uint32_t, Time>>> runs[2];
    for (const bool reversed : {false, true}) {
      std::vector<std::string> overrides = GetParam().overrides;
      overrides.push_back("ub.controller.resend_timeout=3us");
      const Parameters p = machine(overrides);
      FabricBench bench(p, kUnits);
      bench.reversed = reversed;
      const Network& network = bench.plane(0).network();
      for (unsigned plane = 0; plane < 6; ++plane) {
        std::map<Time, Outage> outages;
        for (unsigned k = 0; k < 6; ++k) {
          const std::uint64_t r = mix(seed * 1'000 + plane * 10 + k);
          Outage& more = outages[Time{static_cast<std::int64_t>(r % 4'000'000)}];
          if (k % 3 == 0) {
            more.chips.push_back(network.chip_of(static_cast<Endpoint>(kUnits[r >> 32 & 7])));
          } else if (k % 3 == 1) {
            more.endpoints.push_back(static_cast<Endpoint>(kUnits[r >> 32 & 7]));
          } else if (network.chip("l2chip", 0) != Network::kNoLink) {
            more.chips.push_back(network.chip("l2chip", static_cast<unsigned>(r >> 32 & 1)));
          } else {
            more.cables.push_back(static_cast<unsigned>((r >> 32) % network.layout().cables.size()));
          }
        }
        break_at(bench, plane, outages);
      }
      constexpr unsigned kRequests = 700;
      random_traffic(bench, p, kUnits, kRequests, seed);
      bench.run();
      expect_all_done_once(bench, kUnits, kRequests);
      expect_no_credit_lost(bench, kUnits);
      std::size_t performed = 0;
      for (const unsigned u : kUnits) {
        performed += bench.at(u).accesses.size();
        repeated += bench.at(u).controller.counters().repeated;
        runs[reversed].emplace_back();
        for (const auto& d : bench.at(u).done) runs[reversed].back().emplace_back(d.tag, d.at);
      }
      EXPECT_EQ(performed, kUnits.size() * kRequests);
      for (unsigned plane = 0; plane < 7; ++plane) {
        lost += bench.plane(plane).lost();
        rerouted += bench.plane(plane).rerouted();
      }
      EXPECT_EQ(bench.plane(6).lost(), 0u);
    }
    EXPECT_EQ(runs[0], runs[1]) << "which module runs first";
  }
  EXPECT_GT(lost, 50u);
  EXPECT_GT(repeated, 10u);
  RecordProperty("rerouted", static_cast<int>(rerouted));
}

INSTANTIATE_TEST_SUITE_P(
    Variants, BreaksUnderTraffic,
    ::testing::Values(
        Variant{"Default", {"topology.l2_switches=2"}},
        Variant{"SmallestBuffers", {"topology.l2_switches=2", "ub.link.buffer_cells=4"}},
        Variant{"Flow", {"topology.l2_switches=2", "ub.switch.routing=flow", "ub.controller.spreading=flow"}},
        Variant{"Held", {"topology.l2_switches=2", "ub.controller.target_write_interval=20ns"}},
        Variant{"Stored", {"topology.l2_switches=2", "ub.switch.forwarding=packet-store"}},
        Variant{"FullMesh", {"topology.kind=full-mesh", "topology.shape=6x4x2", "ub.link.lanes=4"}},
        Variant{"FullMeshValiant",
                {"topology.kind=full-mesh", "topology.shape=6x4x2", "ub.link.lanes=4",
                 "ub.link.buffer_cells=8", "ub.switch.routing=valiant"}},
        Variant{"Torus",
                {"topology.kind=torus", "topology.shape=6x8", "ub.link.buffer_cells=4", "ub.link.lanes=8"}}),
    [](const auto& variant) { return std::string(variant.param.name); });

// Those that wait for a dead output at an L1 chip take another L2 chip, in order of their inputs.
TEST(Breaks, WaitingPacketsTakeAnotherOutput) {
  const Parameters p = machine({"topology.l2_switches=2", "ub.link.trunk_rate=0.05", kWithTimeout});
  FabricBench bench(p, {0, 1, 2, 16});
  break_at(bench, 0, {{3_us, of_chip(bench, "l2chip", 0)}});
  for (const unsigned u : {0u, 1u, 2u}) {
    for (unsigned i = 0; i < 300; ++i)
      bench.at(u).request(0_ns, Operation::write, cm384_gm_die(16, i * 512), 512, i);
  }
  bench.run();
  expect_all_done_once(bench, {0, 1, 2}, 300);
  EXPECT_GT(bench.plane(0).rerouted(), 20u);
  EXPECT_EQ(bench.at(16).accesses.size(), 900u);
  expect_no_credit_lost(bench, {0, 1, 2, 16});
}

// From 40 us on a quarter of the lanes is left, which is a quarter of the bytes by 28 flits for 512 of them.
TEST(Breaks, LanesThatFailLeaveTheirShare) {
  const Parameters p = machine({"topology.sub_planes=1"});
  FabricBench bench(p, {0, 16});
  bench.at(0).stream(Operation::write, 512, 4'000, 200,
                     [](std::uint64_t i) { return cm384_gm_die(16, i % 4096 * 512); });
  const unsigned link = bench.plane(0).link_to_endpoint(0);
  bench.plane(0).narrow_at({40_us, link, 0.25});
  bench.at(0).controller.narrow_at(40_us, 0, 0.25);
  const auto done_by = [&](Time t) {
    return std::ranges::count_if(bench.at(0).done, [&](const auto& d) { return d.at < t; });
  };
  bench.run(40_us);
  const double at_first = static_cast<double>(bench.at(0).controller.ports().counters(0).packets);
  bench.run();
  ASSERT_EQ(bench.at(0).done.size(), 4'000u);
  const double before = static_cast<double>(done_by(38_us) - done_by(18_us)) * 512 / 20'000;
  const double after = static_cast<double>(done_by(80_us) - done_by(50_us)) * 512 / 30'000;
  EXPECT_NEAR(before, 28 * 512.0 / 560, 0.03 * 25.6);
  EXPECT_NEAR(after, 28 * 512.0 / 560 / 4, 0.03 * 6.4);
  // What it has sent at each rate is all that its wire was taken for: 28 flits of 20 B a write.
  const double busy = bench.at(0).controller.ports().busy(0).us();
  EXPECT_NEAR(busy, (at_first + (4'000 - at_first) * 4) * 0.020, 0.001 * busy);
}

TEST(Breaks, AreRefusedBesideAnotherModelsChip) {
  struct Nothing final : SwitchChip {
    void arrived(ChipHost&, unsigned, Hop) override {}
    void woken(ChipHost&, unsigned) override {}
  } model;
  FabricBench bench(machine(), {0, 16});
  bench.plane(0).install(0, &model);
  EXPECT_THROW(bench.plane(0).change_at({1_us, bench.plane(0).shared_network()}), InputError);
  bench.plane(1).change_at({1_us, bench.plane(1).shared_network()});
  EXPECT_THROW(bench.plane(1).install(0, &model), InputError);
}

}  // namespace
}  // namespace cm384::ub::breaks_test
