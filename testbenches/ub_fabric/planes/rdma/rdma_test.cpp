// The RDMA plane against closed forms, and what it promises: no loss, shares, order of simulation without
// effect.
#include <gtest/gtest.h>

#include <utility>

#include "base/text/error.h"
#include "firmware/abi/memory_map.h"
#include "testbenches/ub_fabric/planes/rdma/rdma_bench.h"

namespace cm384::rdma::rdma_test {
namespace {

using namespace cm384::literals;
using sim::Operation;

constexpr Time kRead = 350_ns, kWrite = 150_ns;

// Picoseconds that bytes take at a rate, rounded up.
Time wire(std::int64_t bytes, std::int64_t rate) {
  return {(bytes * 1'000'000'000'000 + rate - 1) / rate};
}

enum class Over { leaf, spine, core };

// A packet from the moment it may leave until the other interface has taken it in, stored at each switch.
Time way(const hw::Rdma& p, std::int64_t bytes, Over over) {
  const std::int64_t die = p.link_rate.bytes_per_second, up = die * p.dies_per_leaf / p.spines;
  Time sum = wire(bytes, die) + p.link_latency + p.switch_latency;
  if (over != Over::leaf) sum += (wire(bytes, up) + p.link_latency + p.switch_latency) * 2;
  if (over == Over::core)
    sum += (wire(bytes, p.core_rate.bytes_per_second) + p.core_latency + p.switch_latency) * 2;
  return sum + wire(bytes, die) + p.link_latency + p.receive_latency;
}

struct Case {
  const char* name;
  Operation operation;
  unsigned target;
  std::uint32_t bytes;
};
class Unloaded : public ::testing::TestWithParam<Case> {};

TEST_P(Unloaded, IsTheSumOfItsStages) {
  const Case& c = GetParam();
  RdmaBench bench({0, c.target}, {"topology.supernodes=2"});
  const hw::Rdma& p = bench.machine.rdma;
  bench.at(c.target).read_latency = kRead;
  bench.at(c.target).write_latency = kWrite;
  const Time at{1'000'123};
  bench.at(0).request(at, c.operation, cm384_gm_die(c.target, 4096), c.bytes, 7);
  bench.run();
  ASSERT_EQ(bench.at(0).done.size(), 1u);
  const Over over = c.target >= 768                                      ? Over::core
                    : c.target >= static_cast<unsigned>(p.dies_per_leaf) ? Over::spine
                                                                         : Over::leaf;
  const bool read = c.operation == Operation::read;
  const Time there = at + p.send_latency + way(p, p.header.count + (read ? 0 : c.bytes), over);
  EXPECT_EQ(bench.at(c.target).accesses.at(0).ps, there.ps);
  const Time back =
      there + (read ? kRead : kWrite) + way(p, p.response_header.count + (read ? c.bytes : 0), over);
  EXPECT_EQ(bench.at(0).done[0].at.ps, back.ps);
  EXPECT_EQ(bench.plane.switches().packet_hops(), over == Over::core ? 10u : over == Over::spine ? 6u : 2u);
}

INSTANTIATE_TEST_SUITE_P(Paths, Unloaded,
                         ::testing::Values(Case{"WriteLeaf", Operation::write, 5, 512},
                                           Case{"WriteOneByte", Operation::write, 5, 1},
                                           Case{"WriteSpine", Operation::write, 700, 512},
                                           Case{"ReadLeaf", Operation::read, 5, 512},
                                           Case{"ReadSpine", Operation::read, 700, 512},
                                           Case{"AtomicSpine", Operation::atomic_add_s32, 700, 4},
                                           Case{"WriteCore", Operation::write, 768, 512},
                                           Case{"ReadCore", Operation::read, 1500, 512}),
                         [](const auto& test) { return std::string(test.param.name); });

// What was written does not come back with its acknowledgement, whether it was bytes or tags of them.
TEST(Acknowledgement, CarriesNothing) {
  const auto done = [](sim::TagMask tags) {
    RdmaBench bench({0, 5});
    bench.at(0).write_tags = tags;
    bench.at(0).request(Time{0}, Operation::write, cm384_gm_die(5, 4096), 512, 7);
    bench.run();
    return bench.at(0).done.at(0).at.ps;
  };
  const hw::Rdma p = RdmaBench({0}).machine.rdma;
  const Time both =
      p.send_latency + way(p, p.header.count + 512, Over::leaf) + way(p, p.response_header.count, Over::leaf);
  EXPECT_EQ(done(sim::TagMask{}), both.ps);
  EXPECT_EQ(done(sim::all_tags(512)), both.ps);
}

// Of two leaves per rail: 768 rails of five supernodes, the first four at one leaf of each rail.
TEST(Rails, ARailCrossesOneLeafAndAnotherOneASpine) {
  const std::vector<std::string> rails = {"topology.supernodes=5", "rdma.wiring=rails",
                                          "rdma.dies_per_leaf=4", "rdma.spines=2"};
  const auto arrives = [&](unsigned target) {
    RdmaBench bench({0, target}, rails);
    bench.at(0).request(Time{0}, Operation::write, cm384_gm_die(target, 4096), 512, 7);
    bench.run();
    return std::pair{bench.at(target).accesses.at(0).ps, bench.plane.switches().packet_hops()};
  };
  const hw::Rdma p = RdmaBench({0, 1}, rails).machine.rdma;
  const auto over = [&](Over way_over) {
    return (p.send_latency + way(p, p.header.count + 512, way_over)).ps;
  };
  const std::pair leaf{over(Over::leaf), std::uint64_t{2}}, spine{over(Over::spine), std::uint64_t{6}};
  EXPECT_EQ(arrives(768), leaf);       // the same rail, another supernode
  EXPECT_EQ(arrives(3 * 768), leaf);   // the last one at that leaf
  EXPECT_EQ(arrives(4 * 768), spine);  // the same rail at its other leaf
  EXPECT_EQ(arrives(1), spine);        // another rail of the own supernode
  EXPECT_EQ(arrives(768 + 1), spine);  // another rail of another one
}

// Each link to a spine carries what four dies send, in halves: as fast as two dies' links.
TEST(Rails, AllDiesOfALeafSendAcrossAtFullRate) {
  RdmaBench bench({0, 1, 768, 769, 1536, 1537, 2304, 2305},
                  {"topology.supernodes=4", "rdma.wiring=rails", "rdma.dies_per_leaf=4", "rdma.spines=2",
                   "rdma.routing=spray"});
  constexpr std::uint64_t kRequests = 8192;
  for (unsigned supernode = 0; supernode < 4; ++supernode)
    bench.at(supernode * 768).stream(Operation::write, cm384_gm_die(supernode * 768 + 1, 0), kRequests, 2048);
  bench.run();
  const hw::Rdma& p = bench.machine.rdma;
  const double peak = 25.0 * 4096 / static_cast<double>(4096 + p.header.count);
  for (unsigned supernode = 0; supernode < 4; ++supernode)
    EXPECT_NEAR(kRequests * 512 / (bench.at(supernode * 768).last_done.us() * 1e3), peak, 0.05 * peak);
}

// GB/s of a stream of writes or reads that the link alone bounds.
double bandwidth(Operation operation, const std::vector<std::string>& overrides, unsigned target = 5) {
  constexpr std::uint64_t kRequests = 16384;
  RdmaBench bench({0, target}, overrides);
  bench.at(0).stream(operation, cm384_gm_die(target, 0), kRequests, 2048);
  bench.run();
  EXPECT_EQ(bench.at(0).bytes_done, kRequests * 512);
  return static_cast<double>(kRequests) * 512 / (bench.at(0).last_done.us() * 1e3);
}

TEST(Bandwidth, PeakIsTheLinksLessHeaders) {
  const hw::Rdma p = hw::load_machine("cloudmatrix384").rdma;
  const double mtu = static_cast<double>(p.mtu.count);
  const double rate = static_cast<double>(p.link_rate.bytes_per_second) * 1e-9;
  const double write = rate * mtu / (mtu + static_cast<double>(p.header.count));
  EXPECT_NEAR(write, 24.4, 0.05);
  // A round trip begins and ends the stream: 8 MiB take 340 us.
  EXPECT_NEAR(bandwidth(Operation::write, {}), write, write * 0.02);
  EXPECT_LT(bandwidth(Operation::write, {}), write);
  const double read = rate * mtu / (mtu + static_cast<double>(p.response_header.count));
  EXPECT_NEAR(bandwidth(Operation::read, {}), read, read * 0.02);
  EXPECT_NEAR(bandwidth(Operation::write, {}, 700), write, write * 0.03);
  // Small packets pay their headers.
  EXPECT_NEAR(bandwidth(Operation::write, {"rdma.mtu=512B"}), rate * 512 / (512 + 98), 0.4);
}

// A window of one packet is one packet a round trip.
TEST(Bandwidth, WindowBindsIt) {
  for (const auto& [target, over] : {std::pair{5u, Over::leaf}, {700u, Over::spine}, {900u, Over::core}}) {
    RdmaBench bench({0, target}, {"rdma.window=4KiB", "topology.supernodes=2"});
    const hw::Rdma& p = bench.machine.rdma;
    bench.at(0).stream(Operation::write, cm384_gm_die(target, 0), 8192, 2048);
    bench.run();
    const Time round = way(p, 4096 + p.header.count, over) + way(p, p.response_header.count, over);
    const double expected = 4096 / (round.us() * 1e3);
    EXPECT_NEAR(8192.0 * 512 / (bench.at(0).last_done.us() * 1e3), expected, expected * 0.01) << target;
  }
}

// The links to core switches bind what goes between supernodes, and that alone; flows spread over them.
TEST(Bandwidth, LinksToCoreSwitchesBindIt) {
  const auto of = [](std::vector<std::string> changes, unsigned target) {
    changes.emplace_back("topology.supernodes=2");
    return bandwidth(Operation::write, changes, target);
  };
  const double slow = 5.0 * 4096 / (4096 + 98), peak = slow * 5;
  EXPECT_NEAR(of({"rdma.core_rate=5GB/s"}, 900), slow, slow * 0.02);
  EXPECT_NEAR(of({"rdma.core_rate=5GB/s"}, 700), peak, peak * 0.03);
  EXPECT_NEAR(of({}, 900), peak, peak * 0.05);  // of 340 us a round trip takes 12
  EXPECT_LT(of({}, 900), peak);
  // In turn over twelve links.
  EXPECT_NEAR(of({"rdma.core_rate=5GB/s", "rdma.routing=spray"}, 900), peak, peak * 0.05);
}

// Many to one: nothing is lost, and the senders get the same share.
TEST(Incast, LosesNothingAndSharesFairly) {
  const std::vector<unsigned> senders{1, 2, 3, 4, 5, 6, 7, 8};
  std::vector<unsigned> all{0};
  all.insert(all.end(), senders.begin(), senders.end());
  RdmaBench bench(all);
  constexpr std::uint64_t kRequests = 4096;
  for (const unsigned die : senders)
    bench.at(die).stream(Operation::write, cm384_gm_die(0, std::uint64_t{die} << 28), kRequests, 2048);
  bench.run(600_us);
  const double each = static_cast<double>(bench.at(0).bytes_from[1]);
  for (const unsigned die : senders)
    EXPECT_NEAR(static_cast<double>(bench.at(0).bytes_from[die]), each, each * 0.02) << die;
  EXPECT_LT(each, kRequests * 512.0);  // still under way
  bench.run();
  std::uint64_t paused = 0;
  for (const unsigned die : senders) {
    EXPECT_EQ(bench.at(die).bytes_done, kRequests * 512);
    EXPECT_EQ(bench.at(0).bytes_from[die], kRequests * 512);
    paused += bench.at(die).port.counters().paused_ps;
  }
  EXPECT_GT(bench.plane.switches().pauses(), 0u);
  EXPECT_GT(paused, 0u);
  const hw::Rdma& p = bench.machine.rdma;
  EXPECT_GT(bench.plane.switches().deepest(), static_cast<std::uint64_t>(p.pause_on.count));
  EXPECT_LE(bench.plane.switches().deepest(), static_cast<std::uint64_t>(p.buffer.count));
  EXPECT_EQ(bench.payloads.in_use(), 0u);
  // The receiving link is never idle.
  const double peak = 25.0 * 4096 / (4096 + 98);
  const double total = static_cast<double>(senders.size()) * kRequests * 512;
  EXPECT_NEAR(total / (bench.at(1).last_done.us() * 1e3), peak, peak * 0.03);
}

// From other leaves, over spines that are congested in turn: pauses go back from hop to hop.
TEST(Incast, OverSpinesLosesNothing) {
  const std::vector<unsigned> senders{64, 65, 130, 200, 300, 400, 500, 600};
  std::vector<unsigned> all{0};
  all.insert(all.end(), senders.begin(), senders.end());
  RdmaBench bench(all, {"rdma.window=4MiB", "rdma.spines=1", "rdma.oversubscription=4"});
  for (const unsigned die : senders)
    bench.at(die).stream(Operation::write, cm384_gm_die(0, std::uint64_t{die} << 24), 8192, 8192);
  bench.run();
  for (const unsigned die : senders) EXPECT_EQ(bench.at(die).bytes_done, 8192u * 512) << die;
  EXPECT_GT(bench.plane.switches().pauses(), 0u);
  EXPECT_EQ(bench.payloads.in_use(), 0u);
}

// From two other supernodes over one core switch of each spine.
TEST(Incast, OverCoreSwitchesLosesNothing) {
  const std::vector<unsigned> senders{768, 800, 1000, 1535, 1536, 1700, 2000, 2303};
  std::vector<unsigned> all{0};
  all.insert(all.end(), senders.begin(), senders.end());
  RdmaBench bench(
      all, {"rdma.window=4MiB", "rdma.core_links=1", "rdma.core_rate=10GB/s", "topology.supernodes=3"});
  EXPECT_EQ(bench.plane.switches().cores(), 16u);
  for (const unsigned die : senders)
    bench.at(die).stream(Operation::write, cm384_gm_die(0, std::uint64_t{die} << 24), 4096, 4096);
  bench.run();
  for (const unsigned die : senders) EXPECT_EQ(bench.at(die).bytes_done, 4096u * 512) << die;
  EXPECT_GT(bench.plane.switches().pauses(), 0u);
  EXPECT_EQ(bench.payloads.in_use(), 0u);
}

TEST(Delivery, BringsTheBytesThatWereWritten) {
  RdmaBench bench({0, 9, 1100}, {"topology.supernodes=2"});
  for (std::uint32_t n = 0; n < 64; ++n) {
    const unsigned target = n % 2 == 0 ? 9 : 1100;
    bench.at(0).request(Time{n}, Operation::write, cm384_gm_die(target, n * 512), 512, n, 1);
    bench.at(0).request(100_us + Time{n}, Operation::read, cm384_gm_die(target, n * 512), 512, 1000 + n, 2);
  }
  bench.run();
  std::size_t reads = 0;
  for (const StandIn::Done& d : bench.at(0).done) {
    EXPECT_EQ(d.outcome, sim::Outcome::done);
    if (d.tag < 1000) continue;
    ++reads;
    EXPECT_EQ(d.first, static_cast<std::byte>(d.tag - 1000));
  }
  EXPECT_EQ(reads, 64u);
}

// Requests of one transfer that lie one behind the other share a packet if they have come when it leaves.
TEST(Packets, TakeAlongWhatHasCome) {
  const auto second_access = [](Time gap, sim::TransactionId transaction, std::uint64_t address) {
    RdmaBench bench({0, 5});
    bench.at(0).request(1_us, Operation::write, cm384_gm_die(5, 0), 512, 1, 1);
    bench.at(0).request(1_us + gap, Operation::write, cm384_gm_die(5, address), 512, 2, transaction);
    bench.run();
    return bench.at(5).accesses.at(1);
  };
  const hw::Rdma p = hw::load_machine("cloudmatrix384").rdma;
  const std::int64_t alone = p.header.count + 512;
  const Time first_sent = 1_us + p.send_latency;
  EXPECT_EQ(second_access(0_ns, 1, 512), first_sent + way(p, alone + 512, Over::leaf));
  const Time behind = first_sent + wire(alone, p.link_rate.bytes_per_second) + way(p, alone, Over::leaf);
  EXPECT_EQ(second_access(0_ns, 2, 512), behind);
  EXPECT_EQ(second_access(0_ns, 1, 1024), behind);
  EXPECT_EQ(second_access(1_ns, 1, 512), behind);
  EXPECT_EQ(second_access(1_us, 1, 512), first_sent + 1_us + way(p, alone, Over::leaf));
}

TEST(Delivery, NamesWhatIsNotThere) {
  RdmaBench bench({0, 9});
  bench.at(9).memory_bytes = 4096;
  const std::uint64_t bad[] = {cm384_gm_die(0, 0), cm384_gm_die(10, 0), cm384_gm_die(5000, 0),
                               cm384_gm_cpu(0, 0), cm384_gm_die(9, 4096)};
  std::uint32_t tag = 0;
  for (const std::uint64_t address : bad) bench.at(0).request(1_us, Operation::write, address, 64, tag++);
  bench.run();
  ASSERT_EQ(bench.at(0).done.size(), 5u);
  for (const StandIn::Done& d : bench.at(0).done) EXPECT_EQ(d.outcome, sim::Outcome::address_fault) << d.tag;
  EXPECT_EQ(bench.at(0).port.counters().faults, 5u);
  EXPECT_EQ(bench.payloads.in_use(), 0u);
}

// The order in which modules of a window run plays no part.
TEST(Delivery, DoesNotDependOnTheOrderOfModules) {
  const auto times = [](bool reversed) {
    RdmaBench bench({0, 1, 2, 100, 200}, {"rdma.window=64KiB"});
    bench.reversed = reversed;
    for (const unsigned die : {1u, 2u, 100u, 200u}) {
      bench.at(die).stream(die % 2 == 0 ? Operation::write : Operation::read, cm384_gm_die(0, die << 20),
                           2048, 512);
    }
    bench.run();
    std::vector<std::int64_t> all;
    for (const unsigned die : {1u, 2u, 100u, 200u}) {
      for (const StandIn::Done& d : bench.at(die).done) all.push_back(d.at.ps);
    }
    return all;
  };
  EXPECT_EQ(times(false), times(true));
}

std::string refusal(const std::vector<std::string>& overrides) {
  try {
    RdmaBench bench({0}, overrides);
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

// Buffer and threshold leave room for what a pause does not stop; a byte less is refused.
TEST(Pause, HeadroomIsChecked) {
  const hw::Rdma p = hw::load_machine("cloudmatrix384").rdma;
  const std::int64_t up = p.link_rate.bytes_per_second * p.dies_per_leaf / p.spines;
  const std::int64_t needed = p.pause_on.count + 2 * p.link_latency.ps * (up / 1'000'000'000) / 1000 +
                              2 * (p.mtu.count + p.header.count);
  EXPECT_EQ(refusal({"rdma.buffer=" + std::to_string(needed) + "B"}), "");
  EXPECT_NE(refusal({"rdma.buffer=" + std::to_string(needed - 1) + "B"}).find("rdma.buffer"),
            std::string::npos);
  EXPECT_NE(refusal({"rdma.pause_off=1MiB"}).find("rdma.pause_off"), std::string::npos);
  EXPECT_NE(refusal({"rdma.window=2KiB"}).find("rdma.window"), std::string::npos);
}

// The least buffer that is taken holds all that comes.
TEST(Pause, TightestBufferHolds) {
  std::vector<unsigned> all{0, 64, 65, 66, 67, 1, 2, 3};
  RdmaBench bench(all,
                  {"rdma.pause_on=8KiB", "rdma.pause_off=4KiB", "rdma.buffer=66580B", "rdma.window=1MiB"});
  for (const unsigned die : all) {
    if (die != 0)
      bench.at(die).stream(Operation::write, cm384_gm_die(0, std::uint64_t{die} << 28), 2048, 2048);
  }
  bench.run();
  for (const unsigned die : all) {
    if (die != 0) EXPECT_EQ(bench.at(die).bytes_done, 2048u * 512) << die;
  }
}

}  // namespace
}  // namespace cm384::rdma::rdma_test
