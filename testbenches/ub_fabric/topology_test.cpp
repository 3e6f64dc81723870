// Kinds of topology: what they are made of, the length of their ways against closed forms, unloaded latency
// to the picosecond, bisection bandwidth, and that ways which could deadlock are refused.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <bit>

#include "base/text/error.h"
#include "firmware/abi/memory_map.h"
#include "testbenches/hw/refusal.h"
#include "testbenches/ub_fabric/fabric_bench.h"
#include "ub_fabric/topology/kinds.h"

namespace cm384::ub::topology_test {
namespace {

using namespace cm384::literals;
using ::cm384::refusal;
using sim::Operation;
using ::testing::HasSubstr;

struct Kind {
  const char* name;
  std::vector<std::string> parameters;  // 64 dies, a chip per die or per two
  unsigned chips, cables;
  // Links between the chips of two dies, by arithmetic on their numbers alone.
  unsigned (*hops)(unsigned a, unsigned b);
};

unsigned ring(unsigned a, unsigned b, unsigned length) {
  const unsigned up = (b + length - a) % length;
  return std::min(up, length - up);
}

const Kind kKinds[] = {
    {"Clos",
     {"topology.kind=clos", "topology.nodes=16", "topology.dies_per_node=4", "topology.l2_switches=3"},
     19,
     48,
     [](unsigned a, unsigned b) { return a / 4 == b / 4 ? 0u : 2u; }},
    {"Clos3",
     {"topology.kind=clos3", "topology.nodes=16", "topology.dies_per_node=4", "topology.groups=4",
      "topology.l2_switches=2", "topology.l3_switches=6"},
     16 + 8 + 6,
     32 + 24,
     [](unsigned a, unsigned b) { return a / 4 == b / 4     ? 0u
                                         : a / 16 == b / 16 ? 2u
                                                            : 4u; }},
    {"FullMesh4D",
     {"topology.kind=full-mesh", "topology.nodes=16", "topology.dies_per_node=4", "topology.shape=4x2x2x4"},
     64,
     64 * (3 + 1 + 1 + 3) / 2,
     [](unsigned a, unsigned b) {
       return static_cast<unsigned>((a % 4 != b % 4) + (a / 4 % 2 != b / 4 % 2) + (a / 8 % 2 != b / 8 % 2) +
                                    (a / 16 != b / 16));
     }},
    {"Torus3D",
     {"topology.kind=torus", "topology.nodes=16", "topology.dies_per_node=4", "topology.shape=4x2x5",
      "topology.nodes=20", "topology.dies_per_node=4", "ub.link.lanes=4"},
     40,
     40 + 20 + 40,
     [](unsigned a, unsigned b) {
       a /= 2, b /= 2;
       return ring(a % 4, b % 4, 4) + ring(a / 4 % 2, b / 4 % 2, 2) + ring(a / 8, b / 8, 5);
     }},
    {"Mesh3D",
     {"topology.kind=mesh", "topology.shape=4x2x5", "topology.nodes=20", "topology.dies_per_node=4"},
     40,
     30 + 20 + 32,
     [](unsigned a, unsigned b) {
       const auto line = [](unsigned x, unsigned y) { return x < y ? y - x : x - y; };
       a /= 2, b /= 2;
       return line(a % 4, b % 4) + line(a / 4 % 2, b / 4 % 2) + line(a / 8, b / 8);
     }},
    {"Star",
     {"topology.kind=star", "topology.nodes=16", "topology.dies_per_node=4"},
     17,
     16,
     [](unsigned a, unsigned b) { return a / 4 == b / 4 ? 0u : 2u; }},
    // Groups of four chips with two links each to others: one link to each of eight other groups.
    {"Dragonfly",
     {"topology.kind=dragonfly", "topology.nodes=36", "topology.dies_per_node=2", "topology.groups=9",
      "topology.global_links=2", "ub.link.lanes=4"},
     36,
     9 * 6 + 36,
     [](unsigned a, unsigned b) {
       a /= 2, b /= 2;
       const unsigned ga = a / 4, gb = b / 4;
       if (ga == gb) return a == b ? 0u : 1u;
       // The link to the group k + 1 further on is that of chip k / 2.
       const unsigned out = (gb + 9 - ga) % 9 - 1, back = (ga + 9 - gb) % 9 - 1;
       return 1u + (a % 4 != out / 2) + (b % 4 != back / 2);
     }},
};

Parameters of(const Kind& kind, std::vector<std::string> more = {}) {
  std::vector<std::string> all = kind.parameters;
  all.insert(all.begin(), {"topology.sub_planes=1", "topology.sockets_per_node=0"});
  all.insert(all.end(), more.begin(), more.end());
  return machine(all);
}

class EveryKind : public ::testing::TestWithParam<Kind> {};

TEST_P(EveryKind, IsMadeOfItsParts) {
  const Parameters p = of(GetParam());
  const auto network = Network::of(p.topology);
  EXPECT_EQ(network->chips(), GetParam().chips);
  EXPECT_EQ(network->layout().cables.size(), GetParam().cables);
  EXPECT_EQ(network->links(), 2 * GetParam().cables + static_cast<unsigned>(p.topology.dies()));
}

// Whatever way is taken at each chip.
TEST_P(EveryKind, AllWaysAreShortest) {
  const Parameters p = of(GetParam());
  const auto network = Network::of(p.topology);
  const auto dies = static_cast<unsigned>(p.topology.dies());
  for (unsigned a = 0; a < dies; ++a) {
    for (unsigned b = 0; b < dies; ++b) {
      const unsigned from = network->chip_of(static_cast<Endpoint>(a)),
                     to = network->chip_of(static_cast<Endpoint>(b));
      ASSERT_EQ(network->hops(from, to), GetParam().hops(a, b)) << a << " to " << b;
      if (from == to) continue;
      ASSERT_FALSE(network->ways(from, to).empty());
      for (const std::uint16_t port : network->ways(from, to)) {
        const auto& link = network->link(network->first_link(from) + port);
        ASSERT_EQ(network->hops(network->link(link.peer).chip, to) + 1, network->hops(from, to));
      }
    }
  }
}

// Every chip of the way takes its pipeline, every link its latency and a wait for the next flit's tick.
Time one_way(const Parameters& p, Time start, unsigned hops, int flits) {
  const Clock die(Bytes{20}, p.ub.link.bandwidth);
  const Clock trunk(Bytes{20},
                    Bandwidth{static_cast<std::int64_t>(
                        static_cast<double>(p.ub.link.bandwidth.bytes_per_second) * p.ub.link.trunk_rate)});
  Time head =
      die.start(die.tick_at_or_after(start)) + p.ub.link.endpoint_latency + p.ub.switch_chip.pipeline_latency;
  for (unsigned k = 0; k < hops; ++k) {
    head = trunk.start(trunk.tick_at_or_after(head));
    // Flits that come slower than they go on must not run out.
    if (k + 1 == hops && p.ub.link.trunk_rate < 1) head += trunk.start(flits) - die.start(flits);
    head += p.ub.link.trunk_latency + p.ub.switch_chip.pipeline_latency;
  }
  return die.start(die.tick_at_or_after(head) + flits) + p.ub.link.endpoint_latency;
}

Time measured(const Parameters& p, unsigned target, Time at) {
  FabricBench bench(p, {0, target});
  bench.at(0).request(0_ns, Operation::read, cm384_gm_die(target, 0), 32, 1);  // fills the translation cache
  bench.at(0).request(at, Operation::write, cm384_gm_die(target, 0x1000), 512, 2);
  bench.run();
  return bench.at(0).done.at(1).at;
}

TEST_P(EveryKind, UnloadedLatencyIsTheSumOfItsStages) {
  for (const char* taper : {"ub.link.trunk_rate=1", "ub.link.trunk_rate=0.5"}) {
    const Parameters p = of(GetParam(), {taper});
    for (const unsigned target : {2u, 5u, 17u, static_cast<unsigned>(p.topology.dies()) - 1}) {
      const unsigned hops = GetParam().hops(0, target), back = GetParam().hops(target, 0);
      const Time at{10'000'123};
      Time t = one_way(p, at, hops, 28) + p.ub.controller.write_inbound_latency;
      t = one_way(p, t, back, 1) + p.ub.controller.completion_latency;
      // Roundings of slow trunks' ticks: a flit's border, to the picosecond.
      EXPECT_NEAR(static_cast<double>(measured(p, target, at).ps), static_cast<double>(t.ps), 2)
          << taper << target;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, EveryKind, ::testing::ValuesIn(kKinds),
                         [](const auto& test) { return std::string(test.param.name); });

// Dies of one half write to those of the other: what crosses the cut in a second is what its links carry,
// less the header.
double across(const std::vector<std::string>& parameters, unsigned dies) {
  const Parameters p = machine(parameters);
  std::vector<unsigned> all(dies);
  for (unsigned d = 0; d < dies; ++d) all[d] = d;
  FabricBench bench(p, all);
  for (unsigned d = 0; d < dies / 2; ++d) {
    bench.at(d).logs = false;
    bench.at(d).stream(Operation::write, 512, 8'000, 500,
                       [=](std::uint64_t i) { return cm384_gm_die(dies / 2 + d, i % 512 * 512); });
  }
  bench.run();
  Time last{};
  for (unsigned d = 0; d < dies / 2; ++d) last = std::max(last, bench.at(d).last_done);
  return static_cast<double>(dies / 2 * 8'000 * 512) / static_cast<double>(last.ps) * 1e3;  // GB/s
}

TEST(Bisection, BoundsWhatCrossesIt) {
  const std::vector<std::string> base = {"topology.sub_planes=1",
                                         "topology.sockets_per_node=0",
                                         "topology.nodes=8",
                                         "topology.dies_per_node=2",
                                         "ub.controller.write_interval=0ps",
                                         "ub.controller.write_outstanding=65536"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), base.begin(), base.end());
    return across(more, 16);
  };
  const double flit = 512.0 / 560.0;  // 28 flits of 20 B carry 512 B
  // Full Clos: the dies' own links bind. 2:1: half of that.
  EXPECT_NEAR(with({"topology.l2_switches=2"}), 8 * 28 * flit, 0.03 * 8 * 28);
  EXPECT_NEAR(with({"topology.l2_switches=2", "ub.link.trunk_rate=0.5"}), 8 * 14 * flit, 0.03 * 8 * 14);
  EXPECT_NEAR(with({"topology.l2_switches=1"}), 8 * 14 * flit, 0.03 * 8 * 14);
  // Node n writes to node n + 4 of a ring of eight: half go up and half down, by the two links that cross.
  for (const char* routing : {"spray", "adaptive"})
    EXPECT_NEAR(with({"topology.kind=torus", "topology.shape=8", "ub.link.lanes=4",
                      fmt::format("ub.switch.routing={}", routing)}),
                2 * 28 * flit, 0.03 * 2 * 28)
        << routing;
  // Of a line without its closing link all go by one.
  EXPECT_NEAR(with({"topology.kind=mesh", "topology.shape=8"}), 28 * flit, 0.03 * 28);
  // Of a full mesh each pair has a link of its own for two dies.
  EXPECT_NEAR(with({"topology.kind=full-mesh", "topology.shape=8"}), 4 * 28 * flit, 0.03 * 4 * 28);
}

// Every die of a group writes to the next group, whose one link carries it all; by other groups there are
// more.
TEST(Routing, DetoursGetAroundOneLink) {
  const auto mesh = [](const std::string& routing) {
    return across({"topology.sub_planes=1", "topology.sockets_per_node=0", "topology.nodes=8",
                   "topology.dies_per_node=4", "topology.kind=full-mesh", "topology.shape=8",
                   "ub.link.lanes=4", "ub.controller.write_interval=0ps", "ub.switch.routing=" + routing},
                  32);
  };
  const double direct = mesh("minimal"), detours = mesh("valiant"), both = mesh("ugal");
  EXPECT_NEAR(direct, 4 * 28 * 512.0 / 560.0, 4.0);
  EXPECT_GT(detours, 1.4 * direct);
  EXPECT_GT(both, 1.4 * direct);
}

TEST(Routing, MinimalKeepsADestinationToOneWay) {
  const Parameters p = machine({"ub.switch.routing=minimal", "topology.sub_planes=1"});
  FabricBench bench(p, {0, 16, 17});
  for (unsigned i = 0; i < 200; ++i)
    bench.at(0).request(Time{static_cast<std::int64_t>(i) * 1'000}, Operation::write,
                        cm384_gm_die(16 + i % 2, 0), 512, i);
  bench.run();
  for (unsigned l2 = 0; l2 < 16; ++l2) {
    EXPECT_EQ(bench.plane(0).links().counters(link_up(bench.plane(0), 0, l2)).packets, l2 < 2 ? 100u : 0u)
        << l2;
  }
}

TEST(Lanes, AreAsManyAsTheTopologyNeeds) {
  const auto refused = [](std::vector<std::string> parameters) {
    parameters.push_back("topology.sub_planes=1");
    return refusal([&] { FabricBench bench(machine(parameters), {0}); });
  };
  EXPECT_THAT(refused({"topology.kind=torus"}),
              HasSubstr("ub.link.lanes: 2 lanes do not keep this topology"));
  EXPECT_THAT(refused({"topology.kind=torus", "ub.switch.routing=valiant", "ub.link.lanes=6"}),
              HasSubstr("at least 8"));
  EXPECT_THAT(refused({"ub.switch.routing=ugal"}), HasSubstr("has no detours to draw from"));
  EXPECT_THAT(refused({"topology.kind=full-mesh", "topology.shape=5x5"}), HasSubstr("do not share"));
  EXPECT_THAT(refused({"topology.kind=dragonfly", "topology.groups=6", "topology.global_links=1"}),
              HasSubstr("equally often"));
  EXPECT_THAT(refused({"topology.kind=clos3", "topology.groups=7"}), HasSubstr("share 48 nodes evenly"));
}

// A ring whose packets keep their lane waits for itself once round.
TEST(Circles, AreFoundAndNamed) {
  const Parameters p = machine({"topology.kind=torus", "topology.nodes=5", "topology.dies_per_node=2",
                                "topology.sockets_per_node=0", "topology.shape=5", "ub.link.lanes=4"});
  Layout ring = layout_of(p.topology);
  EXPECT_EQ(Network{ring}.chips(), 5u);
  ring.turns = {};
  EXPECT_THAT(refusal([&] { Network{ring}; }),
              ::testing::AllOf(HasSubstr("could deadlock in a circle of links: "),
                               HasSubstr("chip0 to chip1 (class 0)")));
  ring.turns[0][0].add = 2;
  EXPECT_THAT(refusal([&] { Network{ring}; }), HasSubstr("take more than 2 lane classes"));
}

// What the kind's own way passes is broken: a detour by a chip from which and to which nothing is.
TEST(Outage, DetoursAndSaysWhatIsNotReached) {
  const Parameters p = machine({"topology.kind=full-mesh", "topology.nodes=4", "topology.dies_per_node=2",
                                "topology.sockets_per_node=0", "topology.shape=4"});
  const Network whole(layout_of(p.topology));
  Outage outage;
  outage.cables = {whole.link(whole.link_between(0, 2)).cable};
  const Network broken(layout_of(p.topology), outage);
  EXPECT_TRUE(broken.ways(0, 2).empty());
  EXPECT_NE(broken.detour(0, 2), Network::kNoLink);
  EXPECT_EQ(broken.detour(0, 1), Network::kNoLink);
  EXPECT_TRUE(broken.reaches(0, 5));
  outage.cables.push_back(whole.link(whole.link_between(0, 1)).cable);
  outage.cables.push_back(whole.link(whole.link_between(0, 3)).cable);
  const Network apart(layout_of(p.topology), outage);
  EXPECT_FALSE(apart.reaches(0, 5));
  EXPECT_TRUE(apart.reaches(0, 1));
  EXPECT_TRUE(apart.reaches(2, 5));
}

TEST(LinkTimings, AreThoseOfThePlaneItsTrunksAndItsFaults) {
  const Parameters p = machine({"ub.link.plane_rates=1,0.5", "ub.link.trunk_rate=0.25", "topology.nodes=2"});
  const auto network = Network::of(p.topology);
  LinkTimings slow(p, *network, 1);
  const auto rate = [](const Clock& flit) {
    return 20e3 / static_cast<double>(flit.start(1'000'000).ps) * 1e6;
  };
  const unsigned down = network->link_to(3), up = network->link_between(0, network->chip("l2chip", 2));
  EXPECT_NEAR(rate(LinkTimings(p, *network, 0).of_link(down).flit), 28, 1e-3);
  EXPECT_NEAR(rate(slow.of_link(down).flit), 14, 1e-3);
  EXPECT_NEAR(rate(slow.of_port(3).flit), 14, 1e-3);
  EXPECT_NEAR(rate(slow.of_link(up).flit), 3.5, 1e-3);
  EXPECT_NEAR(rate(slow.of_chip(0).flit), 14, 1e-3);
  EXPECT_NEAR(rate(slow.of_chip(network->chip("l2chip", 0)).flit), 3.5, 1e-3);
  EXPECT_EQ(slow.of_chip(0).pipeline, p.ub.switch_chip.pipeline_latency);
  EXPECT_EQ(slow.shortest_endpoint_latency(), p.ub.link.endpoint_latency);
  EXPECT_EQ(slow.shortest_way_in(), p.ub.link.endpoint_latency + p.ub.switch_chip.pipeline_latency);
  slow.narrow_link(down, 0.5);
  slow.narrow_port(3, 0.25);
  EXPECT_NEAR(rate(slow.of_link(down).flit), 7, 1e-3);
  EXPECT_NEAR(rate(slow.of_port(3).flit), 3.5, 1e-3);
  EXPECT_NEAR(rate(slow.of_port(2).flit), 14, 1e-3);
  EXPECT_NEAR(rate(slow.of_chip(0).flit), 14, 1e-3);  // the chip itself is whole
}

// Chips that sit in a grid, all shortest ways, so that there are as many of them as a binomial coefficient.
Layout all_ways_of_a_grid(unsigned side) {
  Layout layout;
  layout.dies = side * side;
  layout.count_hops = true;
  for (unsigned chip = 0; chip < side * side; ++chip) {
    layout.add_chip("chip", chip);
    layout.attach(chip);
  }
  for (unsigned chip = 0; chip < side * side; ++chip) {
    if (chip % side + 1 < side) layout.connect(chip, chip + 1);
    if (chip + side < side * side) layout.connect(chip, chip + side);
  }
  return layout;
}

// Without the ways of a kind, and by ways that a kind gives: here the same ones, of which one link is broken.
TEST(Outage, ReachIsKnownHoweverManyWaysThereAre) {
  constexpr unsigned kSide = 14;
  const Network whole(all_ways_of_a_grid(kSide));
  EXPECT_TRUE(whole.reaches(0, kSide * kSide - 1));
  EXPECT_TRUE(has_choice(whole));
  Outage outage;
  outage.cables = {whole.link(whole.link_between(1, 2)).cable};
  const Network around(all_ways_of_a_grid(kSide), outage);
  EXPECT_TRUE(around.reaches(0, kSide * kSide - 1));
  Layout with_ways = all_ways_of_a_grid(kSide);
  with_ways.ways = [&](unsigned chip, unsigned destination, std::vector<unsigned>& ports) {
    const auto ways = whole.ways(chip, destination);
    ports.assign(ways.begin(), ways.end());
  };
  const Network given(with_ways, outage);
  // On a line of one way the break is passed by, on others chip 1 has another way; from it along the line
  // there is none.
  EXPECT_FALSE(given.arrives(1, 3));
  EXPECT_FALSE(given.arrives(0, 3));
  EXPECT_TRUE(given.arrives(0, 1));
  EXPECT_TRUE(given.arrives(2, 3));
  EXPECT_TRUE(given.arrives(1, kSide + 2));
  EXPECT_NE(given.detour(1, 3), Network::kNoLink);
  EXPECT_TRUE(given.reaches(0, kSide * kSide - 1));
}

TEST(Torus, GoesEitherWayWhereBothAreAsLong) {
  const Parameters p = machine({"topology.kind=torus", "topology.nodes=8", "topology.dies_per_node=2",
                                "topology.sockets_per_node=0", "topology.shape=4x2", "ub.link.lanes=4"});
  const auto network = Network::of(p.topology);
  const auto next = [&](unsigned from, unsigned to) {
    std::vector<unsigned> chips;
    for (const std::uint16_t port : network->ways(from, to))
      chips.push_back(network->link(network->link(network->first_link(from) + port).peer).chip);
    return chips;
  };
  EXPECT_THAT(next(0, 2), ::testing::ElementsAre(1, 3));
  EXPECT_THAT(next(3, 5), ::testing::ElementsAre(0, 2));
  EXPECT_THAT(next(0, 1), ::testing::ElementsAre(1));
  EXPECT_THAT(next(0, 3), ::testing::ElementsAre(3));
  EXPECT_THAT(next(0, 4), ::testing::ElementsAre(4));  // two chips have one cable
}

TEST(PlaneRates, HoldForAPlane) {
  const Parameters p = machine({"ub.link.plane_rates=1,0.5"});
  EXPECT_EQ(p.ub.link.die_bandwidth(0), 28_GBps);
  EXPECT_EQ(p.ub.link.die_bandwidth(1), 14_GBps);
  EXPECT_EQ(p.ub.link.trunk_bandwidth(6), 14_GBps);
  EXPECT_THAT(refusal([] { machine({"ub.link.plane_rates=1,0"}); }), HasSubstr("factors from 0.01"));
  EXPECT_THAT(refusal([] {
                machine({"topology.kind=torus", "topology.l2_switches=4"});
              }),
              HasSubstr("has no effect with topology.kind=torus"));
  EXPECT_THAT(refusal([] { machine({"topology.shape=4x"}); }), HasSubstr("is not a shape"));
}

}  // namespace
}  // namespace cm384::ub::topology_test
