// One timing test a constraint, tight on both sides: a command may go in the first cycle the constraint
// allows (it does go at t) and not before (a request that asks for t - 1 gets t; one that asks for t + 1 gets
// t + 1).
#include "npu_core/memory/hbm_channel.h"

#include <gtest/gtest.h>

#include "npu_core/memory/hbm_memory.h"
#include "testbenches/npu_core/memory/preset.h"

namespace cm384::npu::hbm_channel_test {
namespace {

class HbmTimingTest : public ::testing::Test {
 protected:
  HbmTimingTest() : timing(parameters()), channel(timing, 0) {}

  static hw::Hbm parameters() {
    hw::Hbm p = testing::preset_memory().hbm;
    p.refresh = "off";
    p.t_rrd_l = p.t_rrd_s + 2_ns;  // apart, so that the tests tell them apart
    return p;
  }
  // One burst of one bank.
  static HbmChannel::Train burst(std::uint32_t bank, std::uint32_t row, bool write = false) {
    return {bank, 1, row, 1, write};
  }
  // Runs the scene on fresh channels, its last request at t - 1, t and t + 1 where t is `expected`; `cycle`
  // picks the constrained command.
  template <class Scene>
  void expect_tight(std::int64_t expected, Scene&& scene) {
    for (const std::int64_t asked : {expected - 1, expected, expected + 1}) {
      HbmChannel fresh(timing, 0);
      EXPECT_EQ(scene(fresh, asked), std::max(asked, expected)) << "asked for cycle " << asked;
    }
  }

