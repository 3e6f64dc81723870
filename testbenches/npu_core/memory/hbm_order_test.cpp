// In which order a pseudo-channel serves: bounded reordering, rows that are still open, and what both give on
// patterns, against Ramulator 2 for one HBM2 channel at 2 Gb/s with reads of 64 B.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <queue>
#include <random>
#include <vector>

#include "npu_core/memory/hbm_channel.h"
#include "testbenches/npu_core/memory/preset.h"

namespace cm384::npu::hbm_order_test {
namespace {

constexpr std::int64_t kStart = 1000;

HbmTiming timing_with(int window) {
  hw::Hbm p = testing::preset_memory().hbm;
  p.refresh = "off";
  p.reorder_window = window;
  return HbmTiming(p);
}

// A train may go before `window` earlier ones, and before no more.
TEST(HbmOrder, ATrainGoesBeforeSoManyAndNoMore) {
  for (const int window : {1, 2, 5}) {
    for (const int earlier : {window, window + 1}) {
      const HbmTiming timing = timing_with(window);
      HbmChannel channel(timing, 0);
      for (const std::uint32_t bank : {0u, 2u, 4u}) channel.schedule(timing, kStart, {bank, 2, 5, 16, false});
      const std::int64_t now = kStart + 400;
      channel.schedule(timing, now, {0, 2, 5, 16, false});
      const auto conflict = channel.schedule(timing, now, {0, 2, 6, 16, false});
      // Too long for what is idle before the conflict's turn.
      for (int n = 1; n < earlier; ++n) channel.schedule(timing, now, {4, 2, 5, 64, false});
      const auto late = channel.schedule(timing, now, {2, 2, 5, 8, false});
      EXPECT_EQ(late.column < conflict.column, earlier <= window) << window;
      EXPECT_EQ(channel.statistics().backfills, earlier <= window ? 1u : 0u) << window;
    }
  }
}

// A row that an earlier train will close is read until then, not a cycle longer.
TEST(HbmOrder, ARowIsReadUntilItCloses) {
  const HbmTiming timing = timing_with(8);
  const std::int64_t closes = kStart + timing.ras;  // its tRAS holds the precharge for the next row
  for (const std::int64_t late : {-3, -1, 0, 1, 2}) {
    HbmChannel channel(timing, 0);
    channel.schedule(timing, kStart, {0, 1, 5, 1, false});
    const auto next = channel.schedule(timing, kStart + 1, {0, 1, 6, 1, false});
    ASSERT_EQ(next.activate, kStart + timing.row_cycle());
    const std::int64_t asked = closes - timing.rtp + late;
    const auto hit = channel.schedule(timing, asked, {0, 1, 5, 1, false});
    if (late <= 0) {
      EXPECT_EQ(hit.column, asked) << late;
      EXPECT_EQ(hit.activate, -1);
    } else {
      EXPECT_GT(hit.column, next.column + timing.rp) << late;
    }
    EXPECT_EQ(channel.statistics().row_hits, late <= 0 ? 1u : 0u);
  }
}

// Before its ACT's tRCD is over, it is read no sooner than by the train that opened it.
TEST(HbmOrder, ARowThatIsNotYetOpenIsWaitedFor) {
  const HbmTiming timing = timing_with(8);
  HbmChannel channel(timing, 0);
  const auto first = channel.schedule(timing, kStart, {0, 1, 5, 1, false});
  channel.schedule(timing, kStart, {0, 1, 6, 1, false});
  const auto hit = channel.schedule(timing, kStart, {0, 1, 5, 1, false});
  EXPECT_EQ(hit.column, first.column + timing.ccd_l);
}

// The channel of Ramulator 2's preset HBM2_2000 (ascend-facts E): 128 bits, a read of 64 B in two cycles.
hw::Hbm hbm2(const char* refresh, int window) {
  hw::Hbm p = testing::preset_memory().hbm;
  p.clock = 1_GHz;
  p.bank_groups = 4;
  p.banks_per_group = 4;
  p.t_rcd_read = 14_ns;
  p.t_rcd_write = 12_ns;
  p.t_rp = 14_ns;
  p.t_ras = 34_ns;
  p.t_rc = 48_ns;
  p.t_ccd_s = 2_ns;
  p.t_ccd_l = 4_ns;
  p.t_rrd_s = p.t_rrd_l = 4_ns;
  p.t_faw = 15_ns;
  p.t_rtp = 5_ns;
  p.read_latency = 14_ns;
  p.t_refi = Time{3'900'000};
  p.t_rfc_all = 350_ns;
  p.refresh = refresh;
  p.reorder_window = window;
  return p;
}

// The part of the bus that 32 outstanding reads use.
double used(const char* refresh, bool random, int window = 32) {
  const HbmTiming timing(hbm2(refresh, window));
  HbmChannel channel(timing, 0);
  std::priority_queue<std::int64_t, std::vector<std::int64_t>, std::greater<>> outstanding;
  std::mt19937_64 draw(1);
  constexpr int kReads = 100'000;
  std::int64_t now = kStart, end = 0;
  for (std::uint32_t n = 0; n < kReads; ++n) {
    if (outstanding.size() == 32) {
      now = std::max(now, outstanding.top());
      outstanding.pop();
    }
    // In order of addresses: bank groups first, then the columns of a row of 1 KiB, then banks.
    HbmChannel::Train train{n % 4 + n / 64 % 4 * 4, 1, n / 256, 1, false};
    if (random) {
      const std::uint64_t drawn = draw();
      train.bank = static_cast<std::uint32_t>(drawn % 16);
      train.row = static_cast<std::uint32_t>(drawn >> 32 & 0x3fff);
    }
    const auto s = channel.schedule(timing, now, train);
    outstanding.push(s.data_end);
    end = std::max(end, s.data_end);
  }
  return 2.0 * kReads / static_cast<double>(end - kStart);
}

TEST(HbmPatterns, AsRamulator) {
  EXPECT_NEAR(used("off", false), 0.97, 0.97 * 0.05);
  EXPECT_NEAR(used("all-bank", false), 0.87, 0.87 * 0.05);
  EXPECT_NEAR(used("off", true), 0.53, 0.53 * 0.1);
}

// What random reads owe to the window.
TEST(HbmPatterns, RandomReadsNeedTheWindow) {
  const double in_order = used("off", true, 1), eight = used("off", true, 8), all = used("off", true, 32);
  EXPECT_LT(in_order, 0.30);
  EXPECT_GT(eight, in_order * 1.2);
  EXPECT_GT(all, eight * 1.1);
  // Four ACTs in 16 cycles, as tRRD is 4, of two cycles of data each.
  EXPECT_LE(used("off", true, 64), 0.5);
}

}  // namespace
}  // namespace cm384::npu::hbm_order_test
