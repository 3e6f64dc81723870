// A replay is the same whichever die runs first in a window.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "system/host/replay.h"
#include "system/machine/supernode.h"
#include "testbenches/system/machine/in_memory_trace.h"

namespace cm384::supernode::replay_order_test {
namespace {

using namespace cm384::literals;
using traces::TrafficDependency;
using traces::TrafficRecord;

constexpr int kDies[] = {0, 1, 2, 17};

// Transfers, and points in time that join them, that wait for some of the sixteen before them, on whatever
// die those were, with hardly any delay.
InMemoryTrace tangle(std::size_t count) {
  std::mt19937_64 draw(7);
  InMemoryTrace trace;
  for (std::size_t n = 0; n < count; ++n) {
    TrafficRecord r;
    r.operation = draw() % 3 == 0 ? sim::Operation::read : sim::Operation::write;
    r.source.number = static_cast<std::uint16_t>(kDies[draw() % std::size(kDies)]);
    r.target.number = static_cast<std::uint16_t>(kDies[draw() % std::size(kDies)]);
    r.core = static_cast<int>(draw() % 8);
    r.bytes = 32 * (1 + draw() % 40);
    r.offset = 4096 * (draw() % 64);
    for (std::size_t k = 0; k < std::min<std::size_t>(n, 1 + draw() % 3); ++k)
      r.dependencies.push_back({n - 1 - draw() % std::min<std::size_t>(n, 16),
                                static_cast<TrafficDependency::Kind>(draw() % 3),
                                Time{static_cast<std::int64_t>(draw() % 400'000) - 100'000}});
    if (n % 9 == 8) {
      r.kind = TrafficRecord::Kind::barrier;
      r.target = r.source;
      r.bytes = r.offset = 0;
    }
    trace.records.push_back(r);
  }
  return trace;
}

std::vector<std::pair<Time, Time>> replay(const std::vector<int>& dies, unsigned threads,
                                          std::size_t window = 1u << 18) {
  static const hw::Machine parameters = hw::load_machine("cloudmatrix384");
  InMemoryTrace trace = tangle(4000);
  SupernodeOptions options;
  options.dies = dies;
  options.threads = threads;
  options.worth_sharing = 0;
  Supernode machine(parameters, options);
  std::vector<std::pair<Time, Time>> times;
  host::ReplayOptions how;
  how.host = false;
  how.window = window;
  how.finished = [&](const TrafficRecord&, Time start, Time end) { times.emplace_back(start, end); };
  host::Replay replay(machine, trace, how);
  EXPECT_TRUE(replay.run());
  EXPECT_EQ(times.size(), trace.records.size());
  EXPECT_EQ(machine.thread_choice().threads(), std::min(threads, 3u)) << machine.thread_choice().why();
  EXPECT_EQ(machine.shared_windows() > 0, threads > 1);
  return times;
}

TEST(ReplayOrder, OfDiesAndThreadsChangesNothing) {
  const auto forward = replay({0, 1, 2, 17}, 1);
  EXPECT_EQ(replay({17, 2, 1, 0}, 1), forward);
  EXPECT_EQ(replay({2, 17, 0, 1}, 3), forward);
  EXPECT_EQ(replay({0, 1, 2, 17}, 2), forward);
  // Also where records are read only as others end.
  const auto few = replay({0, 1, 2, 17}, 1, 40);
  EXPECT_NE(few, forward);
  EXPECT_EQ(replay({17, 2, 1, 0}, 1, 40), few);
  EXPECT_EQ(replay({2, 17, 0, 1}, 3, 40), few);
}

// Host threads of a trace need one order; the same trace at its recorded times does not.
TEST(ReplayOrder, IsOneForHostThreadsAlone) {
  const hw::Machine parameters = hw::load_machine("cloudmatrix384");
  const auto why = [&](bool host, host::ReplayOptions::Mode mode) {
    InMemoryTrace trace;
    SupernodeOptions options;
    options.dies = {0, 2};
    options.threads = 2;
    Supernode machine(parameters, options);
    host::ReplayOptions how;
    how.host = host;
    how.mode = mode;
    const host::Replay replay(machine, trace, how);
    return machine.thread_choice().why();
  };
  EXPECT_EQ(why(true, host::ReplayOptions::Mode::dependency),
            "one order, for a replay of host threads and following transactions");
  EXPECT_EQ(why(false, host::ReplayOptions::Mode::dependency), "asked for");
  EXPECT_EQ(why(true, host::ReplayOptions::Mode::time), "asked for");
}

// What another die waits for reaches it no sooner than a packet would; the own one at once.
TEST(ReplayOrder, ADependencyBetweenDiesTakesTheLookahead) {
  const hw::Machine parameters = hw::load_machine("cloudmatrix384");
  for (const Time delay : {Time{}, 100_ns, 2_us}) {
    InMemoryTrace trace;
    for (const int source : {0, 2, 0}) {
      TrafficRecord r;
      r.operation = sim::Operation::write;
      r.source.number = static_cast<std::uint16_t>(source);
      r.target.number = 17;
      r.core = static_cast<int>(trace.records.size());
      r.bytes = 512;
      if (!trace.records.empty()) r.dependencies = {{0, TrafficDependency::Kind::completion, delay}};
      trace.records.push_back(r);
    }
    SupernodeOptions options;
    options.dies = {0, 2, 17};
    Supernode machine(parameters, options);
    std::vector<std::pair<Time, Time>> times;
    host::ReplayOptions how;
    how.finished = [&](const TrafficRecord&, Time start, Time end) { times.emplace_back(start, end); };
    host::Replay replay(machine, trace, how);
    EXPECT_TRUE(replay.run());
    EXPECT_EQ(times[1].first, times[0].second + std::max(delay, machine.lookahead()));
    EXPECT_EQ(times[2].first, times[0].second + delay);
  }
}

// A point between two records of a die, and a second one behind it, take no time.
TEST(ReplayOrder, APointOfOneDieTakesNoTime) {
  const hw::Machine parameters = hw::load_machine("cloudmatrix384");
  InMemoryTrace trace;
  for (std::uint64_t n = 0; n < 4; ++n) {
    TrafficRecord r;
    r.operation = sim::Operation::write;
    r.source.number = r.target.number = 2;
    if (n == 1 || n == 2) {
      r.kind = TrafficRecord::Kind::barrier;
    } else {
      r.target.number = 17;
      r.bytes = 512;
    }
    if (n > 0) r.dependencies = {{n - 1, TrafficDependency::Kind::completion, {}}};
    trace.records.push_back(r);
  }
  SupernodeOptions options;
  options.dies = {2, 17};
  Supernode machine(parameters, options);
  std::vector<std::pair<Time, Time>> times;
  host::ReplayOptions how;
  how.finished = [&](const TrafficRecord&, Time start, Time end) { times.emplace_back(start, end); };
  host::Replay replay(machine, trace, how);
  EXPECT_TRUE(replay.run());
  EXPECT_EQ(times[2].second, times[0].second);
  EXPECT_EQ(times[3].first, times[0].second);
}

// A point that joins dies: who is on the die of the last one waits for the lookahead of the others alone.
TEST(ReplayOrder, APhaseThatWaitsForSeveralDiesBeginsALookaheadAfterTheLastElsewhere) {
  const hw::Machine parameters = hw::load_machine("cloudmatrix384");
  InMemoryTrace trace;
  // The last: on the die of the one that ends last, behind a point of that die.
  for (const int source : {0, 2, 0, 4, 0, 2, 2, 2}) {
    TrafficRecord r;
    r.operation = sim::Operation::write;
    r.source.number = r.target.number = static_cast<std::uint16_t>(source);
    r.core = static_cast<int>(trace.records.size());
    if (trace.records.size() == 6) {
      r.kind = TrafficRecord::Kind::barrier;
      r.dependencies = {{2, TrafficDependency::Kind::completion, 1_us}};
    } else if (trace.records.size() == 2) {
      r.kind = TrafficRecord::Kind::barrier;
      r.dependencies = {{0, TrafficDependency::Kind::completion, {}},
                        {1, TrafficDependency::Kind::completion, {}}};
    } else {
      r.target.number = 17;
      r.bytes = trace.records.empty() ? 512 : 65536;
      if (trace.records.size() > 2)
        r.dependencies = {{trace.records.size() == 7 ? 6u : 2u, TrafficDependency::Kind::completion, {}}};
    }
    trace.records.push_back(r);
  }
  SupernodeOptions options;
  options.dies = {0, 2, 4, 17};
  Supernode machine(parameters, options);
  std::vector<std::pair<Time, Time>> times;
  host::ReplayOptions how;
  how.finished = [&](const TrafficRecord&, Time start, Time end) { times.emplace_back(start, end); };
  host::Replay replay(machine, trace, how);
  EXPECT_TRUE(replay.run());
  EXPECT_GT(times[1].second, times[0].second);
  EXPECT_EQ(times[2].second, times[1].second);
  EXPECT_EQ(times[3].first, times[1].second + machine.lookahead());
  EXPECT_EQ(times[4].first, times[1].second + machine.lookahead());
  EXPECT_GT(times[1].second, times[0].second + machine.lookahead());
  EXPECT_EQ(times[5].first, times[1].second);
  EXPECT_EQ(times[6].second, times[1].second + 1_us);
  EXPECT_EQ(times[7].first, times[1].second + 1_us);
}

}  // namespace
}  // namespace cm384::supernode::replay_order_test
