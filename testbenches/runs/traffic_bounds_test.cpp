// Bounds of topologies under patterns of traffic against closed forms: channel load (Dally and Towles,
// chapter 3) and bisection; and what the patterns are.
#include "workloads/fabric/traffic_bounds.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <bit>
#include <numeric>

#include "base/text/error.h"
#include "hw/machine.h"
#include "ub_fabric/routing.h"
#include "ub_fabric/topology/kinds.h"

namespace cm384::studies::traffic_bounds_test {
namespace {

constexpr double kData = 512.0 / 560.0;  // 28 flits of 20 B carry 512 B
constexpr double kAcks = 28.0 / 29;  // where a link carries as many acknowledgements, of one flit, as writes

hw::Machine machine(std::vector<std::string> more) {
  more.insert(more.begin(), {"topology.sub_planes=1", "topology.sockets_per_node=0", "topology.nodes=8",
                             "topology.dies_per_node=2", "ub.controller.write_interval=0ps"});
  return hw::load_machine("cloudmatrix384", more);
}

TrafficBounds bounds(std::vector<std::string> parameters, const char* name = "uniform") {
  const hw::Machine m = machine(std::move(parameters));
  return traffic_bounds(m,
                        Destinations(pattern(name), {static_cast<unsigned>(m.topology.dies()), 1, 1,
                                                     ub::grid_lengths(m.topology)}),
                        true, 512);
}

// A grid with `dies` dies at each of its chips.
std::vector<std::string> grid(const char* kind, const char* shape, int chips, int dies = 1) {
  return {fmt::format("topology.kind={}", kind),   fmt::format("topology.shape={}", shape),
          fmt::format("topology.nodes={}", chips), fmt::format("topology.dies_per_node={}", dies),
          "topology.dies_per_package=1",           "ub.link.lanes=4"};
}

TEST(TrafficBounds, FollowFromTheTable) {
  const TrafficBounds clos = bounds({"topology.l2_switches=2"});
  EXPECT_DOUBLE_EQ(clos.capacity_GBps, 28 * kData);
  EXPECT_DOUBLE_EQ(clos.bisection_GBps, 8 * 28.0);
  // A die's port sends requests and acknowledgements.
  EXPECT_NEAR(clos.busiest_link_load, kAcks, 1e-12);
  EXPECT_DOUBLE_EQ(bounds({"topology.l2_switches=1"}).bisection_GBps, 4 * 28.0);
  EXPECT_DOUBLE_EQ(bounds({"topology.l2_switches=2", "ub.link.trunk_rate=0.5"}).bisection_GBps, 4 * 28.0);
  EXPECT_NEAR(bounds({}, "incast").busiest_link_load, 1.0 / 15, 1e-12);
  const hw::Machine limited = hw::load_machine("cloudmatrix384", {"topology.nodes=2"});
  EXPECT_NEAR(traffic_bounds(limited, Destinations(Pattern::uniform, 32, 1), true, 512).controller_load,
              512 / 3.732 / (7 * 28 * kData), 1e-9);
}

// A node's links up carry what its two dies send to the other 14 of 15.
TEST(TrafficBounds, OfAClosWithTapers) {
  for (const double taper : {1.0, 2.0, 4.0}) {
    const TrafficBounds clos =
        bounds({"topology.l2_switches=2", fmt::format("ub.link.trunk_rate={}", 1 / taper)});
    EXPECT_NEAR(clos.busiest_link_load, std::min(kAcks, kAcks / (14.0 / 15) / taper), 1e-9) << taper;
  }
  EXPECT_NEAR(bounds({"topology.l2_switches=1"}).busiest_link_load, kAcks / 2 / (14.0 / 15), 1e-9);
}

// Half of all traffic crosses the middle of a mesh, on k links a direction of each line: k/4 of what a chip
// sends, and no chip sends to itself.
TEST(TrafficBounds, OfAMesh) {
  EXPECT_NEAR(bounds(grid("mesh", "4x4", 16)).busiest_link_load, kAcks / (4 / 4.0 * 16 / 15), 1e-9);
  EXPECT_NEAR(bounds(grid("mesh", "8x8", 64)).busiest_link_load, kAcks / (8 / 4.0 * 64 / 63), 1e-9);
  EXPECT_NEAR(bounds(grid("mesh", "8", 8)).busiest_link_load, kAcks / (8 / 4.0 * 8 / 7), 1e-9);
}

// Half way round both ways are as long and share: k/8 of what a chip sends. Of odd rings (k - 1/k)/8.
TEST(TrafficBounds, OfRingsAndTori) {
  EXPECT_NEAR(bounds(grid("torus", "8", 8)).busiest_link_load, std::min(kAcks, kAcks / (8 / 8.0 * 8 / 7)),
              1e-9);
  EXPECT_NEAR(bounds(grid("torus", "16", 16)).busiest_link_load, kAcks / (16 / 8.0 * 16 / 15), 1e-9);
  EXPECT_NEAR(bounds(grid("torus", "9", 9, 2)).busiest_link_load, kAcks / ((9 - 1 / 9.0) / 8 * 2 * 18 / 17),
              1e-9);
  EXPECT_NEAR(bounds(grid("torus", "4x4", 16, 4)).busiest_link_load, kAcks / (4 / 8.0 * 4 * 64 / 63), 1e-9);
  // All go half way less a half round, one way: links the other way carry acknowledgements alone.
  EXPECT_NEAR(bounds(grid("torus", "8x8", 64), "tornado").busiest_link_load, 1.0 / 3, 1e-9);
}

TEST(TrafficBounds, BisectionFollowsTheShapeAndNotTheNumbers) {
  EXPECT_DOUBLE_EQ(bounds({"topology.kind=full-mesh", "topology.shape=8"}).bisection_GBps,
                   8 * 28.0);  // the dies'
  EXPECT_DOUBLE_EQ(bounds({"topology.kind=torus", "topology.shape=8", "ub.link.lanes=4"}).bisection_GBps,
                   2 * 28.0);
  // Each of four columns has four links between its halves.
  auto thin = grid("full-mesh", "4x4", 16);
  thin.push_back("ub.link.trunk_rate=0.1");
  EXPECT_NEAR(bounds(thin).bisection_GBps, 16 * 2.8, 1e-9);
  // Two links of each ring that is cut.
  for (const char* shape : {"16x3", "3x16"})
    EXPECT_DOUBLE_EQ(bounds(grid("torus", shape, 48, 2)).bisection_GBps, 6 * 28.0);
  for (const char* shape : {"12x4", "4x12"})
    EXPECT_DOUBLE_EQ(bounds(grid("torus", shape, 48, 2)).bisection_GBps, 8 * 28.0);
  for (const char* shape : {"4x6x2", "2x4x6", "6x2x4"})
    EXPECT_DOUBLE_EQ(bounds(grid("torus", shape, 48, 2)).bisection_GBps, 16 * 28.0) << shape;
  for (const char* shape : {"8x3", "3x8"})
    EXPECT_DOUBLE_EQ(bounds(grid("mesh", shape, 24)).bisection_GBps, 3 * 28.0);
  // Of the middle chip's four dies two are on either side: the links of two count, beside the chip's to the
  // other half.
  EXPECT_DOUBLE_EQ(bounds(grid("mesh", "3", 3, 4)).bisection_GBps, 3 * 28.0);
}

std::vector<unsigned> map_of(const char* name, unsigned ports, std::vector<unsigned> lengths = {}) {
  const Destinations destinations(pattern(name), {ports, 1, 1, std::move(lengths)});
  std::vector<unsigned> to;
  for (unsigned from = 0; from < ports; ++from) to.push_back(destinations.pick(from, 0, 12345));
  return to;
}

std::string refusal(const char* name, unsigned ports, unsigned hot = 1) {
  try {
    Destinations(pattern(name), {ports, 1, hot});
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Patterns, AreThoseOfBookSim) {
  using ::testing::ElementsAre;
  // Of four bits abcd: cdab, not abcd, dcba, bcda.
  std::vector<unsigned> transpose, complement, reverse, shuffle;
  for (unsigned n = 0; n < 16; ++n) {
    transpose.push_back(n / 4 + n % 4 * 4);
    complement.push_back(~n & 15);
    reverse.push_back((n & 1) << 3 | (n & 2) << 1 | (n & 4) >> 1 | (n & 8) >> 3);
    shuffle.push_back((n << 1 & 15) | n >> 3);
  }
  EXPECT_EQ(map_of("transpose", 16), transpose);
  EXPECT_EQ(map_of("bitcomp", 16), complement);
  EXPECT_EQ(map_of("bitrev", 16), reverse);
  EXPECT_EQ(map_of("shuffle", 16), shuffle);
  EXPECT_THAT(map_of("neighbor", 4), ElementsAre(1, 2, 3, 0));
  EXPECT_THAT(map_of("neighbor", 6, {3, 2}), ElementsAre(4, 5, 3, 1, 2, 0));
  EXPECT_THAT(map_of("tornado", 8), ElementsAre(3, 4, 5, 6, 7, 0, 1, 2));
  EXPECT_THAT(map_of("tornado", 5), ElementsAre(2, 3, 4, 0, 1));
  // Two dies at each of 4 x 2 chips: one chip further in the first dimension, none in the second.
  EXPECT_THAT(map_of("tornado", 16, {4, 2}),
              ElementsAre(2, 3, 4, 5, 6, 7, 0, 1, 10, 11, 12, 13, 14, 15, 8, 9));
  EXPECT_THAT(map_of("tornado", 2), ElementsAre(1, 0));
  EXPECT_EQ(map_of("permutation", 16), map_of("randperm", 16));
  EXPECT_THAT(refusal("transpose", 8), ::testing::HasSubstr("a square number"));
  EXPECT_THAT(refusal("bitrev", 12), ::testing::HasSubstr("a power of two"));
  EXPECT_THAT(refusal("shuffle", 9), ::testing::HasSubstr("an even number"));
  EXPECT_EQ(refusal("shuffle", 12), "accepted");
  EXPECT_THAT(refusal("hotspot", 8, 8), ::testing::HasSubstr("1 to 7"));
}

TEST(Patterns, PickAsOftenAsTheySay) {
  constexpr unsigned kPorts = 16, kPicks = 20'000;
  for (const std::string& name : pattern_names()) {
    for (const unsigned hot : {1u, 3u}) {
      const Destinations destinations(pattern(name), {kPorts, 1, hot});
      for (const unsigned from : {0u, 1u, 5u}) {
        double sum = 0;
        for (unsigned to = 0; to < kPorts; ++to) sum += destinations.share(from, to);
        EXPECT_NEAR(sum, destinations.sends(from) ? 1 : 0, 1e-12) << name;
        if (!destinations.sends(from)) continue;
        std::vector<unsigned> picked(kPorts);
        for (unsigned n = 0; n < kPicks; ++n) ++picked[destinations.pick(from, n, ub::mix(n))];
        for (unsigned to = 0; to < kPorts; ++to)
          EXPECT_NEAR(picked[to], kPicks * destinations.share(from, to), 200)
              << name << " " << from << " " << to;
      }
    }
  }
  // The hot ones of three, and each gets a third of the fifth.
  const Destinations hot(Pattern::hotspot, {kPorts, 1, 3});
  for (const unsigned to : {0u, 5u, 10u}) EXPECT_NEAR(hot.share(1, to), 0.8 / 15 + 0.2 / 3, 1e-12);
  EXPECT_NEAR(hot.share(1, 4), 0.8 / 15, 1e-12);
}

TEST(Patterns, AllToAllTakesAllOthersInTurn) {
  const Destinations destinations(Pattern::all_to_all, 4, 1);
  std::vector<unsigned> to;
  for (unsigned n = 0; n < 4; ++n) to.push_back(destinations.pick(2, n, 99));
  EXPECT_THAT(to, ::testing::ElementsAre(3, 0, 1, 3));
}

}  // namespace
}  // namespace cm384::studies::traffic_bounds_test
