// One knob for HBM's bandwidth: what follows it, what it follows, and what binds where a part is set alone.
#include "hw/hbm_bandwidth.h"

#include <gmock/gmock.h>

#include <tuple>

#include "testbenches/hw/refusal.h"

namespace cm384::hw::hbm_bandwidth_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Machine with(const std::vector<std::string>& changes) {
  return load_machine("cloudmatrix384", changes);
}

TEST(HbmBandwidth, TheKnobSetsClockAndBursts) {
  const Machine fast = with({"hbm.bandwidth=2.4TB/s"});
  EXPECT_EQ(peaks_of(fast).hbm.bytes_per_second, 2'400'000'000'000);
  // 64 x 32 B in two cycles; tCCD_L as long as two bursts, as before.
  EXPECT_EQ(fast.memory.hbm.clock.hertz, 2'343'750'000);
  EXPECT_EQ(burst_cycles(fast.memory.hbm), 2);
  EXPECT_EQ(Clock(fast.memory.hbm.clock).ticks(fast.memory.hbm.t_ccd_l), 4);
  EXPECT_EQ(fast.provenance.at("hbm.clock").source, "follows hbm.bandwidth");
  EXPECT_EQ(fast.memory.hbm.t_rc, with({}).memory.hbm.t_rc) << "a delay of the array";
  EXPECT_THAT(fast.notes, IsEmpty());
}

// What is on its way covers bandwidth times latency: it grows, and never shrinks.
TEST(HbmBandwidth, TheKnobWidensTheWayToTheCores) {
  const Machine plain = with({}), twice = with({"hbm.bandwidth=3276.8GB/s"}),
                half = with({"hbm.bandwidth=819.2GB/s"});
  EXPECT_EQ(twice.memory.on_die_network.hbm_read_bytes_per_cycle, 64);
  EXPECT_EQ(twice.memory.l2.misses, 2 * plain.memory.l2.misses);
  EXPECT_EQ(twice.mte.local_read_window.count, 2 * plain.mte.local_read_window.count);
  EXPECT_EQ(twice.cube_mte.local_read_window.count, 2 * plain.cube_mte.local_read_window.count);
  EXPECT_EQ(half.memory.l2.misses, plain.memory.l2.misses);
  EXPECT_EQ(half.memory.on_die_network.hbm_read_bytes_per_cycle, 32);
  EXPECT_EQ(peaks_of(half).hbm.bytes_per_second, 819'200'000'000);
}

TEST(HbmBandwidth, WholeDoublingsAreOfTheStacks) {
  for (const auto& [rate, stacks, clock] : {std::tuple{"hbm.bandwidth=3276.8GB/s", 8, 1600_MHz},
                                            {"hbm.bandwidth=819.2GB/s", 2, 1600_MHz},
                                            {"hbm.bandwidth=409.6GB/s", 1, 1600_MHz},
                                            {"hbm.bandwidth=204.8GB/s", 1, 800_MHz},
                                            {"hbm.bandwidth=2457.6GB/s", 4, 2400_MHz},
                                            {"hbm.bandwidth=13107.2GB/s", 16, 3200_MHz}}) {
    const Hbm hbm = with({rate}).memory.hbm;
    EXPECT_EQ(hbm.stacks, stacks) << rate;
    EXPECT_EQ(hbm.clock, clock) << rate;
  }
  const Hbm four = with({"hbm.bandwidth=3276.8GB/s", "hbm.stacks=4"}).memory.hbm;
  EXPECT_EQ(four.clock, 3200_MHz);
}

TEST(HbmBandwidth, WhatIsSetBesidesTheKnobStaysAndBinds) {
  const Machine kept = with({"hbm.bandwidth=3276.8GB/s", "l2.misses=96"});
  EXPECT_EQ(kept.memory.l2.misses, 96);
  // At 2 GHz a burst of less than two cycles does not exist but for one: 4.096 TB/s is more than was asked
  // for.
  const Machine slow = with({"hbm.bandwidth=3.2TB/s", "hbm.clock=2GHz"});
  EXPECT_EQ(slow.memory.hbm.bandwidth.bytes_per_second, 2'048'000'000'000);
  EXPECT_THAT(slow.notes, Contains(HasSubstr("hbm.bandwidth = 3.2TB/s: hbm.t_ccd_s")));
  EXPECT_THAT(slow.notes, Contains(HasSubstr("(in cycles of hbm.clock, 2GHz: 2) gives 2048GB/s")));
}

TEST(HbmBandwidth, APartAloneSaysWhatBinds) {
  for (const char* change :
       {"hbm.clock=2.4GHz", "hbm.clock=0.8GHz", "hbm.t_ccd_s=0.833ns", "hbm.t_ccd_s=0ps"}) {
    const Machine machine = with({change});
    EXPECT_EQ(peaks_of(machine).hbm.bytes_per_second, 1'638'400'000'000) << change;
    EXPECT_THAT(machine.notes, ElementsAre(HasSubstr("hbm: 1.6384TB/s as before, which hbm.t_ccd_")))
        << change;
  }
  const Machine half = with({"hbm.t_ccd_s=2.5ns"});
  EXPECT_EQ(half.memory.hbm.bandwidth.bytes_per_second, 819'200'000'000);
  EXPECT_THAT(half.notes, IsEmpty());
  // Twice the stacks, and no wider way to the cores: 48 x 32 B x 1.85 GHz.
  const Machine stacks = with({"hbm.stacks=8"});
  EXPECT_EQ(stacks.memory.hbm.bandwidth.bytes_per_second, 3'276'800'000'000);
  EXPECT_THAT(stacks.notes, ElementsAre(HasSubstr("of which the cores read at most 2.8416TB/s")));
}

// A file that gives the knob alone, as the preset of the 920C does, and one that gives parts.
TEST(HbmBandwidth, FilesAreLayersToo) {
  const Machine next = load_machine("cloudmatrix384-920c");
  EXPECT_EQ(next.memory.hbm.clock.hertz, 1'953'125'000);
  EXPECT_EQ(next.memory.hbm.t_ccd_s, 1024_ps);
  EXPECT_EQ(next.memory.hbm.t_ccd_l, 2048_ps);
  const Machine mine = parse_machine("base = \"cloudmatrix384\"\n[hbm]\nstacks = 6\n", "mine.toml");
  EXPECT_EQ(mine.memory.hbm.bandwidth.bytes_per_second, 6 * 409'600'000'000);
  const std::string whole = to_toml(with({"hbm.bandwidth=2.4TB/s", "hbm.stacks=6"}));
  EXPECT_EQ(to_toml(parse_machine(whole, "shown.toml")),
            to_toml(parse_machine(to_toml(parse_machine(whole, "shown.toml")), "shown.toml")));
  EXPECT_EQ(peaks_of(parse_machine(whole, "shown.toml")).hbm.bytes_per_second, 2'400'000'000'000);
}

TEST(HbmBandwidth, AFileOfPartsAloneIsIncompleteAsAnyOther) {
  EXPECT_THAT(
      refusal([] { parse_machine("[hbm]\nclock = \"1.6GHz\"\nbandwidth = \"1TB/s\"\n", "mine.toml"); }),
      HasSubstr("has no value"));
}

TEST(HbmBandwidth, NoClockNoBandwidth) {
  EXPECT_THAT(refusal([] { with({"hbm.bandwidth=50TB/s"}); }),
              HasSubstr("hbm.bandwidth: 50TB/s of 256 pseudo-channels takes a command clock of"));
}

TEST(CorePorts, FollowTheCores) {
  const Machine wide = with({"die.aic=32", "die.aiv=64"}), narrow = with({"die.aic=12"});
  EXPECT_EQ(wide.memory.on_die_network.core_ports, 96);
  EXPECT_EQ(wide.provenance.at("on_die_network.core_ports").source, "follows die.aic and die.aiv");
  EXPECT_EQ(narrow.memory.on_die_network.core_ports, 72) << "ports stay where cores are gone";
  EXPECT_EQ(parse_machine("base = \"cloudmatrix384\"\n[die]\naiv = 64\n", "mine.toml")
                .memory.on_die_network.core_ports,
            88);
  EXPECT_THAT(refusal([] {
                check_machine(with({"die.aic=32", "on_die_network.core_ports=72"}));
              }),
              HasSubstr("on_die_network.core_ports: 72 does not fit"));
}

TEST(Peaks, AreDerivedFromTheCores) {
  const Peaks peaks = peaks_of(with({}));
  EXPECT_NEAR(peaks.int8_tops, 2e-12 * 8192 * 24 * 1.85e9, 1e-9);
  EXPECT_NEAR(peaks.bf16_tflops, peaks.int8_tops / 2, 1e-9);
  EXPECT_NEAR(peaks.fp32_tflops, peaks.bf16_tflops / 4, 1e-9);
  EXPECT_NEAR(peaks_of(with({"cube_core.macs_per_cycle.int8=16384"})).int8_tops, 2 * peaks.int8_tops, 1e-9);
  EXPECT_NEAR(peaks_of(with({"die.aic=12"})).int8_tops, peaks.int8_tops / 2, 1e-9);
  EXPECT_THAT(
      refusal([] { with({"die.peak_int8_tops=400"}); }),
      HasSubstr("die.peak_int8_tops: no such parameter any more: it is derived: 2 x die.aic x die.clock"));
  EXPECT_THAT(to_toml(with({})),
              ::testing::StartsWith("# Peaks of a die: links 196GB/s one way, HBM 1.6384TB/s, "
                                    "363.72 TFLOPS BF16, 727.45 TOPS INT8.\n"));
}

}  // namespace
}  // namespace cm384::hw::hbm_bandwidth_test
