// Collectives on an idle fabric take what their rounds take one after another.
#include "traces/collectives.h"

#include <gtest/gtest.h>

#include "host/replay.h"
#include "testbenches/supernode/in_memory_trace.h"

namespace cm384::supernode {
namespace {

using namespace cm384::literals;
using traces::CollectiveAlgorithm;
using traces::CollectiveKind;
using traces::RecordGraph;
using traces::TrafficDependency;
using traces::TrafficRecord;

constexpr int kRanks = 8;
constexpr std::int64_t kPart = 32 << 10;

struct Collected final : traces::TrafficSink {
  InMemoryTrace trace;
  void add(const TrafficRecord& record) override { trace.records.push_back(record); }
  void finish() override {}
};

// Ranks of two nodes, four on each, each in a package of its own.
int die_of(int rank) {
  return rank / 4 * 16 + rank % 4 * 2;
}

TrafficRecord point(int rank) {
  TrafficRecord r;
  r.kind = TrafficRecord::Kind::barrier;
  r.source.number = r.target.number = static_cast<std::uint16_t>(die_of(rank));
  return r;
}

// Rounds, twice: what the second time takes, when all translations are known.
double us_of(const std::vector<traces::CollectiveRound>& rounds) {
  RecordGraph graph;
  const auto transfer = [](const traces::CollectiveSend& send) {
    TrafficRecord r = point(send.from);
    r.kind = TrafficRecord::Kind::transfer;
    r.operation = sim::Operation::write;
    r.target.number = static_cast<std::uint16_t>(die_of(send.to));
    r.core = TrafficRecord::kAnyCore;
    r.bytes = static_cast<std::uint64_t>(send.bytes);
    return r;
  };
  std::vector<std::uint64_t> begin, middle, end;
  for (std::vector<std::uint64_t>* points : {&begin, &middle, &end}) {
    for (int rank = 0; rank < kRanks; ++rank) points->push_back(graph.add(point(rank), "test"));
  }
  const std::uint64_t all = graph.join(middle, TrafficDependency::Kind::completion, point(0).source, "test");
  std::vector<std::uint64_t> again;
  for (int rank = 0; rank < kRanks; ++rank) {
    again.push_back(graph.add(point(rank), "test"));
    graph.wait(again.back(), {all, TrafficDependency::Kind::completion, 50_us});
  }
  add_collective(graph, rounds, begin, middle, {transfer, point, "test"});
  add_collective(graph, rounds, again, end, {transfer, point, "test"});
  Collected made;
  graph.write(made);
  const hw::Machine parameters = hw::load_machine("cloudmatrix384");
  SupernodeOptions options;
  for (int rank = 0; rank < kRanks; ++rank) options.dies.push_back(die_of(rank));
  Supernode machine(parameters, options);
  Time joined, last;
  host::ReplayOptions how;
  how.finished = [&](const TrafficRecord& r, Time, Time done) {
    if (r.kind == TrafficRecord::Kind::barrier && r.dependencies.size() == kRanks && joined == Time{})
      joined = done;
    last = std::max(last, done);
  };
  host::Replay replay(machine, made.trace, how);
  EXPECT_TRUE(replay.run());
  return (last - joined).us() - 50;
}

double us_of(CollectiveKind kind, CollectiveAlgorithm algorithm) {
  std::vector<int> node;
  for (int rank = 0; rank < kRanks; ++rank) node.push_back(die_of(rank) / 16);
  return us_of(collective_rounds(kind, algorithm, kPart * kRanks, node));
}

// A round of messages of so many bytes between ranks that differ by `step`: until it has arrived, and what
// the acknowledgements take beyond that.
struct Round {
  double us = 0, answer_us = 0;
};
Round round_of(std::int64_t bytes, int step) {
  const auto rounds = [&](int count) {
    std::vector<traces::CollectiveRound> all(static_cast<std::size_t>(count));
    for (traces::CollectiveRound& round : all) {
      for (int rank = 0; rank < kRanks; ++rank) round.push_back({rank, rank ^ step, bytes});
    }
    return us_of(all);
  };
  const double one = rounds(1), each = (rounds(9) - one) / 8;
  return {each, one - each};
}

TEST(CollectiveTimes, AreThoseOfTheirRoundsOnAnIdleFabric) {
  // Within a node and between nodes, and what halving sends.
  const Round within = round_of(kPart, 1), between = round_of(kPart, 4);
  const Round doubled = round_of(2 * kPart, 2), largest = round_of(4 * kPart, 4);
  EXPECT_GT(between.us, within.us);
  EXPECT_GT(largest.us, between.us + 0.5);
  // Each rank waits for the one before it: the mean of all steps round the ring, two of eight between nodes.
  const double ring = us_of(CollectiveKind::all_reduce, CollectiveAlgorithm::ring);
  const double step = (6 * within.us + 2 * between.us) / kRanks;
  EXPECT_NEAR(ring / (2 * (kRanks - 1) * step + within.answer_us), 1, 0.03);
  const double halves = largest.us + doubled.us + within.us;
  const double halving = us_of(CollectiveKind::all_reduce, CollectiveAlgorithm::halving);
  EXPECT_NEAR(halving / (2 * halves + largest.answer_us), 1, 0.03);
  const double scatter = us_of(CollectiveKind::reduce_scatter, CollectiveAlgorithm::halving);
  EXPECT_NEAR(scatter / (halves + within.answer_us), 1, 0.03);
  // All pairs at once: as long as a controller takes for seven parts, and at most a message's latency.
  const hw::Machine m = hw::load_machine("cloudmatrix384");
  const double bound = (kRanks - 1) * static_cast<double>(kPart) / 512 * m.ub.controller.write_interval.us();
  const double direct = us_of(CollectiveKind::all_to_all, CollectiveAlgorithm::direct);
  EXPECT_GT(direct, bound);
  EXPECT_LT(direct, 1.3 * (bound + between.us + between.answer_us));
  EXPECT_LT(halving, ring);
}

}  // namespace
}  // namespace cm384::supernode
