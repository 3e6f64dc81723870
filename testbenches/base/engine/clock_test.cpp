// Clocks against 128-bit arithmetic: exact, and tight on both sides.
#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "base/text/units.h"

namespace cm384::clock_test {
namespace {

__extension__ using Wide = __int128;

// Period in ps as units * 10^12 / rate, never reduced.
struct Period {
  std::int64_t units;
  std::int64_t rate;
};

std::int64_t exact_start(Period p, std::int64_t tick) {
  return static_cast<std::int64_t>((Wide{tick} * p.units * 1'000'000'000'000 + p.rate - 1) / p.rate);
}

TEST(Clock, KnownTicks) {
  const Clock core(Frequency{1'850'000'000});  // 540.54 ps
  EXPECT_EQ(core.start(0), 0_ps);
  EXPECT_EQ(core.start(1), 541_ps);
  EXPECT_EQ(core.start(2), 1082_ps);
  EXPECT_EQ(core.start(37), 20'000_ps);
  EXPECT_EQ(core.start(1'850'000'000), 1000_ms);
  const Clock flit(20_B, 28_GBps);  // 714.29 ps
  EXPECT_EQ(flit.start(1), 715_ps);
  EXPECT_EQ(flit.start(7), 5_ns);
  EXPECT_EQ(Clock(1_GHz).start(12), 12_ns);
  EXPECT_EQ(Clock().start(12), 12_ns);
}

TEST(Clock, KeepsItsPeriodReduced) {
  EXPECT_EQ(Clock(Frequency{1'850'000'000}).numerator(), 20'000);
  EXPECT_EQ(Clock(Frequency{1'850'000'000}).denominator(), 37);
  EXPECT_EQ(Clock(20_B, 28_GBps).numerator(), 5'000);
  EXPECT_EQ(Clock(20_B, 28_GBps).denominator(), 7);
}

TEST(Clock, RoundsASpanUp) {
  const Clock core(Frequency{1'850'000'000});
  EXPECT_EQ(core.ticks(0_ps), 0);
  EXPECT_EQ(core.ticks(1_ps), 1);
  EXPECT_EQ(core.ticks(540_ps), 1);
  EXPECT_EQ(core.ticks(541_ps), 1);
  EXPECT_EQ(core.ticks(542_ps), 2);
  EXPECT_EQ(core.ticks(20'000_ps), 37);
  EXPECT_EQ(core.ticks(20'001_ps), 38);
}

TEST(Clock, IsExactForRandomRatesAndTicks) {
  std::mt19937_64 random(3);
  std::vector<Period> periods = {{1, 1'850'000'000},   {20, 28'000'000'000},     {1, 1'600'000'000},
                                 {20, 22'857'142'857}, {512, 1'630'000'000'000}, {1, 1}};
  for (int i = 0; i < 200; ++i) {
    periods.push_back({static_cast<std::int64_t>(random() % 4096 + 1),
                       static_cast<std::int64_t>(random() % 2'000'000'000'000 + 1)});
  }
  for (const Period& p : periods) {
    const Clock clock(Bytes{p.units}, Bandwidth{p.rate});
    for (int i = 0; i < 300; ++i) {
      // Up to an hour of simulated time; ticks of all magnitudes.
      const Time bound{static_cast<std::int64_t>(random() % 3'600'000'000'000'000) >> (random() % 50)};
      const std::int64_t tick = clock.tick_at_or_after(bound);
      ASSERT_EQ(clock.start(tick).ps, exact_start(p, tick))
          << p.units << " at " << p.rate << ", tick " << tick;
      ASSERT_GE(clock.start(tick), bound);
      if (tick > 0) {
        ASSERT_LT(clock.start(tick - 1), bound);
      }
    }
  }
}

// A tick's own start maps back to the tick wherever a tick is at least 1 ps long.
TEST(Clock, StartAndTickAreInverse) {
  const Clock flit(Bytes{20}, Bandwidth{28'000'000'000});
  for (std::int64_t tick = 0; tick < 100'000; ++tick) {
    ASSERT_EQ(flit.tick_at_or_after(flit.start(tick)), tick);
    ASSERT_EQ(flit.tick_at_or_after(flit.start(tick) + 1_ps), tick + 1);
  }
}

// Beyond 64 bits in the product: a rate that hardly reduces, an hour in.
TEST(Clock, StaysExactWhereProductsExceed64Bits) {
  const Clock odd(20_B, Bandwidth{22'857'142'857});
  const std::int64_t hour = 3'600LL * 22'857'142'857 / 20;
  EXPECT_EQ(odd.start(hour).ps, exact_start({20, 22'857'142'857}, hour));
  EXPECT_EQ(odd.tick_at_or_after(odd.start(hour)), hour);
}

static_assert(Clock(Frequency{1'850'000'000}).start(37) == 20_ns, "conversions are constant expressions");
static_assert(3_us + 4_ns - 1_ps == 3'003'999_ps);
static_assert(7_KiB == 7168_B && 1_MiB == 1024_KiB && 1_GiB == 1024_MiB);

}  // namespace
}  // namespace cm384::clock_test
