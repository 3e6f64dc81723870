// Synthetic traffic against closed forms: unloaded latency, the wait in an M/D/1 queue, saturation at the
// channel load; all messages count, caches are warm; and the same whatever the number of threads. Bounds:
// traffic_bounds_test.
#include <gtest/gtest.h>

#include <algorithm>

#include "hw/machine.h"
#include "ub_fabric/topology/kinds.h"
#include "workloads/fabric/traffic_bench.h"
#include "workloads/fabric/traffic_bounds.h"
#include "workloads/frame/confidence.h"

namespace cm384::studies::traffic_test {
namespace {

using namespace cm384::literals;

constexpr double kData = 512.0 / 560.0;  // 28 flits of 20 B carry 512 B

hw::Machine machine(std::vector<std::string> more) {
  more.insert(more.begin(), {"topology.sub_planes=1", "topology.sockets_per_node=0", "topology.nodes=8",
                             "topology.dies_per_node=2", "ub.controller.write_interval=0ps"});
  return hw::load_machine("cloudmatrix384", more);
}

Destinations destinations_of(const hw::Machine& m, const char* pattern_name) {
  return {pattern(pattern_name),
          {static_cast<unsigned>(m.topology.dies()), 1, 1, ub::grid_lengths(m.topology)}};
}

TrafficReading run(const hw::Machine& m, const char* pattern_name, double GBps, TrafficCase setting = {}) {
  const Destinations destinations = destinations_of(m, pattern_name);
  setting.destinations = &destinations;
  setting.offered_GBps = GBps;
  if (setting.warm_up == Time{}) setting.warm_up = 5_us;
  if (setting.measured == Time{}) setting.measured = 40_us;
  if (setting.drain == Time{}) setting.drain = 100_us;
  return run_traffic(m, setting);
}

double mean_us(const TrafficReading& reading) {
  return summarise(reading.latencies_us()).mean;
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
    const TrafficReading reading = run(m, "incast", load * 28 * kData / 31, {.measured = 400_us});
    const double wait = load * service / (2 * (1 - load));
    EXPECT_NEAR(mean_us(reading) - alone, wait, 0.1 * wait) << load;
    EXPECT_FALSE(reading.saturated()) << load;
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
  const TrafficBounds bounds = traffic_bounds(m, destinations_of(m, "tornado"), true, 512);
  // Both dies of a chip send to the chip three further up: a link up carries six of them, acknowledgements go
  // down.
  EXPECT_NEAR(bounds.busiest_link_load, 1.0 / 6, 1e-12);
  const double full = bounds.busiest_link_load * bounds.capacity_GBps;
  const TrafficReading below = run(m, "tornado", 0.9 * full);
  EXPECT_NEAR(below.accepted_GBps, below.created_GBps, 0.03 * below.created_GBps);
  EXPECT_FALSE(below.saturated());
  EXPECT_TRUE(run(m, "tornado", 1.2 * full).saturated());
  // Half way round by the die's number: three chips from even dies and four from odd ones, whose messages all
  // go up with minimal routing, and their acknowledgements down. Beyond what a link up carries of 3 + 4 dies
  // arbiters in turn give the ring a third of each link, two dies the rest; of what a link carries, 1 of 3.5
  // leaves at the next chip, and the others have to fit into the third.
  const hw::Machine up =
      machine({"topology.kind=torus", "topology.shape=8", "ub.link.lanes=4", "ub.switch.routing=minimal"});
  const Destinations by_number(pattern("tornado"), 16, 1);
  const double bound = 1.0 / 7 * bounds.capacity_GBps;
  TrafficCase setting{
      .destinations = &by_number, .offered_GBps = 1.5 * bound, .warm_up = 200_us, .windows = 1};
  setting.measured = 200_us;
  const TrafficReading above = run_traffic(up, setting);
  const double carried = (1.0 / 3) / (1 - 1 / 3.5) * bound;
  EXPECT_NEAR(above.accepted_GBps, carried, 0.03 * carried);
  EXPECT_TRUE(above.saturated());
}

TEST(Traffic, SaturatesAtTheBoundOfAMesh) {
  const hw::Machine m =
      machine({"topology.kind=mesh", "topology.shape=4x4", "topology.nodes=16", "topology.dies_per_node=2"});
  const TrafficBounds bounds = traffic_bounds(m, destinations_of(m, "uniform"), true, 512);
  const double full = bounds.busiest_link_load * bounds.capacity_GBps;
  EXPECT_FALSE(run(m, "uniform", 0.9 * full).saturated());
  EXPECT_TRUE(run(m, "uniform", 1.1 * full).saturated());
}

// Beyond saturation latency grows with load, whatever was unfinished when the run ended.
TEST(Traffic, AllMessagesCount) {
  const hw::Machine m = machine({});
  double before = 0;
  for (const double load : {0.1, 0.2, 0.3, 0.5, 0.9}) {
    const TrafficReading reading = run(m, "hotspot", load * 28 * kData);
    EXPECT_GT(mean_us(reading), before) << load;
    before = mean_us(reading);
    // 16 dies for 40 us.
    const double messages = reading.created_GBps * 1e3 * 40 * 16 / 512;
    EXPECT_NEAR(static_cast<double>(reading.messages.size()), messages, 1e-6 * messages);
    EXPECT_NEAR(reading.created_GBps, load * 28 * kData, 0.1 * load * 28 * kData);
  }
  const TrafficReading cut = run(m, "hotspot", 0.9 * 28 * kData, {.measured = 20_us, .drain = 1_us});
  EXPECT_GT(cut.unfinished(), cut.messages.size() / 4);
  EXPECT_TRUE(cut.saturated());
  // Those that were not in time have waited until the end at least.
  const std::vector<double> latencies = cut.latencies_us();
  ASSERT_EQ(latencies.size(), cut.messages.size());
  for (std::size_t n = 0; n < latencies.size(); ++n) {
    const TrafficMessage& message = cut.messages[n];
    if (message.arrived == Time::never()) {
      ASSERT_NEAR(latencies[n], cut.ended.us() - message.created.us(), 1e-9);
    }
  }
}

TEST(Traffic, TranslationIsWarmUnlessItIsAskedToBeCold) {
  const hw::Machine m = machine({"topology.nodes=16", "topology.dies_per_node=4"});
  EXPECT_EQ(run(m, "uniform", 4).miss_share, 0);
  const TrafficReading cold =
      run(m, "uniform", 4, {.warm_up = 1_us, .windows = 1, .warm_translation = false, .measured = 5_us});
  // Of 40 messages a die most go to another for the first time.
  EXPECT_GT(cold.miss_share, 0.3);
  EXPECT_GT(mean_us(cold), mean_us(run(m, "uniform", 4)) + cold.miss_share * 0.4);
  // Two entries for 63 pages: what misses in the steady state is not hidden.
  const hw::Machine few = machine(
      {"topology.nodes=16", "topology.dies_per_node=4", "ub.translation.entries=2", "ub.translation.ways=2"});
  // A message each 128 ns finds its page in the cache or among those that are walked for, 500 ns each.
  EXPECT_NEAR(run(few, "uniform", 4).miss_share, 1 - (2 + 0.91 * 500 / 128) / 63, 0.02);
}

TEST(Traffic, WarmsUpUntilTwoWindowsAgree) {
  const hw::Machine m = machine({});
  const TrafficReading light = run(m, "uniform", 10);
  EXPECT_GE(light.began, 10_us);
  EXPECT_LT(light.began, 40_us);
  // Cold caches with long misses: the first windows differ.
  const hw::Machine slow = machine({"ub.translation.miss_latency=10us"});
  EXPECT_GT(run(slow, "uniform", 10, {.warm_translation = false}).began, light.began);
  EXPECT_EQ(run(m, "uniform", 10, {.warm_up = 7_us, .windows = 1}).began, 7_us);
}

TEST(Traffic, IsTheSameForAnyNumberOfThreads) {
  const hw::Machine m = machine({"topology.sub_planes=3", "ub.link.buffer_cells=8"});
  const TrafficReading one = run(m, "uniform", 40), four = run(m, "uniform", 40, {.threads = 4});
  ASSERT_EQ(one.messages.size(), four.messages.size());
  for (std::size_t n = 0; n < one.messages.size(); ++n) {
    ASSERT_EQ(one.messages[n].arrived, four.messages[n].arrived) << n;
    ASSERT_EQ(one.messages[n].completed, four.messages[n].completed) << n;
  }
  EXPECT_EQ(one.events, four.events);
}

// Two tenants, a die of each on every node, send to one die by a link that they overload together: each gets
// its weight, whatever it offers above that; one that offers less gets that, and the other one the rest.
TEST(Traffic, SharesAnOverloadedLinkByTheWeightsOfTenants) {
  const hw::Machine m = machine({"topology.nodes=1", "topology.dies_per_node=33",
                                 "topology.dies_per_package=1", "ub.qos.die_levels=0,1", "ub.qos.classes=2",
                                 "ub.link.lanes=4", "ub.qos.arbitration=drr", "ub.qos.weights=1,2"});
  const double link = 28 * kData;  // for 16 dies of each tenant, and die 0, which sends nothing
  for (const double load : {1.2, 3.0, 8.0}) {
    const TrafficReading reading = run(m, "incast", load * link / 32, {.warm_up = 50_us, .measured = 200_us});
    ASSERT_EQ(reading.levels.size(), 2u);
    const double low = reading.levels[0].reading.accepted_GBps * 16,
                 high = reading.levels[1].reading.accepted_GBps * 16;
    EXPECT_NEAR(low + high, link, 0.02 * link) << load;
    EXPECT_NEAR(high, std::min(load / 2, 2.0 / 3) * link, 0.02 * link) << load;
    EXPECT_EQ(reading.levels[0].reading.messages.size() + reading.levels[1].reading.messages.size(),
              reading.messages.size());
  }
  const TrafficReading little =
      run(m, "incast", 2 * link / 32, {.level_loads = {1, 0.1}, .warm_up = 50_us, .measured = 200_us});
  EXPECT_NEAR(little.levels[1].offered_GBps, 0.2 * link / 32, 1e-9);
  EXPECT_NEAR(little.levels[1].reading.accepted_GBps * 16, 0.1 * link, 0.01 * link);
  EXPECT_NEAR(little.levels[0].reading.accepted_GBps * 16, 0.9 * link, 0.02 * link);
  EXPECT_TRUE(little.levels[0].reading.saturated());
  EXPECT_FALSE(little.levels[1].reading.saturated());
  EXPECT_LT(mean_us(little.levels[1].reading) * 5, mean_us(little.levels[0].reading));
}

}  // namespace
}  // namespace cm384::studies::traffic_test
