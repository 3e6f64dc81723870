// Synthetic traffic against closed forms: unloaded latency, the wait in an M/D/1 queue, the channel load of
// topologies, the smallest cut; and the same whatever the number of threads.
#include <gtest/gtest.h>

#include <algorithm>

#include "hw/machine.h"
#include "studies/traffic_bench.h"
#include "studies/traffic_bounds.h"

namespace cm384::studies {
namespace {

using namespace cm384::literals;

constexpr double kData = 512.0 / 560.0;  // 28 flits of 20 B carry 512 B

hw::Machine machine(std::vector<std::string> more) {
  more.insert(more.begin(), {"topology.sub_planes=1", "topology.sockets_per_node=0", "topology.nodes=8",
                             "topology.dies_per_node=2", "ub.controller.write_interval=0ps"});
  return hw::load_machine("cloudmatrix384", more);
}

TrafficReading run(const hw::Machine& m, const char* pattern_name, double GBps, unsigned threads = 1,
                   Time measured = 40_us) {
  const Destinations destinations(pattern(pattern_name), static_cast<unsigned>(m.topology.dies()), 1);
  TrafficCase setting;
  setting.destinations = &destinations;
  setting.offered_GBps = GBps;
  setting.warm_up = 50_us;  // every source has had its translation miss
  setting.measured = measured;
  setting.drain = 100_us;
  setting.threads = threads;
  return run_traffic(m, setting);
}

double mean_us(const TrafficReading& reading) {
  double sum = 0;
  for (const TrafficMessage& m : reading.messages) sum += (m.arrived - m.created).us();
  return sum / static_cast<double>(reading.messages.size());
}

double least_us(const TrafficReading& reading) {
  double least = 1e9;
  for (const TrafficMessage& m : reading.messages) least = std::min(least, (m.arrived - m.created).us());
  return least;
}

TEST(Traffic, WaitsAsInAnMD1Queue) {
  const hw::Machine m = machine({"topology.nodes=1", "topology.dies_per_node=32"});
  const double service = 0.02;  // us, of 28 flits at 28 GB/s
  const double alone = least_us(run(m, "incast", 0.3 * 28 * kData / 31));
  for (const double load : {0.3, 0.6, 0.8}) {
    const TrafficReading reading = run(m, "incast", load * 28 * kData / 31, 1, 400_us);
    const double wait = load * service / (2 * (1 - load));
    EXPECT_NEAR(mean_us(reading) - alone, wait, 0.1 * wait) << load;
  }
}

// A translation miss takes the first message to a page longer; the least is without one.
TEST(Traffic, UnloadedItTakesTheSumOfItsStages) {
  const hw::Machine m = machine({"topology.kind=full-mesh", "topology.shape=4x2"});
  Time least = Time::never();
  const TrafficReading reading = run(m, "uniform", 0.1);
  for (const TrafficMessage& t : reading.messages) {
    if (t.source / 2 % 4 != t.destination / 2 % 4 && t.source / 8 != t.destination / 8)
      least = std::min(least, t.arrived - t.created);
  }
  const Time stages = m.ub.link.endpoint_latency * 2 + m.ub.link.trunk_latency * 2 +
                      m.ub.switch_chip.pipeline_latency * 3 + 20_ns + m.ub.controller.write_inbound_latency;
  EXPECT_GE(least, stages);
  EXPECT_LT(least, stages + 4_ns);  // a flit's border at each of four links
}

TEST(Traffic, AcceptsWhatTheBusiestLinkCarriesAndLessBeyond) {
  const hw::Machine m = machine({"topology.kind=torus", "topology.shape=8", "ub.link.lanes=4"});
  const Destinations destinations(pattern("tornado"), 16, 1);
  const TrafficBounds bounds = traffic_bounds(m, destinations, true, 512);
  // Die d to d + 7, three chips up from even ones and four from odd ones. A link up carries the writes of 3 +
  // 4 dies and the acknowledgements, of one flit, of four: half way round is up, too.
  EXPECT_NEAR(bounds.busiest_link_load, 28.0 / (28 * 7 + 4), 1e-12);
  const TrafficReading below = run(m, "tornado", 0.9 * bounds.busiest_link_load * bounds.capacity_GBps);
  EXPECT_NEAR(below.accepted_GBps, below.created_GBps, 0.03 * below.created_GBps);
  // Beyond it arbiters in turn give the ring a third of each link, two dies the rest; of what a link carries,
  // 1 of 3.5 leaves at the next chip, and the others have to fit into the third.
  const TrafficReading above = run(m, "tornado", 2 * bounds.busiest_link_load * bounds.capacity_GBps);
  const double link = (1.0 / 3) / (1 - 1 / 3.5);
  const double carried = link * bounds.busiest_link_load * bounds.capacity_GBps;
  EXPECT_NEAR(above.accepted_GBps, carried, 0.03 * carried);
}

TEST(TrafficBounds, FollowFromTheTable) {
  const auto bounds = [](std::vector<std::string> parameters, const char* name = "uniform") {
    const hw::Machine m = machine(std::move(parameters));
    return traffic_bounds(m, Destinations(pattern(name), static_cast<unsigned>(m.topology.dies()), 1), true,
                          512);
  };
  const TrafficBounds clos = bounds({"topology.l2_switches=2"});
  EXPECT_DOUBLE_EQ(clos.capacity_GBps, 28 * kData);
  EXPECT_DOUBLE_EQ(clos.bisection_GBps, 8 * 28.0);
  // A die's port sends requests and acknowledgements: 28 flits and one.
  EXPECT_NEAR(clos.busiest_link_load, 28.0 / 29, 1e-12);
  EXPECT_DOUBLE_EQ(bounds({"topology.l2_switches=1"}).bisection_GBps, 4 * 28.0);
  // A node's one link up carries what its two dies send to the other 14 of 15.
  EXPECT_NEAR(bounds({"topology.l2_switches=1"}).busiest_link_load, 28.0 / (29 * 2 * 14.0 / 15), 1e-9);
  EXPECT_DOUBLE_EQ(bounds({"topology.l2_switches=2", "ub.link.trunk_rate=0.5"}).bisection_GBps, 4 * 28.0);
  EXPECT_DOUBLE_EQ(bounds({"topology.kind=full-mesh", "topology.shape=8"}).bisection_GBps,
                   8 * 28.0);  // the dies'
  EXPECT_DOUBLE_EQ(bounds({"topology.kind=torus", "topology.shape=8", "ub.link.lanes=4"}).bisection_GBps,
                   2 * 28.0);
  // Each of four columns has four links between its halves.
  EXPECT_NEAR(bounds({"topology.kind=full-mesh", "topology.shape=4x4", "topology.nodes=16",
                      "topology.dies_per_node=1", "topology.dies_per_package=1", "ub.link.trunk_rate=0.1"})
                  .bisection_GBps,
              16 * 2.8, 1e-9);
  EXPECT_NEAR(bounds({}, "incast").busiest_link_load, 1.0 / 15, 1e-12);
  const hw::Machine limited = hw::load_machine("cloudmatrix384", {"topology.nodes=2"});
  EXPECT_NEAR(traffic_bounds(limited, Destinations(Pattern::uniform, 32, 1), true, 512).controller_load,
              512 / 3.732 / (7 * 28 * kData), 1e-9);
}

TEST(Traffic, IsTheSameForAnyNumberOfThreads) {
  const hw::Machine m = machine({"topology.sub_planes=3", "ub.link.buffer_cells=8"});
  const TrafficReading one = run(m, "uniform", 40), four = run(m, "uniform", 40, 4);
  ASSERT_EQ(one.messages.size(), four.messages.size());
  for (std::size_t n = 0; n < one.messages.size(); ++n) {
    ASSERT_EQ(one.messages[n].arrived, four.messages[n].arrived) << n;
    ASSERT_EQ(one.messages[n].completed, four.messages[n].completed) << n;
  }
  EXPECT_EQ(one.events, four.events);
}

}  // namespace
}  // namespace cm384::studies
