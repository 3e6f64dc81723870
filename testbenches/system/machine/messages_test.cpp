// Where the time of messages goes: against the sum of stages where nothing else moves, in a contention of
// two, and in a tangle, where the parts of every message are its whole.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>

#include "system/host/replay.h"
#include "system/host/replay_engines.h"
#include "system/machine/faults.h"
#include "system/observe/messages/message_times.h"
#include "system/observe/messages/unloaded.h"
#include "testbenches/system/machine/in_memory_trace.h"

namespace cm384::observe::messages_test {
namespace {

using namespace cm384::literals;
using traces::TrafficRecord;
using Cause = MessageCause;

struct Seen {
  Time ready, start, end;
  std::optional<Time> unloaded;
  MessageParts parts;
  double of(Cause cause) const { return static_cast<double>(parts[cause]) * 1e-3; }  // ns
};

TrafficRecord transfer(int from, int to, sim::Operation operation, std::uint64_t bytes, Time at,
                       int core = 0) {
  TrafficRecord r;
  r.operation = operation;
  r.source.number = static_cast<std::uint16_t>(from);
  r.target.number = static_cast<std::uint16_t>(to);
  r.core = core;
  r.offset = 1 << 20;
  r.bytes = bytes;
  r.start = r.end = at;
  return r;
}

std::vector<Seen> replay(const std::vector<TrafficRecord>& records, const std::vector<std::string>& set = {},
                         const std::string& preset = "cloudmatrix384",
                         const std::vector<std::string>& faults = {}, unsigned threads = 1) {
  const hw::Machine parameters = hw::load_machine(preset, set);
  InMemoryTrace trace;
  trace.records = records;
  supernode::SupernodeOptions options;
  std::set<int> dies;
  for (const TrafficRecord& r : records) {
    dies.insert(r.source.number);
    if (!r.target.cpu) dies.insert(r.target.number);
    if (r.target.cpu) options.sockets = {r.target.number};
    options.rdma = options.rdma || r.by_rdma;
  }
  options.dies = {dies.begin(), dies.end()};
  options.threads = threads;
  options.worth_sharing = 0;
  supernode::Supernode machine(parameters, options);
  supernode::Faults damaged(machine);
  for (const std::string& fault : faults) damaged.attach(supernode::parse_fault(fault));
  damaged.apply_breaks();
  MessageTimes times(machine);
  UnloadedTime unloaded(machine);
  std::vector<Seen> seen;
  host::ReplayOptions how;
  how.host = false;
  how.message = [&](const host::ReplayedMessage& m) {
    const std::uint64_t share = m.recorded.core == TrafficRecord::kAnyCore
                                    ? host::share_of_core(m.recorded.bytes, how.cores, how.piece_bytes)
                                    : m.recorded.bytes;
    Seen s{m.ready, m.start, m.end, unloaded.of(m.recorded, share), {}};
    s.parts = times.extract(m.transaction, m.ready, m.start, m.end);
    EXPECT_EQ(std::accumulate(s.parts.ps.begin(), s.parts.ps.end(), std::int64_t{0}), (m.end - m.ready).ps);
    for (const std::int64_t ps : s.parts.ps) EXPECT_GE(ps, 0);
    seen.push_back(s);
  };
  host::Replay replay(machine, trace, how);
  EXPECT_TRUE(replay.run());
  EXPECT_EQ(seen.size(), records.size());
  EXPECT_EQ(machine.shared_windows() > 0, threads > 1) << machine.thread_choice().why();
  return seen;
}

// 28 flits of 20 B carry 512 B, at 28 GB/s.
constexpr double kFlitNs = 20.0 / 28;
// Stages of cloudmatrix384, in ns: an endpoint's link, a trunk, a chip.
constexpr double kEnd = 100, kTrunk = 80, kChip = 100;

TEST(MessageTimes, AloneAreTheSumOfStages) {
  // The first one of each target finds no translation.
  const auto write = sim::Operation::write, read = sim::Operation::read;
  const std::vector<Seen> seen =
      replay({transfer(0, 17, write, 512, 10_us), transfer(0, 17, write, 512, 20_us),
              transfer(0, 17, read, 512, 30_us), transfer(0, 5, write, 512, 40_us),
              transfer(0, 5, write, 512, 50_us)});
  EXPECT_NEAR(seen[0].of(Cause::issue) - seen[1].of(Cause::issue), 500, 1e-3);  // the translation's walk
  const double answer = 50;
  for (const int n : {1, 2, 4}) {
    const bool intra = n == 4, reads = n == 2;
    const Seen& s = seen[static_cast<std::size_t>(n)];
    EXPECT_EQ(s.parts.hops, intra ? 2 : 4);
    EXPECT_EQ(s.of(Cause::source_queue), 0);
    EXPECT_EQ(s.of(Cause::issue), 0);
    EXPECT_EQ(s.of(Cause::credits), 0);
    // Two ways of it, and at most a flit's border on each link.
    EXPECT_NEAR(s.of(Cause::uplink), 2 * (kEnd + kChip), 2 * kFlitNs);
    EXPECT_NEAR(s.of(Cause::trunk), intra ? 0 : 4 * (kTrunk + kChip), 4 * kFlitNs);
    const int flits = reads ? 2 + 27 : 28 + 1;
    EXPECT_NEAR(s.of(Cause::downlink), 2 * kEnd + flits * kFlitNs, 2 * kFlitNs);
    EXPECT_NEAR(s.of(Cause::answer), answer, 1e-3);
    // All of it, and the closed form.
    const double whole = (s.end - s.ready).ns();
    const double wires = 2 * (2 * kEnd + kChip) + (intra ? 0 : 4 * (kTrunk + kChip)) + flits * kFlitNs;
    EXPECT_NEAR(whole - s.of(Cause::target) - answer, wires, 8 * kFlitNs);
    ASSERT_TRUE(s.unloaded);
    EXPECT_NEAR(whole / s.unloaded->ns(), 1, 0.005);
  }
}

TEST(UnloadedTime, HoldsForLongMessagesAndOtherMemory) {
  std::vector<TrafficRecord> records;
  Time at = 10_us;
  for (const std::uint64_t bytes : {512u, 4096u, 65'536u, 131'072u}) {
    for (const int to : {1, 5, 17}) {
      for (const auto operation : {sim::Operation::write, sim::Operation::read}) {
        for (int again = 0; again < 2; ++again, at += 100_us)
          records.push_back(transfer(0, to, operation, bytes, at));
      }
    }
  }
  const std::vector<Seen> seen = replay(records);
  for (std::size_t n = 1; n < seen.size(); n += 2) {
    ASSERT_TRUE(seen[n].unloaded);
    EXPECT_NEAR((seen[n].end - seen[n].ready).ns() / seen[n].unloaded->ns(), 1, 0.03) << n;
  }
}

// Of one message after another, each on its own: the slowdown of those for which translations are known and
// L2 has what is read.
std::vector<double> slowdowns(const std::vector<std::pair<int, int>>& pairs,
                              const std::vector<std::uint64_t>& sizes, const std::vector<std::string>& set,
                              const std::string& machine = "cloudmatrix384",
                              const std::vector<std::string>& faults = {}) {
  std::vector<TrafficRecord> records;
  Time at = 10_us;
  for (const auto& [from, to] : pairs) {
    for (const std::uint64_t bytes : sizes) {
      for (const auto operation : {sim::Operation::write, sim::Operation::read}) {
        for (int again = 0; again < 2; ++again, at += 1_ms)
          records.push_back(transfer(from, to, operation, bytes, at, TrafficRecord::kAnyCore));
      }
    }
  }
  const std::vector<Seen> seen = replay(records, set, machine, faults);
  std::vector<double> slow;
  for (std::size_t n = 1; n < seen.size(); n += 2) {
    EXPECT_TRUE(seen[n].unloaded);
    slow.push_back((seen[n].end - seen[n].ready).ns() / seen[n].unloaded->ns());
  }
  return slow;
}

void expect_none(const std::vector<double>& slow, double most = 1.01) {
  for (std::size_t n = 0; n < slow.size(); ++n) {
    EXPECT_GE(slow[n], 0.9995) << n;
    EXPECT_LE(slow[n], most) << n;
  }
}

const std::vector<std::pair<int, int>> kPairs{{0, 1}, {0, 5}, {0, 17}};

// 0 and 1 share a package, 5 a node with them.
TEST(UnloadedTime, IsWhatAMessageOfManyCoresTakesAlone) {
  expect_none(slowdowns(kPairs, {512, 16'384, 100'000, 2 << 20}, {}));
}

TEST(UnloadedTime, KnowsEachSubPlane) {
  for (const char* rates :
       {"ub.link.plane_rates=0.5,1", "ub.link.plane_rates=1,0.25,1", "ub.link.plane_rates=0.25"}) {
    SCOPED_TRACE(rates);
    expect_none(slowdowns({{0, 5}, {0, 17}}, {2 << 20}, {rates}));
    // Of so few requests some wait for a slot of a slow link's flits.
    expect_none(slowdowns({{0, 5}, {0, 17}}, {16'384}, {rates}), 1.05);
  }
}

TEST(UnloadedTime, KnowsTaperedTrunksSharesOfSocketsAndFaults) {
  expect_none(slowdowns({{0, 17}}, {2 << 20}, {"ub.link.trunk_rate=0.05"}));
  expect_none(slowdowns({{0, 17}}, {2 << 20}, {}, "cloudmatrix384", {"die=17,lanes=quarter"}));
  expect_none(slowdowns({{0, 17}}, {2 << 20}, {}, "cloudmatrix384", {"plane=0,die=17,lanes=quarter"}));
  expect_none(slowdowns({{0, 17}}, {2 << 20}, {}, "cloudmatrix384", {"plane=0,kind=down"}));
}

// Two devices, each on a switch, and three switches between these: 400 Gbit/s each, 1,200 to the devices. All
// packets of a message take all three ways.
TEST(UnloadedTime, KnowsParallelWays) {
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "cm384-parallel-ways";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "node.csv")
      << "nodeId,nodeType,portNum,forwardDelay\n0..1,DEVICE,1,1ns\n2..3,SWITCH,4,1ns\n"
         "4..6,SWITCH,2,1ns\n";
  std::ofstream(folder / "topology.csv")
      << "nodeId1,portId1,nodeId2,portId2,bandwidth,delay\n"
         "0,0,2,0,1200Gbps,20ns\n1,0,3,0,1200Gbps,20ns\n"
         "2,1,4,0,400Gbps,20ns\n2,2,5,0,400Gbps,20ns\n2,3,6,0,400Gbps,20ns\n"
         "3,1,4,1,400Gbps,20ns\n3,2,5,1,400Gbps,20ns\n3,3,6,1,400Gbps,20ns\n";
  expect_none(slowdowns({{0, 1}}, {512, 2 << 20}, {}, folder.string()));
  std::filesystem::remove_all(folder);
}

// What was worked out for one message is not told of another one.
TEST(UnloadedTime, OfAMessageIsThatOfNoOtherOne) {
  const hw::Machine parameters = hw::load_machine("cloudmatrix384");
  supernode::SupernodeOptions options;
  options.dies = {0, 1, 5, 16, 17};
  supernode::Supernode machine(parameters, options);
  UnloadedTime all(machine);
  const auto fresh = [&](const TrafficRecord& r, std::uint64_t share) {
    return UnloadedTime(machine).of(r, share);
  };
  const TrafficRecord base = transfer(0, 17, sim::Operation::write, 4096, 10_us);
  const auto expect_other = [&](const TrafficRecord& of, const TrafficRecord& changed, std::uint64_t share) {
    const auto before = all.of(of, 4096), after = all.of(changed, share);
    EXPECT_EQ(before, fresh(of, 4096));
    EXPECT_EQ(after, fresh(changed, share));
    EXPECT_NE(before, after);
    EXPECT_EQ(all.of(of, 4096), before);
  };
  expect_other(base, transfer(16, 17, sim::Operation::write, 4096, 10_us), 4096);
  expect_other(base, transfer(0, 5, sim::Operation::write, 4096, 10_us), 4096);
  expect_other(base, transfer(0, 17, sim::Operation::read, 4096, 10_us), 4096);
  expect_other(base, transfer(0, 17, sim::Operation::write, 8192, 10_us), 4096);
  expect_other(base, base, 512);
  TrafficRecord changed = base;
  changed.offset += 256;  // nine requests in place of eight
  expect_other(base, changed, 4096);
  changed = base;
  changed.bursts = 2;
  changed.stride = 8192;
  expect_other(base, changed, 4096);
  TrafficRecord further = changed;
  further.stride += 256;
  expect_other(changed, further, 4096);
  const TrafficRecord sibling = transfer(0, 1, sim::Operation::write, 4096, 10_us);
  changed = sibling;
  changed.by_ub = true;
  expect_other(sibling, changed, 4096);
}

TEST(MessageTimes, OfTwoThatMeetOneWaitsForTheOtherAtTheLastLink) {
  // Both come to die 34 by one sub-plane, from other nodes and by different links.
  std::vector<TrafficRecord> records;
  for (const Time at : {10_us, 20_us, 40_us}) {
    records.push_back(transfer(0, 34, sim::Operation::write, 512, at));
    if (at != 20_us) records.push_back(transfer(17, 34, sim::Operation::write, 512, at));
  }
  const std::vector<Seen> seen = replay(records, {"topology.sub_planes=1"});
  const Seen &alone = seen[2], &one = seen[3], &other = seen[4];
  const double more_one = (one.end - one.ready).ns() - (alone.end - alone.ready).ns();
  const double more_other = (other.end - other.ready).ns() - (alone.end - alone.ready).ns();
  EXPECT_NEAR(std::min(more_one, more_other), 0, 2 * kFlitNs);
  EXPECT_NEAR(std::max(more_one, more_other), 28 * kFlitNs, 3 * kFlitNs);
  const Seen& late = more_one > more_other ? one : other;
  EXPECT_NEAR(late.of(Cause::downlink) - alone.of(Cause::downlink), 28 * kFlitNs, 3 * kFlitNs);
  EXPECT_NEAR(late.of(Cause::trunk), alone.of(Cause::trunk), 3 * kFlitNs);
  EXPECT_GT(static_cast<double>((late.end - late.ready).ps) / static_cast<double>(late.unloaded->ps), 1.008);
}

TEST(MessageTimes, WaitsForAnEngineAreAtTheSource) {
  const std::vector<Seen> seen = replay({transfer(0, 17, sim::Operation::write, 65'536, 10_us),
                                         transfer(0, 17, sim::Operation::write, 65'536, 100_us),
                                         transfer(0, 17, sim::Operation::write, 512, 100_us),
                                         transfer(0, 17, sim::Operation::write, 512, 100_us, 1)});
  EXPECT_GT(seen[2].of(Cause::source_queue), 0.9 * seen[1].of(Cause::issue));
  EXPECT_EQ(seen[3].of(Cause::source_queue), 0);
}

TEST(MessageTimes, WaitsForCreditsAreNoWaitsForTheWire) {
  // Two packets' room at each input, and a trunk's round trip far beyond that.
  std::vector<TrafficRecord> records{transfer(0, 17, sim::Operation::write, 512, 10_us)};
  records.push_back(transfer(0, 17, sim::Operation::write, 16'384, 20_us));
  const std::vector<std::string> set{"topology.sub_planes=1", "ub.link.lanes=2"};
  const auto with = [&](const std::string& cells) {
    std::vector<std::string> all = set;
    all.push_back("ub.link.buffer_cells=" + cells);
    return replay(records, all)[1];
  };
  const Seen ample = with("1024"), scarce = with("8");
  EXPECT_EQ(ample.of(Cause::credits), 0);
  EXPECT_GT(scarce.of(Cause::credits), 0.9 * (scarce.end - ample.end).ns());
  // On the wire it had at most the others' flits before it.
  EXPECT_LT(scarce.of(Cause::uplink), ample.of(Cause::uplink) + 32 * 28 * kFlitNs);
  EXPECT_GT((scarce.end - scarce.ready).ps, (ample.end - ample.ready).ps * 3 / 2);
}

// Transfers of all kinds between five dies and a socket.
std::vector<TrafficRecord> tangle() {
  std::mt19937_64 draw(7);
  std::vector<TrafficRecord> records;
  for (int n = 0; n < 3000; ++n) {
    const int dies[] = {0, 1, 2, 17, 34};
    const int from = dies[draw() % 5];
    int to = dies[draw() % 5];
    if (to == from) to = from == 0 ? 34 : 0;
    TrafficRecord r =
        transfer(from, to, draw() % 3 == 0 ? sim::Operation::read : sim::Operation::write, 1 + draw() % 9000,
                 Time{static_cast<std::int64_t>(draw() % 30'000'000)}, static_cast<int>(draw() % 8));
    r.by_rdma = n % 37 == 0;
    if (n % 41 == 0 && !r.by_rdma) r.target = {true, 0};
    if (n % 29 == 0) r.core = TrafficRecord::kAnyCore;
    if (n % 31 == 0) {
      r.engine = TrafficRecord::Engine::sdma;
      r.core = 0;
    }
    records.push_back(r);
  }
  return records;
}

TEST(MessageTimes, PartsOfATangleAreItsWhole) {
  const std::vector<Seen> seen = replay(tangle(), {"topology.sub_planes=2"});
  std::array<std::int64_t, kMessageCauses> all{};
  for (const Seen& s : seen) {
    for (std::size_t n = 0; n < kMessageCauses; ++n) all[n] += s.parts.ps[n];
  }
  for (std::size_t n = 0; n < kMessageCauses; ++n) {
    if (static_cast<Cause>(n) != Cause::credits) {
      EXPECT_GT(all[n], 0) << name_of(static_cast<Cause>(n));
    }
  }
}

TEST(MessageTimes, DoNotDependOnThreads) {
  const std::vector<TrafficRecord> records = tangle();
  Time clean;
  for (const std::vector<std::string>& faults :
       {std::vector<std::string>{}, {"all,rate=0.05"}, {"all,rate=0.02,kind=lost"}}) {
    const std::vector<Seen> one = replay(records, {}, "cloudmatrix384", faults);
    const std::vector<Seen> several = replay(records, {}, "cloudmatrix384", faults, 3);
    ASSERT_EQ(one.size(), several.size());
    Time all;
    for (std::size_t n = 0; n < one.size(); ++n) {
      all = all + (one[n].end - one[n].ready);
      EXPECT_EQ(one[n].ready, several[n].ready) << n;
      EXPECT_EQ(one[n].start, several[n].start) << n;
      EXPECT_EQ(one[n].end, several[n].end) << n;
      EXPECT_EQ(one[n].unloaded, several[n].unloaded) << n;
      EXPECT_EQ(one[n].parts.ps, several[n].parts.ps) << n;
      EXPECT_EQ(one[n].parts.hops, several[n].parts.hops) << n;
    }
    if (faults.empty()) clean = all;
    EXPECT_EQ(all > clean, !faults.empty());
  }
}

}  // namespace
}  // namespace cm384::observe::messages_test
