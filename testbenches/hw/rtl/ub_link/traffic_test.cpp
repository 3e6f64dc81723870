// Random traffic both ways under random stalls, damage and resets; the scoreboard of the bench checks that
// every packet arrives once, whole, and in order within its lane.
#include <gtest/gtest.h>

#include "testbenches/hw/rtl/ub_link/small_link.h"

namespace cm384::rtl::traffic_test {
namespace {

// Mostly short packets, some long, from both ends on all lanes.
void send_some(SmallLink& bench, Random& random, int packets) {
  for (int p = 0; p < packets; ++p) {
    const int longest = random.chance(30) ? kSmall.max_length() : random.chance(300) ? 1300 : 80;
    const int e = static_cast<int>(random.below(2));
    bench.send(e, random_packet(random, random.below(4), 1 + static_cast<int>(random.below(longest))));
  }
}

// Ready by chance, in bursts: each lane, and the wire.
class RandomStalls {
 public:
  RandomStalls(SmallLink& bench, std::uint64_t seed, unsigned ready, unsigned wire) : random_(seed) {
    bench.on_cycle = [this, ready, wire](int e, std::uint32_t& lanes, bool& takes) {
      if (random_.chance(100)) lanes_[e] = static_cast<std::uint32_t>(random_.next()) & mask(ready);
      lanes = lanes_[e];
      takes = random_.chance(wire);
    };
  }

 private:
  std::uint32_t mask(unsigned ready) {
    std::uint32_t lanes = 0;
    for (int l = 0; l < kSmall.lanes; ++l) lanes |= static_cast<std::uint32_t>(random_.chance(ready)) << l;
    return lanes;
  }
  Random random_;
  std::uint32_t lanes_[2] = {15, 15};
};

TEST(LinkTraffic, EverythingArrivesOnceAndInOrder) {
  for (const int latency : {2, 40}) {
    SmallLink bench(latency);
    Random random(10 + latency);
    send_some(bench, random, 600);
    bench.drain(60'000);
    EXPECT_EQ(bench.events(0).damaged + bench.events(1).damaged, 0u);
    EXPECT_EQ(bench.received(0) + bench.received(1), 600u);
  }
}

TEST(LinkTraffic, StallsLoseNothing) {
  SmallLink bench(20);
  Random random(20);
  send_some(bench, random, 300);
  RandomStalls stalls(bench, 21, 700, 800);
  bench.drain(400'000);
  EXPECT_EQ(bench.received(0) + bench.received(1), 300u);
}

TEST(LinkTraffic, BitErrorsLoseNothing) {
  for (const double rate : {1e-5, 1e-4, 3e-4}) {
    SmallLink bench(20);
    Random random(30);
    send_some(bench, random, rate > 2e-4 ? 60 : 200);
    RandomStalls stalls(bench, 31, 900, 1000);
    BitErrors there(rate, kSmall.flit_bytes, 32), back(rate, kSmall.flit_bytes, 33);
    bench.on_wire = [&](int e, Flit& flit) { (e == 0 ? there : back)(flit); };
    bench.drain(2'000'000);
    ASSERT_FALSE(HasFatalFailure()) << rate;
    EXPECT_GT(bench.events(1).damaged, 0u);
    EXPECT_GT(bench.events(0).replayed, 0u);
  }
}

TEST(LinkTraffic, ResetForgetsWhatWasOnItsWay) {
  Random random(40);
  SmallLink bench(20);
  BitErrors errors(2e-4, kSmall.flit_bytes, 41);
  bench.on_wire = [&](int, Flit& flit) { errors(flit); };
  for (int round = 0; round < 30; ++round) {
    send_some(bench, random, 12);
    bench.run(20 + random.below(700));
    bench.reset();
  }
  send_some(bench, random, 100);
  bench.drain(200'000);
  EXPECT_GT(errors.struck(), 0u);
}

}  // namespace
}  // namespace cm384::rtl::traffic_test
