// Service classes: shares of a saturated link and latencies beside it against closed form, rates of classes,
// what strict priority, deficit round robin and age promise.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/text/error.h"
#include "firmware/abi/memory_map.h"
#include "testbenches/ub_fabric/fabric_bench.h"
#include "ub_fabric/service_classes.h"

namespace cm384::ub::qos_test {
namespace {

using namespace cm384::literals;
using sim::Operation;
using Settings = std::vector<std::string>;

// One sub-plane, in which links alone bind: 28 GB/s, 20 B in 714.3 ps.
Settings links_bind(const Settings& more) {
  Settings all{"topology.sub_planes=1",
               "ub.controller.read_outstanding=4000",
               "ub.controller.write_outstanding=4000",
               "ub.controller.read_interval=0ps",
               "ub.controller.write_interval=0ps",
               "ub.link.buffer_cells=1000"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

Settings classes_of(int classes, const std::string& arbitration, const Settings& more = {}) {
  Settings all{"ub.qos.classes=" + std::to_string(classes), "ub.link.lanes=" + std::to_string(2 * classes),
               "ub.qos.arbitration=" + arbitration};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

constexpr double kFlitNs = 20.0 / 28;

// Of a write request: 28 B before its payload, 4 B behind, in flits of 20 B.
double flits_of_write(int bytes) {
  return (28 + bytes + 4 + 19) / 20;
}

// What a die does all the time: writes to another one, or reads from it.
struct Flow {
  unsigned from = 0, to = 0, level = 0;
  int bytes = 512;
  Operation operation = Operation::write;
};

// Messages of each flow that are done within 40 us, once queues are full.
std::vector<double> done_per_flow(const Settings& settings, const std::vector<Flow>& flows,
                                  Time measured = 40_us) {
  const Parameters p = machine(links_bind(settings));
  std::vector<unsigned> dies;
  for (const Flow& flow : flows) dies.insert(dies.end(), {flow.from, flow.to});
  std::ranges::sort(dies);
  dies.erase(std::unique(dies.begin(), dies.end()), dies.end());
  FabricBench bench(p, dies);
  for (const Flow& flow : flows) {
    bench.at(flow.from).logs = false;
    bench.at(flow.from).stream(
        flow.operation, static_cast<std::uint32_t>(flow.bytes), 10'000'000, 1'500,
        [to = flow.to](std::uint64_t i) { return cm384_gm_die(to, i % 512 * 512) | CM384_GM_VIA_UB_BIT; },
        flow.level);
  }
  bench.run(60_us);
  std::vector<double> before, done;
  for (const Flow& flow : flows) before.push_back(static_cast<double>(bench.at(flow.from).completions));
  bench.run(60_us + measured);
  for (std::size_t n = 0; n < flows.size(); ++n)
    done.push_back(static_cast<double>(bench.at(flows[n].from).completions) - before[n]);
  return done;
}

// Of flows that write, shares of the flits that one link carries.
std::vector<double> shares(const Settings& settings, const std::vector<Flow>& flows, Time measured = 40_us) {
  std::vector<double> flits = done_per_flow(settings, flows, measured);
  for (std::size_t n = 0; n < flows.size(); ++n) flits[n] *= flits_of_write(flows[n].bytes);
  const double sum = std::accumulate(flits.begin(), flits.end(), 0.0);
  EXPECT_NEAR(sum * kFlitNs, measured.ns(), 0.01 * measured.ns()) << "the link is not full";
  for (double& share : flits) share /= sum;
  return flits;
}

void expect_shares(const std::vector<double>& found, const std::vector<double>& weights) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (std::size_t n = 0; n < weights.size(); ++n)
    EXPECT_NEAR(found[n], weights[n] / sum, 0.02 * weights[n] / sum) << "flow " << n;
}

TEST(DeficitRoundRobin, SharesALinkByWeight) {
  const std::vector<Flow> two{{2, 0, 0}, {4, 0, 1}};
  expect_shares(shares(classes_of(2, "drr", {"ub.qos.weights=1,2"}), two), {1, 2});
  expect_shares(shares(classes_of(2, "drr", {"ub.qos.weights=3,1"}), two), {3, 1});
  expect_shares(shares(classes_of(2, "drr"), two), {1, 1});
  expect_shares(shares(classes_of(3, "drr", {"ub.qos.weights=1,1,2"}), {{2, 0, 0}, {4, 0, 1}, {6, 0, 2}}),
                {1, 1, 2});
  // A level above the highest class counts as that.
  expect_shares(shares(classes_of(2, "drr", {"ub.qos.weights=1,2"}), {{2, 0, 0}, {4, 0, 9}}), {1, 2});
}

// By flits, whatever the packets' lengths and how many dies a class has.
TEST(DeficitRoundRobin, CountsFlitsNotPackets) {
  const Settings two_to_one = classes_of(2, "drr", {"ub.qos.weights=1,2"});
  for (const int bytes : {64, 200, 511}) {
    expect_shares(shares(two_to_one, {{2, 0, 0, 512}, {4, 0, 1, bytes}}), {1, 2});
    expect_shares(shares(two_to_one, {{2, 0, 0, bytes}, {4, 0, 1, 512}}), {1, 2});
  }
  const std::vector<double> three = shares(two_to_one, {{2, 0, 0}, {4, 0, 0}, {6, 0, 1}});
  expect_shares({three[0] + three[1], three[2]}, {1, 2});
  // A quantum below a packet's length takes rounds, and changes no share.
  expect_shares(shares(classes_of(2, "drr", {"ub.qos.weights=1,2", "ub.qos.quantum=20B"}),
                       {{2, 0, 0, 512}, {4, 0, 1, 200}}),
                {1, 2});
}

// Requests of one class and responses of another on one link: writes of 28 flits, answers to reads of 27.
TEST(DeficitRoundRobin, CountsRequestsAndResponsesAlike) {
  const auto done = done_per_flow(classes_of(2, "drr", {"ub.qos.weights=1,2"}),
                                  {{2, 0, 1, 512}, {0, 4, 0, 512, Operation::read}});
  const double writes = done[0] * 28, answers = done[1] * 27;
  EXPECT_NEAR(writes / (writes + answers), 2.0 / 3, 0.02 * 2 / 3);
}

// Between chips as well: both flows leave their node by its one trunk.
TEST(DeficitRoundRobin, SharesATrunk) {
  expect_shares(shares(classes_of(2, "drr", {"ub.qos.weights=1,2", "topology.l2_switches=1"}),
                       {{0, 16, 0}, {2, 18, 1}}),
                {1, 2});
}

// Requests of two classes that one die has waiting, submitted in turn: those of class 1 done when `done` in
// all are.
double done_of_class_one(const Settings& settings, std::size_t done) {
  const Parameters p = machine(links_bind(settings));
  FabricBench bench(p, {0, 2, 4});
  for (const unsigned to : {2u, 4u}) bench.at(0).controller.warm_translation(cm384_gm_die(to, 0));
  for (std::uint32_t i = 0; i < 6'000; ++i) {
    bench.at(0).request(1_us + Time{i}, Operation::write, cm384_gm_die(i % 2 == 0 ? 2 : 4, i % 512 * 512),
                        512, i % 2, i % 2);
  }
  bench.run();
  EXPECT_EQ(bench.at(0).done.size(), 6'000u);
  return static_cast<double>(std::count_if(bench.at(0).done.begin(),
                                           bench.at(0).done.begin() + static_cast<std::ptrdiff_t>(done),
                                           [](const auto& d) { return d.tag == 1; }));
}

// At the port, where all may be issued at once; and before the bound on outstanding requests, whose first
// slots are taken as requests come.
TEST(Controller, SharesItsPortAndItsSlots) {
  for (const int slots : {8'000, 60}) {
    const std::string bound = "ub.controller.write_outstanding=" + std::to_string(slots);
    EXPECT_NEAR(done_of_class_one(classes_of(2, "drr", {"ub.qos.weights=1,2", bound}), 3'000), 2'000, 40)
        << slots;
    EXPECT_NEAR(done_of_class_one(classes_of(2, "drr", {bound}), 3'000), 1'500, 30) << slots;
    EXPECT_GE(done_of_class_one(classes_of(2, "strict", {bound}), 3'000), slots == 60 ? 2'970 : 2'990);
    EXPECT_NEAR(done_of_class_one(classes_of(2, "age", {bound}), 3'000), 1'500, 30) << slots;
  }
}

// As target: what it serves at an interval it takes by class.
TEST(Controller, SharesItsServiceAsTarget) {
  const auto served = [&](const char* arbitration, const Settings& more) {
    Settings settings{"ub.controller.target_write_interval=40ns"};
    settings.insert(settings.end(), more.begin(), more.end());
    const auto done = done_per_flow(classes_of(2, arbitration, settings), {{2, 0, 0}, {4, 0, 1}}, 200_us);
    EXPECT_NEAR(done[0] + done[1], 5'000, 50);
    return done[1] / (done[0] + done[1]);
  };
  EXPECT_NEAR(served("drr", {"ub.qos.weights=1,2"}), 2.0 / 3, 0.02 * 2 / 3);
  EXPECT_GT(served("strict", {}), 0.99);
  EXPECT_NEAR(served("age", {"ub.controller.write_outstanding=64"}), 0.5, 0.01);
}

// What a class does not ask for goes to the others, and it still gets all that it asks for.
TEST(DeficitRoundRobin, IsWorkConserving) {
  for (const char* arbitration : {"drr", "strict", "age"}) {
    Settings settings = classes_of(2, arbitration);
    if (arbitration == std::string("drr")) settings.emplace_back("ub.qos.weights=1,9");
    EXPECT_EQ(shares(settings, {{2, 0, 0}})[0], 1) << arbitration;
  }
  // A fifth of the link, 512 B in 100 ns, beside who would take it all.
  const Parameters p = machine(links_bind(classes_of(2, "drr", {"ub.qos.weights=1,2"})));
  FabricBench bench(p, {0, 2, 4});
  bench.at(2).logs = false;
  bench.at(2).stream(Operation::write, 512, 1'000'000, 1'500,
                     [](std::uint64_t i) { return cm384_gm_die(0, i % 512 * 512); });
  for (std::uint32_t i = 0; i < 1'000; ++i)
    bench.at(4).request(Time{100'000} * i, Operation::write, cm384_gm_die(0, 0), 512, i, 1);
  bench.run(20_us);
  const auto before = static_cast<double>(bench.at(2).completions);
  const std::size_t first = bench.at(4).done.size();
  bench.run(90_us);
  EXPECT_NEAR(static_cast<double>(bench.at(4).done.size() - first), 700, 2);
  EXPECT_NEAR(static_cast<double>(bench.at(2).completions) - before, 70'000 * 0.8 / 20, 30);
}

// The longest that a request of the highest class takes, one in 1,009 ns, while others fill the link to its
// target, less the time that it takes alone.
double longest_wait_ns(const Settings& settings, const std::vector<Flow>& others, unsigned level) {
  const auto worst = [&](bool beside) {
    const Parameters p = machine(links_bind(settings));
    std::vector<unsigned> dies{0, 14};
    for (const Flow& flow : others) dies.push_back(flow.from);
    FabricBench bench(p, dies);
    for (const Flow& flow : others) {
      if (!beside) continue;
      bench.at(flow.from).logs = false;
      bench.at(flow.from).stream(
          Operation::write, 512, 1'000'000, 1'500,
          [](std::uint64_t i) { return cm384_gm_die(0, i % 512 * 512); }, flow.level);
    }
    for (std::uint32_t i = 0; i < 200; ++i)
      bench.at(14).request(Time{1'009'000} * i, Operation::write, cm384_gm_die(0, 0), 512, i, level);
    bench.run(210_us);
    Time longest{};
    for (const auto& d : bench.at(14).done) {
      if (d.tag >= 50) longest = std::max(longest, d.at - Time{1'009'000} * d.tag);
    }
    return longest.ns();
  };
  return worst(true) - worst(false);
}

// A packet on the wire and the one that the arbiter has chosen stand before it, whatever waits below.
TEST(Strict, WaitsForTwoPacketsAtMost) {
  const std::vector<Flow> three{{2, 0, 0}, {4, 0, 1}, {6, 0, 2}};
  const double strict = longest_wait_ns(classes_of(4, "strict"), three, 3);
  EXPECT_LE(strict, 2 * 28 * kFlitNs + 2 * kFlitNs);
  EXPECT_GT(strict, 28 * kFlitNs);
  // Of lanes, or without classes of inputs, in turn each has one before it.
  EXPECT_GT(longest_wait_ns(classes_of(4, "round-robin"), three, 3), 3 * 28 * kFlitNs);
  EXPECT_GT(longest_wait_ns({}, three, 3), 3 * 28 * kFlitNs);
}

TEST(Strict, LeavesNothingWhereAHigherClassTakesAll) {
  const auto found = shares(classes_of(2, "strict"), {{2, 0, 0}, {4, 0, 1}});
  EXPECT_LT(found[0], 0.01);
}

// The turns of the others, each its quantum and at most a packet less a flit of its deficit before, and two
// packets as above.
TEST(DeficitRoundRobin, BoundsTheWaitByTheTurnsOfTheOthers) {
  double before = 0;
  for (const int weight : {1, 4, 16}) {
    const double wait = longest_wait_ns(
        classes_of(3, "drr", {"ub.qos.weights=" + std::to_string(weight) + ",1,1", "ub.qos.quantum=640B"}),
        {{2, 0, 0}, {4, 0, 1}}, 2);
    const double turns = 32 * weight + 27 + 32 + 27;
    EXPECT_LE(wait, (turns + 2 * 28 + 2) * kFlitNs) << weight;
    EXPECT_GT(wait, before) << weight;
    before = wait;
  }
}

// The smallest class beside a hundred times its weight gets its share.
TEST(DeficitRoundRobin, StarvesNobody) {
  const auto found = shares(classes_of(2, "drr", {"ub.qos.weights=1,100"}), {{2, 0, 0}, {4, 0, 1}}, 400_us);
  EXPECT_NEAR(found[0], 1.0 / 101, 0.05 / 101);
}

double jain_of_hot_target(const std::string& arbitration) {
  std::vector<Flow> flows;
  for (unsigned d = 1; d <= 15; ++d) flows.push_back({d % 2 ? d : 16 * d, 0});
  const auto done = done_per_flow({"ub.qos.arbitration=" + arbitration, "ub.controller.write_outstanding=64"},
                                  flows, 200_us);
  double sum = 0, squares = 0;
  for (const double n : done) {
    sum += n;
    squares += n * n;
  }
  return sum * sum / (static_cast<double>(done.size()) * squares);
}

// Fifteen dies write to one, seven of them by trunks that they share: with inputs in turn local dies get more
// (Fairness.OfOneHotTarget), with the oldest packet first all get alike.
TEST(Age, IsFairOverUnlikeWays) {
  EXPECT_LT(jain_of_hot_target("round-robin"), 0.90);
  EXPECT_GT(jain_of_hot_target("age"), 0.99);
}

// Payload per second of a class whose rate is limited, and of one beside it.
TEST(Rates, HoldWithinAPercent) {
  for (const Operation operation : {Operation::write, Operation::read}) {
    const Settings limited = {"ub.qos.rates=10GB/s,none"};
    for (const int bytes : {512, 200}) {
      const auto done = done_per_flow(classes_of(2, "round-robin", limited),
                                      {{2, 0, 0, bytes, operation}, {4, 6, 1, bytes, operation}}, 100_us);
      EXPECT_NEAR(done[0] * bytes / 100e3, 10, 0.1) << bytes;
      EXPECT_GT(done[1] * bytes / 100e3, 18) << bytes;
    }
  }
  // Without classes of all requests.
  EXPECT_NEAR(done_per_flow({"ub.qos.rates=5GB/s"}, {{2, 0, 3}}, 100_us)[0] * 512 / 100e3, 5, 0.05);
}

// After a pause a burst goes at once, and then a request whenever the rate has filled its 512 B, 512 ns; a
// class without a limit passes those that wait.
TEST(Rates, LetABurstGoAtOnce) {
  const Parameters p = machine(links_bind(classes_of(
      2, "round-robin",
      {"ub.qos.rates=1GB/s,none", "ub.qos.burst=8KiB", "ub.controller.write_inbound_latency=0ps"})));
  FabricBench bench(p, {0, 2});
  constexpr std::size_t kBurst = 8'192 / 512;
  for (const Time at : {1_us, 60_us}) {
    for (int i = 0; i < 40; ++i) bench.at(0).request(at, Operation::write, cm384_gm_die(2, 0), 512, 0, 0);
    bench.at(0).request(at + 1'100_ns, Operation::write, cm384_gm_die(2, 0), 512, 1, 1);
  }
  bench.run();
  ASSERT_EQ(bench.at(2).accesses.size(), 82u);
  for (std::size_t half = 0; half < 2; ++half) {
    std::vector<Time> limited;
    Time other{};
    for (std::size_t n = 0; n < 41; ++n) {
      const auto& access = bench.at(2).accesses[half * 41 + n].request;
      if (access.tag == 0) {
        limited.push_back(access.at);
      } else {
        other = access.at;
      }
    }
    ASSERT_EQ(limited.size(), 40u);
    EXPECT_LE((limited[kBurst - 1] - limited[0]).ns(), static_cast<double>(kBurst - 1) * 20 + 1);
    EXPECT_LT(other, limited[kBurst + 3]);
    if (half == 0) continue;  // walks of translation tables hold the first ones up
    EXPECT_NEAR((limited[kBurst] - limited[0]).ns(), 512, 0.8);
    for (std::size_t k = kBurst; k + 1 < limited.size(); ++k)
      EXPECT_NEAR((limited[k + 1] - limited[k]).ns(), 512, 0.8) << k;
  }
}

TEST(TokenBucket, CountsToThePicosecond) {
  TokenBucket bucket(10_GBps, 1_KiB);
  EXPECT_EQ(bucket.earliest(512), 0_ns);
  bucket.spend(512, 100_ns);
  EXPECT_LE(bucket.earliest(512), 100_ns);
  bucket.spend(512, 100_ns);
  EXPECT_EQ(bucket.earliest(512), Time{151'200});
  EXPECT_EQ(bucket.earliest(1), Time{100'100});
  bucket.spend(512, 200_ns);  // 512 B had come back after 51.2 ns, 488 B more since
  EXPECT_EQ(bucket.earliest(512), Time{202'400});
  const TokenBucket unlimited(Bandwidth{}, 1_KiB);
  EXPECT_EQ(unlimited.earliest(512), 0_ns);
}

// Whose turn it is, packet by packet.
TEST(ClassTurns, SpendTheirQuantum) {
  const auto turns_of = [](const Settings& settings) {
    return ClassTurns(ServiceClasses(machine(settings).ub.qos), 1);
  };
  const auto all_alike = [](unsigned) { return 28; };
  ClassTurns turns = turns_of(classes_of(2, "drr", {"ub.qos.weights=1,2", "ub.qos.quantum=560B"}));
  std::vector<unsigned> order;
  for (int n = 0; n < 9; ++n) order.push_back(turns.next(0, 3, all_alike));
  EXPECT_EQ(order, (std::vector<unsigned>{0, 1, 1, 0, 1, 1, 0, 1, 1}));
  // A class that is not ready loses the rest of its turn: it may keep a packet's flits, no more.
  ClassTurns blocked = turns_of(classes_of(2, "drr", {"ub.qos.weights=1,10", "ub.qos.quantum=560B"}));
  for (int n = 0; n < 50; ++n) {
    EXPECT_EQ(blocked.next(0, 2, all_alike), 1u);
    EXPECT_EQ(blocked.next(0, 1, all_alike), 0u);
  }
  int in_a_row = 0;
  while (blocked.next(0, 3, all_alike) == 1) ++in_a_row;
  EXPECT_LE(in_a_row, 11);
  EXPECT_GE(in_a_row, 10);
  // Nor does it save what it has not used once nobody waits.
  ClassTurns idle = turns_of(classes_of(2, "drr", {"ub.qos.quantum=600B"}));
  for (int n = 0; n < 50; ++n) {
    EXPECT_EQ(idle.next(0, 2, all_alike), 1u);
    idle.emptied(0, 1);
  }
  EXPECT_EQ(idle.next(0, 3, all_alike), 0u);
  EXPECT_EQ(idle.next(0, 3, all_alike), 1u);
  EXPECT_EQ(idle.next(0, 3, all_alike), 0u);
  // Lanes of a class in turn, whatever others have sent.
  ClassTurns lanes = turns_of(classes_of(2, "drr"));
  EXPECT_EQ(lanes.next_lane(0, 0, 0b0011), 0u);
  lanes.sent(0, 0);
  lanes.sent(0, 3);
  EXPECT_EQ(lanes.next_lane(0, 0, 0b0011), 1u);
  lanes.sent(0, 1);
  EXPECT_EQ(lanes.next_lane(0, 0, 0b0011), 0u);
}

// A die's own level holds where a request says nothing.
TEST(Levels, OfDies) {
  const Settings by_die = classes_of(2, "drr", {"ub.qos.weights=1,2", "ub.qos.die_levels=0x4,1x2,0"});
  expect_shares(shares(by_die, {{2, 0}, {4, 0}}), {1, 2});
  expect_shares(shares(by_die, {{2, 0}, {6, 0}}), {1, 1});
  expect_shares(shares(by_die, {{2, 0, 1}, {6, 0}}), {2, 1});
}

TEST(Lanes, OfClasses) {
  EXPECT_THROW(FabricBench(machine({"ub.qos.classes=2"}), {0}), InputError);
  EXPECT_THROW(FabricBench(machine({"ub.qos.classes=3", "ub.link.lanes=4"}), {0}), InputError);
  EXPECT_NO_THROW(FabricBench(machine({"ub.qos.classes=3", "ub.link.lanes=6"}), {0}));
  EXPECT_THROW(FabricBench(machine({"ub.qos.classes=2", "topology.kind=torus", "ub.link.lanes=6"}), {0}),
               InputError);
  // Each class has a pair and its turn: requests spread over those of its own alone.
  const ServiceClasses classes(machine(classes_of(2, "strict", {"ub.link.lanes=8"})).ub.qos);
  for (unsigned spread = 0; spread < 4; ++spread) {
    for (const unsigned c : {0u, 1u}) {
      const unsigned lane = classes.request_lane(c, spread, 4);
      EXPECT_EQ(lane, 2 * c + spread % 2 * 4);
      EXPECT_EQ(classes.of_lane(lane), c);
      EXPECT_EQ(classes.of_lane(lane + 1), c);
    }
  }
}

}  // namespace
}  // namespace cm384::ub::qos_test
