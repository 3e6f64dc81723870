// Unloaded latency and peak bandwidth against closed forms.
#include <gtest/gtest.h>

#include <cmath>

#include "base/text/error.h"
#include "npu_core/memory/die_memory.h"
#include "testbenches/npu_core/memory/preset.h"

namespace cm384::npu::die_memory_formula_test {
namespace {

double port_ns(const hw::Memory& p, double bytes, int per_cycle) {
  return bytes / per_cycle / (static_cast<double>(p.on_die_network.clock.hertz) * 1e-9);
}

Time latency(DieMemory& memory, Time now, std::uint64_t offset, std::uint32_t bytes, bool write) {
  MemoryAccess a;
  a.offset = offset;
  a.bytes = bytes;
  a.write = write;
  a.at = now;
  return memory.access(a) - now;
}

TEST(MemoryFormula, UnloadedLatencies) {
  const hw::Memory p = testing::preset_memory();
  const double network = (p.on_die_network.request_latency + p.on_die_network.response_latency).ns();
  for (const std::uint32_t bytes : {128u, 512u}) {
    DieMemory memory(p);
    const double miss = latency(memory, 1_us, 4096, bytes, false).ns();
    const double hit = latency(memory, 3_us, 4096, bytes, false).ns();
    const double write = latency(memory, 5_us, 8192, bytes, true).ns();
    EXPECT_NEAR(hit, network + p.l2.hit_latency.ns() + port_ns(p, bytes, 110), 0.002);
    EXPECT_NEAR(write, network + p.l2.write_latency.ns() + port_ns(p, bytes, 86), 0.002);
    // Two ACTs tRRD apart, the second bank's first burst one burst time after the first bank's; then the
    // line.
    const HbmTiming t(p.hbm);
    const auto cycles = t.rrd_s - t.ccd_s + t.rcd_read + 15 * t.ccd_s + t.read_latency + t.ccd_s;
    const double dram = static_cast<double>(cycles) * 0.625;
    const double expected =
        network + p.l2.hit_latency.ns() + p.hbm.controller_latency.ns() + dram + port_ns(p, bytes, 32);
    EXPECT_GE(miss, expected - 0.002);
    EXPECT_LE(miss, expected + 0.627) << "besides waiting for a clock edge";
    // ascend-facts A6, less about 100 ns of MTE set-up.
    EXPECT_GE(hit, 150);
    EXPECT_LE(hit, 250);
    EXPECT_GE(miss, 350);
    EXPECT_LE(miss, 500);
    EXPECT_GE(write, 170);
    EXPECT_LE(write, 300);
  }
}

// A way is longer or shorter than the mean one by what its port and its slice are apart.
TEST(MemoryFormula, LatencyByPortAndSlice) {
  hw::Memory p = testing::preset_memory();
  const int cores = p.on_die_network.core_ports, slices = p.l2.slices;
  const auto place = [&](int port) { return port < cores ? port * slices / cores : slices - 1; };
  const auto hit = [](const hw::Memory& parameters, int port, int slice) {
    DieMemory memory(parameters);
    // The first lines lie in the slices of their numbers.
    MemoryAccess a;
    a.offset = static_cast<std::uint64_t>(slice) * 512;
    a.bytes = 512;
    a.requester = static_cast<std::uint16_t>(port);
    a.at = 1_us;
    memory.access(a);
    a.at = 3_us;
    return memory.access(a) - a.at;
  };
  double mean = 0;
  for (int port = 0; port < cores; ++port) {
    for (int slice = 0; slice < slices; ++slice) mean += std::abs(place(port) - slice);
  }
  mean *= 1000.0 / cores / slices;
  hw::Memory apart = p;
  apart.on_die_network.hop_latency = 1_ns;
  std::int64_t sum = 0;
  for (const int port : {0, 1, cores / 2, cores - 1, cores}) {
    for (int slice = 0; slice < slices; slice += 5) {
      const std::int64_t further = (hit(apart, port, slice) - hit(p, port, slice)).ps;
      EXPECT_NEAR(static_cast<double>(further), 2 * (1000.0 * std::abs(place(port) - slice) - mean), 2);
      sum += further;
    }
  }
  EXPECT_NE(sum, 0);
  apart.on_die_network.hop_latency = 1_us;
  EXPECT_THROW(DieMemory{apart}, InputError);
}

// Reads consecutive lines of one pseudo-channel, `ahead` outstanding; bytes per second.
double stream(hw::Hbm p, std::uint32_t bytes, bool write = false) {
  p.stacks = 1;
  p.pseudo_channels = 1;
  HbmMemory hbm(p);
  constexpr int ahead = 24;
  std::vector<Time> done(ahead, 10_us);
  const int count = 20'000;
  Time end{};
  for (int i = 0; i < count; ++i) {
    Time& slot = done[static_cast<std::size_t>(i) % ahead];
    const Time now = slot;
    slot = write ? hbm.write(static_cast<std::uint64_t>(i) * 512, bytes, now)
                 : hbm.read(static_cast<std::uint64_t>(i) * 512, bytes, now);
    end = std::max(end, slot);
  }
  return static_cast<double>(bytes) * count / static_cast<double>((end - 10_us).ps) * 1e12;
}

TEST(MemoryFormula, PseudoChannelPeak) {
  hw::Hbm p = testing::preset_memory().hbm;
  p.refresh = "off";
  EXPECT_NEAR(stream(p, 512), 25.6e9, 25.6e9 * 0.005);
  // One bank group per line: bursts follow by tCCD_L, twice as far apart.
  p.train_bank_groups = 1;
  EXPECT_NEAR(stream(p, 512), 12.8e9, 12.8e9 * 0.02);
}

TEST(MemoryFormula, AllBankRefreshCostsItsShare) {
  hw::Hbm p = testing::preset_memory().hbm;
  p.refresh = "all-bank";
  const HbmTiming t(p);
  const double share = static_cast<double>(t.rfc) / static_cast<double>(t.refi);
  // Around the refresh the bus also drains and the rows close and open.
  const double around =
      static_cast<double>(t.rp + t.rcd_read + 2 * t.rrd_s + t.faw) / static_cast<double>(t.refi);
  EXPECT_LE(stream(p, 512), 25.6e9 * (1 - share) * 1.005);
  EXPECT_GE(stream(p, 512), 25.6e9 * (1 - share - around) * 0.99);
}

TEST(MemoryFormula, PerBankRefreshCostsLessThanAllBank) {
  hw::Hbm p = testing::preset_memory().hbm;
  p.refresh = "per-bank";
  const double per_bank = stream(p, 512);
  p.refresh = "all-bank";
  EXPECT_GT(per_bank, stream(p, 512));
}

TEST(MemoryFormula, WriteQueueKeepsTheBusOneWay) {
  hw::Hbm p = testing::preset_memory().hbm;
  p.refresh = "off";
  EXPECT_NEAR(stream(p, 512, true), 25.6e9, 25.6e9 * 0.03);
}

// One core asks as fast as it can; its port sets the rate.
double port_rate(bool write, std::uint32_t shift, bool warm, std::uint16_t requester = 0,
                 const hw::Memory& parameters = testing::preset_memory()) {
  DieMemory memory(parameters);
  constexpr std::uint64_t lines = 4096;
  MemoryAccess a;
  a.requester = requester;
  a.at = 1_us;
  a.bytes = 512;
  if (warm) {
    for (std::uint64_t i = 0; i <= lines; ++i) {
      a.offset = i * 512;
      memory.access(a);
      a.at += 50_ns;
    }
    a.at += 10_us;
  }
  a.write = write;
  constexpr int ahead = 256;
  std::vector<Time> done(ahead, a.at);
  const Time start = a.at;
  Time end{};
  std::uint64_t bytes = 0;
  std::size_t n = 0;
  for (std::uint64_t i = 0; i < lines; ++i) {
    // A shifted run of 512 B pieces: each piece is two requests of one line each.
    const std::uint32_t first = shift == 0 ? 512 : 512 - shift;
    for (const auto& [offset, count] : {std::pair<std::uint64_t, std::uint32_t>{i * 512 + shift, first},
                                        std::pair<std::uint64_t, std::uint32_t>{(i + 1) * 512, shift}}) {
      if (count == 0) continue;
      Time& slot = done[n++ % ahead];
      a.at = std::max(a.at, slot);
      a.offset = offset;
      a.bytes = count;
      slot = memory.access(a);
      end = std::max(end, slot);
      bytes += count;
    }
  }
  return static_cast<double>(bytes) / static_cast<double>((end - start).ps) * 1e12;
}

TEST(MemoryFormula, CorePortRates) {
  EXPECT_NEAR(port_rate(false, 0, true), 110 * 1.85e9, 110 * 1.85e9 * 0.02);
  EXPECT_NEAR(port_rate(false, 0, false), 32 * 1.85e9, 32 * 1.85e9 * 0.02);
  EXPECT_NEAR(port_rate(true, 0, true), 86 * 1.85e9, 86 * 1.85e9 * 0.02);
}

TEST(MemoryFormula, RealignedRunMovesAtItsOwnRate) {
  // 448 + 64 B: five sectors are moved for each 512 B.
  const double expected = 14 * 1.85e9 * 512 / 640;
  EXPECT_NEAR(port_rate(false, 64, true), expected, expected * 0.02);
}

TEST(MemoryFormula, ExternalPortIsNoCorePort) {
  EXPECT_GT(port_rate(false, 0, false, 72), 2.5 * 32 * 1.85e9);
}

// Twice a rate moves twice the bytes where it binds; half of it half.
TEST(MemoryFormula, WhatARateBindsFollowsIt) {
  struct Binding {
    const char* name;
    void (*scale)(hw::Memory&, double);
    bool write, warm;
    std::uint32_t shift;
    std::uint16_t requester;
  };
  const Binding all[] = {
      {"hbm_read_bytes_per_cycle",
       [](hw::Memory& p, double by) {
         p.on_die_network.hbm_read_bytes_per_cycle = static_cast<int>(16 * by);
       },
       false, false, 0, 0},
      {"l2_read_bytes_per_cycle",
       [](hw::Memory& p, double by) { p.on_die_network.l2_read_bytes_per_cycle = static_cast<int>(40 * by); },
       false, true, 0, 0},
      {"write_bytes_per_cycle",
       [](hw::Memory& p, double by) { p.on_die_network.write_bytes_per_cycle = static_cast<int>(40 * by); },
       true, true, 0, 0},
      {"realign_bytes_per_cycle",
       [](hw::Memory& p, double by) { p.on_die_network.realign_bytes_per_cycle = static_cast<int>(14 * by); },
       false, true, 64, 0},
      {"external_bytes_per_cycle",
       [](hw::Memory& p, double by) {
         p.on_die_network.external_bytes_per_cycle = static_cast<int>(16 * by);
       },
       false, true, 0, 72},
      {"slice_bandwidth",
       [](hw::Memory& p, double by) {
         p.l2.slices = 1;
         p.l2.slice_bandwidth.bytes_per_second = static_cast<std::int64_t>(40e9 * by);
       },
       false, true, 0, 0},
      {"slices",
       [](hw::Memory& p, double by) {
         p.l2.slices = static_cast<int>(4 * by);
         p.l2.slice_bandwidth = 10_GBps;
       },
       false, true, 0, 0},
      {"clock",
       [](hw::Memory& p, double by) {
         p.on_die_network.clock.hertz = static_cast<std::int64_t>(925'000'001 * by);
       },
       false, true, 0, 0}};
  for (const Binding& b : all) {
    const auto rate = [&](double by) {
      hw::Memory p = testing::preset_memory();
      b.scale(p, by);
      return port_rate(b.write, b.shift, b.warm, b.requester, p);
    };
    EXPECT_NEAR(rate(2) / rate(1), 2, 0.04) << b.name;
    EXPECT_NEAR(rate(1) / rate(0.5), 2, 0.04) << b.name;
  }
}

// Not that of the megahertz below it.
TEST(MemoryFormula, RatesAreExact) {
  const auto rate = [](std::int64_t hertz) {
    hw::Memory p = testing::preset_memory();
    p.on_die_network.clock.hertz = hertz;
    return port_rate(false, 0, true, 0, p);
  };
  EXPECT_NEAR(rate(1'000'999'999) / rate(1'001'000'000), 1, 1e-4);
}

}  // namespace
}  // namespace cm384::npu::die_memory_formula_test
