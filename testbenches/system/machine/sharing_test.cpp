// Transfers without a core that are ready share their die, whatever the order of records; records of time
// without traffic take turns in their queue.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "system/host/replay.h"
#include "system/machine/supernode.h"
#include "testbenches/system/machine/in_memory_trace.h"

namespace cm384::supernode::sharing_test {
namespace {

using namespace cm384::literals;
using traces::TrafficDependency;
using traces::TrafficRecord;

TrafficRecord message(int source, int target, std::uint64_t bytes) {
  TrafficRecord r;
  r.operation = sim::Operation::write;
  r.source.number = static_cast<std::uint16_t>(source);
  r.target.number = static_cast<std::uint16_t>(target);
  r.core = TrafficRecord::kAnyCore;
  r.bytes = bytes;
  return r;
}

TrafficRecord work(int die, Time duration, int queue) {
  TrafficRecord r;
  r.kind = TrafficRecord::Kind::compute;
  r.source.number = r.target.number = static_cast<std::uint16_t>(die);
  r.end = duration;
  r.lane = static_cast<std::uint8_t>(queue);
  return r;
}

struct Times {
  std::vector<std::pair<Time, Time>> of;  // of each record
  Time last() const { return std::ranges::max_element(of, {}, &std::pair<Time, Time>::second)->second; }
};

Times replay(const std::vector<TrafficRecord>& records, const std::vector<std::string>& set = {}) {
  const hw::Machine parameters = hw::load_machine("cloudmatrix384", set);
  InMemoryTrace trace, again;
  trace.records = again.records = records;
  const host::TrafficUnits units = host::units_of(again);
  SupernodeOptions options;
  options.dies = {units.dies.begin(), units.dies.end()};
  Supernode machine(parameters, options);
  Times times;
  host::ReplayOptions how;
  // The machine's clock is ahead of the trace's by what it took to start.
  const Time began = machine.earliest();
  how.finished = [&](const TrafficRecord&, Time start, Time end) {
    times.of.emplace_back(start - began, end - began);
  };
  host::Replay replay(machine, trace, how);
  EXPECT_TRUE(replay.run());
  return times;
}

// 48 cores move 4 KiB of each large one before it is the small one's turn: 97 x 4 KiB at the 136 GB/s that a
// die writes are 2.9 us, and a write alone takes less than 2.
TEST(Sharing, ASmallMessageDoesNotWaitForLargeOnesToEnd) {
  const Times times = replay({message(0, 2, 16 << 20), message(0, 6, 16 << 20), message(0, 4, 4 << 10)});
  EXPECT_LT(times.of[2].second, 8_us);
  // The large ones end together: neither stands behind the other.
  EXPECT_NEAR(times.of[0].second.us(), times.of[1].second.us(), 0.02 * times.of[0].second.us());
  EXPECT_NEAR(times.of[0].second.us(), 246.5, 5);  // 32 MiB at 136.1 GB/s
}

// Time without traffic is known to end before it does: what waits for it is no earlier at the cores.
TEST(Sharing, WhatIsReadyLaterHoldsUpNothingThatIsReadyNow) {
  TrafficRecord later = message(0, 4, 1 << 20);
  later.dependencies = {{0, TrafficDependency::Kind::completion, {}}};
  const Times times = replay({work(0, 1000_us, 0), later, message(0, 2, 1 << 20)});
  EXPECT_LT(times.of[2].second, 12_us);  // 1 MiB at 136.1 GB/s are 7.7 us
  EXPECT_GE(times.of[1].first, 1000_us);
  EXPECT_LT(times.of[1].second, 1012_us);
}

// A large one alone is as fast as all cores of its die are: 16 MiB at 136.1 GB/s.
TEST(Sharing, ALargeMessageAloneHasTheWholeDie) {
  const Times times = replay({message(0, 2, 16 << 20)});
  EXPECT_NEAR(times.last().us(), 123.3, 2);
}

TEST(Sharing, TheOrderOfRecordsMovesTheEndByLessThanOnePercent) {
  std::vector<TrafficRecord> records;
  std::mt19937_64 draw(3);
  constexpr int kRanks = 12;
  for (int from = 0; from < kRanks; ++from) {
    for (int to = 0; to < kRanks; ++to) {
      if (from == to) continue;
      for (int n = 0; n < 6; ++n) records.push_back(message(2 * from, 2 * to, 4096 * (1 + draw() % 16)));
    }
  }
  const double filed = replay(records).last().us();
  for (int k = 0; k < 3; ++k) {
    std::ranges::shuffle(records, draw);
    EXPECT_NEAR(replay(records).last().us(), filed, 0.01 * filed) << k;
  }
}

// One way of those that a chip offers carries all of a message: a way is a quarter of the trunk's links here.
TEST(Sharing, AMessageIsOneFlow) {
  const std::vector<std::string> narrow{"topology.sub_planes=1", "topology.l2_switches=4"};
  std::vector<std::string> flow = narrow, spray = narrow;
  flow.push_back("ub.switch.routing=flow");
  flow.push_back("ub.link.trunk_rate=0.25");
  spray.push_back("ub.switch.routing=spray");
  spray.push_back("ub.link.trunk_rate=0.25");
  const double by_flow = replay({message(0, 32, 1 << 20)}, flow).last().us(),
               by_spray = replay({message(0, 32, 1 << 20)}, spray).last().us();
  EXPECT_GT(by_flow, 3.5 * by_spray);
}

TEST(Turns, RecordsOfAQueueRunOneAtATimeByWhenTheyAreReady) {
  // Queue 1: 100, 100 and 100 us; queue 2 beside it; queue 0 waits for nobody.
  const Times times = replay({work(0, 100_us, 1), work(0, 100_us, 1), work(0, 30_us, 2), work(0, 100_us, 0),
                              work(0, 100_us, 0), work(0, 100_us, 1), work(1, 100_us, 1)});
  EXPECT_EQ(times.of[0].second, 100_us);
  EXPECT_EQ(times.of[1].second, 200_us);
  EXPECT_EQ(times.of[5].second, 300_us);
  EXPECT_EQ(times.of[2].second, 30_us);
  EXPECT_EQ(times.of[3].second, 100_us);
  EXPECT_EQ(times.of[4].second, 100_us);
  EXPECT_EQ(times.of[6].second, 100_us);
  // What is ready first runs first, not what stands first.
  TrafficRecord late = work(0, 10_us, 1);
  late.dependencies = {{0, TrafficDependency::Kind::completion, 50_us}};
  TrafficRecord later = work(0, 7_us, 1);
  later.dependencies = {{0, TrafficDependency::Kind::completion, 20_us}};
  const Times order = replay({work(0, 5_us, 2), late, later});
  EXPECT_EQ(order.of[2].first, 25_us);
  EXPECT_EQ(order.of[1].first, 55_us);
}

}  // namespace
}  // namespace cm384::supernode::sharing_test