  HbmTiming timing;
  HbmChannel channel;
};

constexpr std::int64_t kStart = 1000;

TEST_F(HbmTimingTest, Figures) {
  EXPECT_EQ(timing.rcd_read, 23);
  EXPECT_EQ(timing.rp, 23);
  EXPECT_EQ(timing.ras, 54);
  EXPECT_EQ(timing.rc, 76);
  EXPECT_EQ(timing.ccd_s, 2);
  EXPECT_EQ(timing.ccd_l, 4);
  EXPECT_EQ(timing.faw, 24);
}

TEST_F(HbmTimingTest, ReadLatency) {
  const auto first = channel.schedule(timing, kStart, burst(0, 5));
  EXPECT_EQ(first.activate, kStart);
  EXPECT_EQ(first.column, kStart + timing.rcd_read);
  EXPECT_EQ(first.data_end, first.column + timing.read_latency + timing.ccd_s);
}

TEST_F(HbmTimingTest, WriteLatency) {
  const auto first = channel.schedule(timing, kStart, burst(0, 5, true));
  EXPECT_EQ(first.column, kStart + timing.rcd_write);
  EXPECT_EQ(first.data_end, first.column + timing.write_latency + timing.ccd_s);
}

TEST_F(HbmTimingTest, RcdHoldsAColumnOfARowJustOpened) {
  expect_tight(kStart + timing.rcd_read + timing.ccd_l, [&](HbmChannel& c, std::int64_t at) {
    c.schedule(timing, kStart, burst(0, 5));
    return c.schedule(timing, at, burst(0, 5)).column;
  });
}

TEST_F(HbmTimingTest, CcdShort) {
  expect_tight(kStart + 200 + timing.ccd_s, [&](HbmChannel& c, std::int64_t at) {
    c.schedule(timing, kStart, burst(0, 5));
    c.schedule(timing, kStart, burst(1, 5));
    c.schedule(timing, kStart + 200, burst(0, 5));
    return c.schedule(timing, at, burst(1, 5)).column;
  });
}

TEST_F(HbmTimingTest, CcdLong) {
  expect_tight(kStart + 200 + timing.ccd_l, [&](HbmChannel& c, std::int64_t at) {
    c.schedule(timing, kStart, burst(0, 5));
    c.schedule(timing, kStart, burst(4, 5));  // the same bank group
    c.schedule(timing, kStart + 200, burst(0, 5));
    return c.schedule(timing, at, burst(4, 5)).column;
  });
}

TEST_F(HbmTimingTest, RrdShort) {
  expect_tight(kStart + timing.rrd_s, [&](HbmChannel& c, std::int64_t at) {
    c.schedule(timing, kStart, burst(0, 5));
    return c.schedule(timing, at, burst(1, 5)).activate;
  });
}

TEST_F(HbmTimingTest, RrdLong) {
  expect_tight(kStart + timing.rrd_l, [&](HbmChannel& c, std::int64_t at) {
    c.schedule(timing, kStart, burst(0, 5));
    return c.schedule(timing, at, burst(4, 5)).activate;
  });
}

TEST_F(HbmTimingTest, Faw) {
  // Wide enough that tRRD of the fourth does not hide it.
  timing.faw = 4 * timing.rrd_s + 9;
  expect_tight(kStart + timing.faw, [&](HbmChannel& c, std::int64_t at) {
    for (std::uint32_t bank = 0; bank < 4; ++bank) {
      c.schedule(timing, kStart + bank * timing.rrd_s, burst(bank, 5));
    }
    return c.schedule(timing, at, burst(4, 5)).activate;
  });
}

// A conflict: the row is closed first, so ACT comes tRP after the earliest PRE.
TEST_F(HbmTimingTest, RasAndRpHoldTheNextRow) {
  timing.rc = 1;
  timing.rtp = 0;
  const std::int64_t expected = kStart + timing.ras + timing.rp;
  for (const std::int64_t late : {-1, 0, 1}) {
    HbmChannel c(timing, 0);
    c.schedule(timing, kStart, burst(0, 5));
    EXPECT_EQ(c.schedule(timing, kStart + timing.ras + late, burst(0, 6)).activate,
              expected + std::max<std::int64_t>(late, 0));
  }
}

TEST_F(HbmTimingTest, RcHoldsTheNextRow) {
  timing.ras = 1;
  timing.rp = 1;
  timing.rtp = 0;
  for (const std::int64_t late : {-1, 0, 1}) {
    HbmChannel c(timing, 0);
    c.schedule(timing, kStart, burst(0, 5));
    EXPECT_EQ(c.schedule(timing, kStart + timing.rc - timing.rp + late, burst(0, 6)).activate,
              kStart + timing.rc + std::max<std::int64_t>(late, 0));
  }
}

TEST_F(HbmTimingTest, RtpHoldsThePrecharge) {
  for (const std::int64_t late : {-1, 0, 1}) {
    HbmChannel c(timing, 0);
    c.schedule(timing, kStart, burst(0, 5));
    c.schedule(timing, kStart + 300, burst(0, 5));
    EXPECT_EQ(c.schedule(timing, kStart + 300 + timing.rtp + late, burst(0, 6)).activate,
              kStart + 300 + timing.rtp + timing.rp + std::max<std::int64_t>(late, 0));
  }
}

TEST_F(HbmTimingTest, WrHoldsThePrecharge) {
  for (const std::int64_t late : {-1, 0, 1}) {
    HbmChannel c(timing, 0);
    c.schedule(timing, kStart, burst(0, 5, true));
    const std::int64_t data_end = c.schedule(timing, kStart + 300, burst(0, 5, true)).data_end;
    EXPECT_EQ(data_end, kStart + 300 + timing.write_latency + timing.ccd_s);
    EXPECT_EQ(c.schedule(timing, data_end + timing.wr + late, burst(0, 6)).activate,
              data_end + timing.wr + timing.rp + std::max<std::int64_t>(late, 0));
  }
}

void warm(HbmChannel& c, const HbmTiming& timing) {
  for (const std::uint32_t bank : {0u, 1u, 4u}) c.schedule(timing, kStart, {bank, 1, 5, 1, false});
}

TEST_F(HbmTimingTest, WtrShort) {
  const std::int64_t data_end = kStart + 300 + timing.write_latency + timing.ccd_s;
  expect_tight(data_end + timing.wtr_s, [&](HbmChannel& c, std::int64_t at) {
    warm(c, timing);
    c.schedule(timing, kStart + 300, burst(0, 5, true));
    return c.schedule(timing, at, burst(1, 5)).column;
  });
}

TEST_F(HbmTimingTest, WtrLong) {
  const std::int64_t data_end = kStart + 300 + timing.write_latency + timing.ccd_s;
  expect_tight(data_end + timing.wtr_l, [&](HbmChannel& c, std::int64_t at) {
    warm(c, timing);
    c.schedule(timing, kStart + 300, burst(0, 5, true));
    return c.schedule(timing, at, burst(4, 5)).column;
  });
}

TEST_F(HbmTimingTest, ReadToWriteTurnsTheDataBus) {
  expect_tight(kStart + 300 + timing.read_to_write(), [&](HbmChannel& c, std::int64_t at) {
    warm(c, timing);
    c.schedule(timing, kStart + 300, burst(0, 5));
    return c.schedule(timing, at, burst(1, 5, true)).column;
  });
}

TEST_F(HbmTimingTest, TrainOfTwoBankGroupsFollowsByCcdShort) {
  warm(channel, timing);
  const auto s = channel.schedule(timing, kStart + 300, {0, 2, 5, 16, false});
  EXPECT_EQ(s.activate, -1);
  EXPECT_EQ(s.data_end - s.column, 15 * timing.ccd_s + timing.read_latency + timing.ccd_s);
  const auto one_bank = channel.schedule(timing, kStart + 600, {0, 1, 5, 16, false});
  EXPECT_EQ(one_bank.data_end - one_bank.column, 15 * timing.ccd_l + timing.read_latency + timing.ccd_s);
}

// A bank that must wait for its row does not keep later trains off the idle bus, and is not overtaken into
// harm.
TEST_F(HbmTimingTest, LaterTrainFillsTheGapBeforeAConflict) {
  channel.schedule(timing, kStart, {0, 2, 5, 16, false});
  channel.schedule(timing, kStart, {2, 2, 5, 16, false});
  const auto before = channel.schedule(timing, kStart + 400, {0, 2, 5, 16, false});
  const auto conflict = channel.schedule(timing, kStart + 400, {0, 2, 6, 16, false});
  const auto other = channel.schedule(timing, kStart + 400, {2, 2, 5, 8, false});
  EXPECT_GT(conflict.column, before.column + 15 * timing.ccd_s + timing.rp + timing.rcd_read);
  EXPECT_EQ(other.column, before.column + 16 * timing.ccd_s);
  EXPECT_LE(other.column + 8 * timing.ccd_s, conflict.column);
  EXPECT_EQ(channel.statistics().backfills, 1u);
}

// A channel's write queue holds as many as it has places; the next one writes them all out.
TEST(HbmWriteQueue, HoldsItsDepthAndNoMore) {
  hw::Hbm p = testing::preset_memory().hbm;
  p.write_queue = 3;
  HbmMemory memory(p);
  for (int n = 0; n < 3; ++n) memory.write(0, 128, 1_us);
  EXPECT_EQ(memory.total().writes, 0u);
  memory.write(0, 128, 1_us);
  EXPECT_EQ(memory.total().writes, 3u);
  EXPECT_EQ(memory.written_bytes(), 4u * 128);
}

TEST_F(HbmTimingTest, CountsRowOutcomes) {
  channel.schedule(timing, kStart, burst(0, 5));
  channel.schedule(timing, kStart + 200, burst(0, 5));
  channel.schedule(timing, kStart + 400, burst(0, 6));
  EXPECT_EQ(channel.statistics().row_misses, 1u);
  EXPECT_EQ(channel.statistics().row_hits, 1u);
  EXPECT_EQ(channel.statistics().row_conflicts, 1u);
  EXPECT_EQ(channel.statistics().busy_cycles, 3 * timing.ccd_s);
}

class HbmRefreshTest : public ::testing::Test {
 protected:
  static hw::Hbm parameters(const char* refresh) {
    hw::Hbm p = testing::preset_memory().hbm;
    p.refresh = refresh;
    return p;
  }
};

TEST_F(HbmRefreshTest, BankIsBusyForRfcFromTheCycleItIsDue) {
  const HbmTiming timing(parameters("per-bank"));
  const std::int64_t due = timing.refi;  // bank 0 of channel 0
  for (const std::int64_t offset : {-1l, 0l, 1l, timing.rfc - 1, timing.rfc, timing.rfc + 1}) {
    HbmChannel c(timing, 0);
    const std::int64_t asked = due + offset;
    const std::int64_t expected = offset < 0 ? asked : std::max(asked, due + timing.rfc);
    EXPECT_EQ(c.schedule(timing, asked, {0, 1, 5, 1, false}).activate, expected) << offset;
  }
}

TEST_F(HbmRefreshTest, RefreshClosesTheRowAndComesEveryInterval) {
  const HbmTiming timing(parameters("per-bank"));
  HbmChannel c(timing, 0);
  c.schedule(timing, timing.refi - 500, {0, 1, 5, 1, false});
  EXPECT_EQ(c.schedule(timing, timing.refi - 1, {0, 1, 5, 1, false}).activate, -1);
  // The read of the cycle before holds the precharge by tRTP.
  EXPECT_EQ(c.schedule(timing, timing.refi, {0, 1, 5, 1, false}).activate,
            timing.refi - 1 + timing.rtp + timing.rp + timing.rfc);
  EXPECT_EQ(c.schedule(timing, 5 * timing.refi - 1, {0, 1, 7, 1, false}).activate, 5 * timing.refi - 1);
  EXPECT_EQ(c.schedule(timing, 7 * timing.refi + timing.rfc + 50, {0, 1, 7, 1, false}).activate,
            7 * timing.refi + timing.rfc + 50);
}

TEST_F(HbmRefreshTest, PerBankLeavesOtherBanksAloneAllBankDoesNot) {
  const HbmTiming per_bank(parameters("per-bank")), all_bank(parameters("all-bank"));
  HbmChannel a(per_bank, 0), b(all_bank, 0);
  const std::int64_t due = per_bank.refi;
  EXPECT_EQ(a.schedule(per_bank, due, {8, 1, 5, 1, false}).activate, due);
  EXPECT_EQ(b.schedule(all_bank, due, {8, 1, 5, 1, false}).activate, due + all_bank.rfc);
}

}  // namespace
}  // namespace cm384::npu::hbm_channel_test
