// Collectives on an idle fabric against closed forms: bytes over the narrowest place, and the latency of each
// round.
#include "traces/collectives.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "base/text/error.h"
#include "system/host/replay.h"
#include "testbenches/system/machine/in_memory_trace.h"

namespace cm384::supernode::collectives_test {
namespace {

using namespace cm384::literals;
using traces::CollectiveAlgorithm;
using traces::CollectiveKind;
using traces::RecordGraph;
using traces::TrafficDependency;
using traces::TrafficRecord;

constexpr int kRanks = 8;
constexpr std::int64_t kPart = 128 << 10;

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
double us_of(const std::vector<traces::CollectiveRound>& rounds, const std::vector<std::string>& set) {
  RecordGraph graph;
  traces::Placing placing;  // both times at the same places
  const auto transfer = [&placing](const traces::CollectiveSend& send) {
    TrafficRecord r = point(send.from);
    r.kind = TrafficRecord::Kind::transfer;
    r.operation = sim::Operation::write;
    r.target.number = static_cast<std::uint16_t>(die_of(send.to));
    r.core = TrafficRecord::kAnyCore;
    r.bytes = static_cast<std::uint64_t>(send.bytes);
    r.offset = placing.allocate(r.target.number, r.bytes);
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
  placing = {};
  add_collective(graph, rounds, again, end, {transfer, point, "test"});
  Collected made;
  graph.write(made);
  const hw::Machine parameters = hw::load_machine("cloudmatrix384", set);
  SupernodeOptions options;
  for (int rank = 0; rank < kRanks; ++rank) options.dies.push_back(die_of(rank));
  Supernode machine(parameters, options);
  Time begun, last;
  host::ReplayOptions how;
  how.finished = [&](const TrafficRecord& r, Time start, Time done) {
    if (!r.dependencies.empty() && r.dependencies[0].delay == 50_us) begun = start;
    last = std::max(last, done);
  };
  host::Replay replay(machine, made.trace, how);
  EXPECT_TRUE(replay.run());
  return (last - begun).us();
}

// What bounds a fabric: ports of a die, links from a node's chip to others in a sub-plane, and a request's
// way between nodes beyond that within one.
struct Fabric {
  std::vector<std::string> set;
  double planes = 7, trunks = 16, farther_ns = 2 * (80 + 100);
};

// Of cloudmatrix384: a write of 512 B is 28 flits of 20 B at 28 GB/s; a port's link and a chip take 100 ns
// each, a write is taken in within 430 ns and takes L2 80 ns between two ways of 55 ns; the controller of its
// source sends one every 3.732 ns, an engine begins after 62.6 cycles.
class Closed {
 public:
  explicit Closed(const Fabric& fabric) : fabric_(fabric) {}
  // A round of one request: until it has arrived.
  double within_us() const { return (kSetupNs + kWayNs + 28 * kFlitNs + 430) * 1e-3; }
  double between_us() const { return within_us() + fabric_.farther_ns * 1e-3; }
  // `parts` that every rank sends; `far` of them over the links between nodes, of four ranks together.
  double us(double parts, double far = 0) const {
    const double requests = static_cast<double>(kPart) / 512;
    // 28 flits and, of what comes the other way, one of an answer.
    const double port = std::max(3.732, 29 * kFlitNs / fabric_.planes);
    const double trunk = 4 * 29 * kFlitNs / (fabric_.planes * fabric_.trunks);
    return requests * std::max(parts * port, far * trunk) * 1e-3;
  }
  // Before the first round all wait for each other; behind the last one the answer comes back.
  double ends_us(bool last_between) const {
    return (200 + kWriteNs + kWayNs + 50 + (last_between ? fabric_.farther_ns : 0)) * 1e-3;
  }

 private:
  static constexpr double kSetupNs = (50 + 12.6) / 1.85, kWayNs = 300, kWriteNs = 55 + 80 + 55;
  static constexpr double kFlitNs = 20.0 / 28;
  const Fabric& fabric_;
};

// Of eight ranks on two nodes.
double closed_form(CollectiveKind kind, CollectiveAlgorithm algorithm, const Fabric& fabric) {
  using Kind = CollectiveKind;
  const Closed t(fabric);
  const double within = t.within_us(), between = t.between_us();
  const int passes = kind == Kind::all_reduce ? 2 : 1;
  switch (algorithm) {
    case CollectiveAlgorithm::direct:
      return passes * (between + t.us(7, 4)) + t.ends_us(true);
    case CollectiveAlgorithm::ring:
      // Two of eight steps round the ring are between nodes; one rank of four sends there.
      return passes * (5 * within + 2 * between + 7 * t.us(1, 0.25)) + t.ends_us(true);
    case CollectiveAlgorithm::halving:
      return passes * (between + t.us(4, 4) + 2 * within + t.us(2 + 1)) +
             t.ends_us(kind != Kind::reduce_scatter);
    case CollectiveAlgorithm::bruck:
      // Steps of 1, 2 and 4: one, two and four of four ranks send to the other node; the slowest way is twice
      // between nodes.
      return 2 * between + within + t.ends_us(true) +
             (kind == Kind::all_to_all ? t.us(4, 1) + t.us(4, 2) + t.us(4, 4)
                                       : t.us(1, 0.25) + t.us(2, 1) + t.us(4, 4));
    case CollectiveAlgorithm::hierarchical:
      break;
  }
  const bool last_between = kind == Kind::all_to_all || kind == Kind::reduce_scatter;
  const double far = kind == Kind::all_to_all ? 4 : 1;
  return passes * (within + t.us(3 * 2) + between + t.us(far, far)) + t.ends_us(last_between);
}

double us_of(CollectiveKind kind, CollectiveAlgorithm algorithm, const Fabric& fabric) {
  std::vector<int> node;
  for (int rank = 0; rank < kRanks; ++rank) node.push_back(die_of(rank) / 16);
  return us_of(collective_rounds(kind, algorithm, kPart * kRanks, node), fabric.set);
}

TEST(CollectiveTimes, AreTheirClosedFormsOnAnIdleFabric) {
  const Fabric fabrics[]{{},
                         {{"topology.sub_planes=2"}, 2},
                         {{"topology.l2_switches=1"}, 7, 1},
                         {{"topology.kind=full-mesh"}, 7, 1, 80 + 100}};
  for (const Fabric& fabric : fabrics) {
    for (int k = 0; k < traces::kCollectiveKinds; ++k) {
      const auto kind = static_cast<CollectiveKind>(k);
      for (const auto algorithm :
           {CollectiveAlgorithm::direct, CollectiveAlgorithm::ring, CollectiveAlgorithm::halving,
            CollectiveAlgorithm::bruck, CollectiveAlgorithm::hierarchical}) {
        traces::CollectiveChoice choice;
        const std::string name = fmt::format("{}={}", name_of(kind), name_of(algorithm));
        try {
          traces::parse_collective(name, choice);
        } catch (const InputError&) {
          continue;
        }
        // Steps of Bruck's that cross nodes on few ranks leave links to others: the form is a bound there.
        const bool bound = algorithm == CollectiveAlgorithm::bruck && fabric.trunks == 1;
        const double ratio = us_of(kind, algorithm, fabric) / closed_form(kind, algorithm, fabric);
        EXPECT_LT(ratio, 1.02) << name << fmt::format(" {}", fmt::join(fabric.set, " "));
        EXPECT_GT(ratio, bound ? 0.93 : 0.98) << name << fmt::format(" {}", fmt::join(fabric.set, " "));
      }
    }
  }
}

}  // namespace
}  // namespace cm384::supernode::collectives_test
