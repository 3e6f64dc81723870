// The VPC plane against closed forms: a read alone, cards that are shared, windows, storage.
#include "ub_fabric/planes/vpc/vpc_plane.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>

#include "base/text/error.h"

namespace cm384::vpc::vpc_plane_test {
namespace {

using namespace cm384::literals;

constexpr int kNodes = 8, kSockets = 4;
// Of 512 tokens in 61 layers: its last packet is a whole one.
constexpr Bytes kBlock{35'979'264};
constexpr std::int64_t kPackets = 8'784;

hw::CpuSocket dram() {
  hw::CpuSocket socket{};
  socket.memory_bandwidth = 200_GBps;
  socket.memory_read_latency = 120_ns;
  socket.memory_write_latency = 100_ns;
  return socket;
}

struct Bench {
  explicit Bench(const Parameters& parameters = {}, const hw::CpuSocket& socket = dram())
      : plane(parameters, socket, kNodes, kSockets) {}
  // From the first socket of `server`, or another.
  void read(int node, int server, Bytes block = kBlock, int socket = 0) {
    plane.read(node, server * kSockets + socket, block);
  }
  // Until the last one ends, ns.
  double run() {
    plane.run_until(Time::never());
    EXPECT_TRUE(plane.finished());
    return ns(plane.end());
  }
  static double ns(Time t) { return static_cast<double>(t.ps) * 1e-3; }
  VpcPlane plane;
};

double alone(const Parameters& parameters, Bytes block, const hw::CpuSocket& socket = dram()) {
  Bench bench(parameters, socket);
  bench.read(0, 1, block);
  return bench.run();
}

// ns of bytes with a header at a card's 25 GB/s.
double wire(double payload) {
  return (payload + 128) / 25;
}

// Two ways of a request, latencies, the block packet behind packet, and a packet once more, as each is stored
// on its way.
double closed_form(std::int64_t block) {
  const double packets = static_cast<double>((block + 4095) / 4096),
               largest = static_cast<double>(std::min<std::int64_t>(block, 4096));
  return 50e3 + 2 * wire(0) + 2 * 10e3 + 120 + (static_cast<double>(block) + packets * 128) / 25 +
         wire(largest);
}

TEST(VpcPlane, AReadAloneTakesItsClosedForm) {
  for (const std::int64_t block : {1, 100, 4096, 4097, 10'000, 1 << 20, 35'979'264})
    EXPECT_NEAR(alone({}, Bytes{block}), closed_form(block), 1) << block;
}

// Packets of a window: their requests leave before there is data.
constexpr std::int64_t kFirst = 1024;
// What a block keeps a card's direction busy, ns; a further reader's block or request adds to that.
constexpr double kBusy = (35'979'264 + 128.0 * kPackets) / 25;

// One request, the volume's latency, and both directions of the server's card, which sends requests to the
// volume beside data.
TEST(VpcPlane, AReadFromSsdPassesItsServersCardTwice) {
  Parameters evs;
  evs.tier = "evs";
  for (const std::int64_t block : {100, 4096, 4096 * 100, 35'979'264}) {
    const double packets = static_cast<double>((block + 4095) / 4096),
                 largest = static_cast<double>(std::min<std::int64_t>(block, 4096));
    const double expected = 50e3 + 3 * wire(0) + 4 * 10e3 + 1e6 + largest / 50 +
                            (static_cast<double>(block) + packets * 128) / 25 + 220 + 2 * wire(largest) +
                            std::max(0.0, packets - kFirst) * wire(0);
    EXPECT_NEAR(alone(evs, Bytes{block}), expected, 1) << block;
  }
}

TEST(VpcPlane, ReadersOfANodeShareItsCardInward) {
  for (const int readers : {1, 2, 3, 7}) {
    Bench bench;
    for (int n = 0; n < readers; ++n) bench.read(0, 1 + n);
    const double end = bench.run();
    EXPECT_NEAR(end, readers * kBusy + (closed_form(kBlock.count) - kBusy), 50 * readers) << readers;
    // Each has had its part: none ended much before the others.
    for (int n = 0; n < readers; ++n)
      EXPECT_GT(Bench::ns(bench.plane.latency(static_cast<std::size_t>(n))), 0.9 * end) << readers;
    EXPECT_NEAR(Bench::ns(bench.plane.inward(0).busy()), readers * kBusy, 1);
    EXPECT_NEAR(Bench::ns(bench.plane.outward(0).busy()), readers * kPackets * wire(0), 1);
  }
}

TEST(VpcPlane, BlocksOfANodeShareItsCardOutward) {
  for (const int readers : {2, 3, 7}) {
    Bench bench;
    for (int n = 0; n < readers; ++n) bench.read(1 + n, 0, kBlock, n % kSockets);
    const double end = bench.run();
    EXPECT_NEAR(end, readers * kBusy + (closed_form(kBlock.count) - kBusy), 50 * readers) << readers;
    for (int n = 0; n < readers; ++n)
      EXPECT_GT(Bench::ns(bench.plane.latency(static_cast<std::size_t>(n))), 0.9 * end) << readers;
    EXPECT_NEAR(Bench::ns(bench.plane.outward(0).busy()), readers * kBusy, 1);
  }
}

TEST(VpcPlane, OtherNodesCardsAreNotShared) {
  Bench bench;
  for (int n = 0; n < 4; ++n) bench.read(n, 4 + n);
  bench.run();
  for (std::size_t n = 0; n < 4; ++n)
    EXPECT_NEAR(Bench::ns(bench.plane.latency(n)), closed_form(kBlock.count), 1);
}

// A card carries requests one way beside the data that it sends: 3 % of a packet.
TEST(VpcPlane, TheTwoDirectionsOfACardAreApart) {
  Bench bench;
  bench.read(0, 1);
  bench.read(1, 0);
  EXPECT_NEAR(bench.run(), closed_form(kBlock.count) + (kPackets - kFirst) * wire(0), 300);
}

TEST(VpcPlane, ABlockOfTheOwnNodeTakesBothDirectionsOfItsCard) {
  Bench bench;
  bench.read(3, 3);
  EXPECT_NEAR(bench.run(), closed_form(kBlock.count) + (kPackets - kFirst) * wire(0), 300);
  EXPECT_EQ(bench.plane.outward(3).bytes(), bench.plane.inward(3).bytes());
}

// Of a node that sends seven blocks: its own read's requests take turns with those packets, and a window's
// worth of them does not keep it from its rate.
TEST(VpcPlane, RequestsDoNotWaitBehindData) {
  Bench bench;
  bench.read(0, 1);
  for (int n = 1; n < kNodes; ++n) bench.read(n, 0, kBlock, n % kSockets);
  bench.run();
  EXPECT_LT(Bench::ns(bench.plane.latency(0)), 1.15 * closed_form(kBlock.count));
}

// One packet under way, then two: the round trip binds.
TEST(VpcPlane, AReaderHasAWindowOfBytesUnderWay) {
  const double trip = 2 * wire(0) + 2 * 10e3 + 120 + 2 * wire(4096);
  Parameters one;
  one.window = one.mtu;
  EXPECT_NEAR(alone(one, Bytes{100 * 4096}), 50e3 + 100 * trip, 1);
  Parameters two;
  two.window = Bytes{2 * 4096};
  EXPECT_NEAR(alone(two, Bytes{100 * 4096}), 50e3 + 50 * trip + wire(4096), 1);
  Parameters less;
  less.window = Bytes{2 * 4096 - 1};
  EXPECT_EQ(alone(less, Bytes{100 * 4096}), alone(one, Bytes{100 * 4096}));
  Parameters none;
  none.window = Bytes{4095};
  EXPECT_THROW(Bench{none}, InputError);
}

// 4,096 B each on sockets' memories at 10 GB/s, behind a card that could take them faster.
TEST(VpcPlane, ASocketsDramBindsWhereItIsTheSlower) {
  hw::CpuSocket slow = dram();
  slow.memory_bandwidth = 10_GBps;
  EXPECT_NEAR(alone({}, kBlock, slow), static_cast<double>(kBlock.count) / 10, 80e3);
  Bench same({}, slow), apart({}, slow);
  for (int n = 0; n < 2; ++n) {
    same.read(1 + n, 0, kBlock, 0);
    apart.read(1 + n, 0, kBlock, n);
  }
  EXPECT_NEAR(same.run(), 2 * static_cast<double>(kBlock.count) / 10, 80e3);
  EXPECT_NEAR(apart.run(), static_cast<double>(kBlock.count) / 10, 80e3);
}

TEST(VpcPlane, VolumesAreOfANodeAndTheStoreIsOfAll) {
  const double block = static_cast<double>(kBlock.count);
  Parameters evs;
  evs.tier = "evs";
  evs.evs_rate = 2_GBps;
  Bench node(evs), nodes(evs);
  for (int n = 0; n < 2; ++n) {
    node.read(2 + n, 0);
    nodes.read(2 + n, n);
  }
  EXPECT_NEAR(node.run(), 1e6 + 2 * block / 2, 100e3);
  EXPECT_NEAR(nodes.run(), 1e6 + block / 2, 100e3);
  Parameters obs;
  obs.tier = "obs";
  Bench store(obs);
  for (int n = 0; n < 2; ++n) store.read(2 + n, n);
  EXPECT_NEAR(store.run(), 30e6 + 2 * block / 2.5, 100e3);
}

// On SSD the data is in the way of what the server's node reads itself.
TEST(VpcPlane, AReadFromSsdLoadsItsServersCardInward) {
  Parameters evs;
  evs.tier = "evs";
  Bench bench(evs);
  bench.read(1, 0);
  bench.read(0, 2);
  EXPECT_NEAR(bench.run(), alone(evs, kBlock) + kBusy, 0.03 * kBusy);
}

TEST(VpcPlane, AllBytesArriveAndLinksCarryThemOnce) {
  for (const char* tier : {"dram", "evs", "obs"}) {
    Parameters parameters;
    parameters.tier = tier;
    Bench bench(parameters);
    constexpr std::int64_t kOdd = 1'000'001, kOddPackets = 245;
    for (int n = 0; n < 40; ++n) bench.read(n % kNodes, (n * 5 + 1) % kNodes, Bytes{kOdd}, n % kSockets);
    bench.run();
    EXPECT_EQ(bench.plane.done(), 1);
    std::uint64_t in = 0, out = 0;
    for (int node = 0; node < kNodes; ++node) {
      in += bench.plane.inward(node).bytes();
      out += bench.plane.outward(node).bytes();
    }
    for (std::size_t n = 0; n < 40; ++n) EXPECT_EQ(bench.plane.arrived(n), Bytes{kOdd});
    const std::uint64_t data = 40 * (kOdd + kOddPackets * 128), requests = 40 * kOddPackets * 128;
    const bool storage = parameters.first_tier() != Tier::dram;
    EXPECT_EQ(in, data + requests + (storage ? data : 0)) << tier;
    EXPECT_EQ(out, data + requests + (storage ? requests : 0)) << tier;
    EXPECT_EQ(bench.plane.packet_hops(), static_cast<std::uint64_t>(40 * kOddPackets * (storage ? 7 : 4)));
  }
}

TEST(VpcPlane, StepsOfASimulationAndItsRepetitionChangeNothing) {
  const auto filled = [](Bench& bench) {
    for (int n = 0; n < 60; ++n) bench.read(n * 3 % kNodes, n * n % kNodes, Bytes{3'000'000}, n % kSockets);
  };
  Bench whole, again, steps;
  for (Bench* bench : {&whole, &again, &steps}) filled(*bench);
  whole.run();
  again.run();
  for (Time at = 1_us; !steps.plane.finished(); at += 1_us) steps.plane.run_until(at);
  for (std::size_t n = 0; n < 60; ++n) {
    EXPECT_EQ(whole.plane.latency(n), again.plane.latency(n));
    EXPECT_EQ(whole.plane.latency(n), steps.plane.latency(n));
  }
}

// Each changed alone, by so much that its part in the closed form tells.
TEST(VpcPlane, EveryParameterMovesALatency) {
  const double before = alone({}, kBlock);
  const auto with = [](auto&& change) {
    Parameters parameters;
    change(parameters);
    return alone(parameters, kBlock);
  };
  const double bits = kBusy;
  EXPECT_NEAR(with([](Parameters& p) { p.rate = 100_GBps; }), before - bits / 2, 200);
  EXPECT_NEAR(with([](Parameters& p) { p.share = 0.25; }), before + bits, 200);
  EXPECT_NEAR(with([](Parameters& p) { p.latency = 70_us; }), before + 20e3, 1);
  EXPECT_NEAR(with([](Parameters& p) { p.packet_latency = 11_us; }), before + 2e3, 1);
  EXPECT_NEAR(with([](Parameters& p) { p.header = 256_B; }), before + kPackets * 5.12, 50);
  EXPECT_NEAR(with([](Parameters& p) { p.mtu = 2_KiB; }), before + kPackets * 5.12, 200);
  EXPECT_GT(with([](Parameters& p) { p.window = 64_KiB; }), 4 * before);
  Parameters evs, obs;
  evs.tier = "evs";
  obs.tier = "obs";
  const double of_evs = alone(evs, kBlock), of_obs = alone(obs, kBlock);
  evs.evs_latency = 2_ms;
  obs.obs_latency = 40_ms;
  EXPECT_NEAR(alone(evs, kBlock), of_evs + 1e6, 1);
  EXPECT_NEAR(alone(obs, kBlock), of_obs + 10e6, 1);
  evs.evs_latency = 1_ms;
  evs.evs_rate = 10_GBps;
  EXPECT_NEAR(alone(evs, kBlock),
              of_evs + static_cast<double>(kBlock.count) / 10 - kBusy - (kPackets - kFirst) * wire(0), 200);
  obs.obs_latency = 30_ms;
  obs.obs_rate = 5_GBps;
  EXPECT_NEAR(alone(obs, kBlock), of_obs - static_cast<double>(kBlock.count) / 5, 1e3);
}

}  // namespace
}  // namespace cm384::vpc::vpc_plane_test
