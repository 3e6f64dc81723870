// The same random traffic, with stalls and bit errors, at the corners of every parameter.
#include <gtest/gtest.h>

#include "Vrtl_link_least.h"
#include "Vrtl_link_most.h"
#include "Vrtl_link_odd.h"
#include "testbenches/hw/rtl/ub_link/small_link.h"

namespace cm384::rtl::corners_test {
namespace {

template <class Model, Shape kShape>
void random_traffic(int latency, double rate, int packets) {
  LinkBench<Model, kShape> bench(latency);
  Random random(50), stalls(51);
  for (int p = 0; p < packets; ++p) {
    const int longest = random.chance(200) ? kShape.max_length() : std::min(kShape.max_length(), 100);
    bench.send(static_cast<int>(random.below(2)), random_packet(random, random.below(kShape.lanes),
                                                                1 + static_cast<int>(random.below(longest))));
  }
  bench.on_cycle = [&](int, std::uint32_t& lanes, bool& takes) {
    if (stalls.chance(200)) lanes &= static_cast<std::uint32_t>(stalls.next());
    takes = stalls.chance(1000);
  };
  BitErrors errors(rate, kShape.flit_bytes, 52);
  bench.on_wire = [&](int, Flit& flit) { errors(flit); };
  bench.drain(1'000'000);
  EXPECT_EQ(bench.received(0) + bench.received(1), static_cast<std::uint64_t>(packets));
  if (rate > 0) {
    EXPECT_GT(errors.struck(), 0u);
  }
}

TEST(LinkCorners, LeastOfEverything) {
  random_traffic<Vrtl_link_least, kLeast>(2, 0, 1'000);
  random_traffic<Vrtl_link_least, kLeast>(2, 1e-4, 1'000);
  // A round trip far longer than RetryTimeout: requests are repeated in vain until the wait has grown.
  random_traffic<Vrtl_link_least, kLeast>(100, 1e-4, 200);
}
TEST(LinkCorners, MostOfEverything) {
  random_traffic<Vrtl_link_most, kMost>(2, 0, 100);
  random_traffic<Vrtl_link_most, kMost>(150, 1e-6, 60);
}
TEST(LinkCorners, OddSizes) {
  random_traffic<Vrtl_link_odd, kOdd>(2, 0, 1'000);
  random_traffic<Vrtl_link_odd, kOdd>(30, 1e-4, 1'000);
}

}  // namespace
}  // namespace cm384::rtl::corners_test
