// L2, ports and write queues of a die's memory.
#include "npu_core/memory/die_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/text/error.h"
#include "testbenches/npu_core/memory/preset.h"

namespace cm384::npu::die_memory_test {
namespace {

constexpr std::uint64_t kSameSet = 8 * 8 * 512;  // spacing of lines that share a set of small_l2()

hw::Memory small_l2() {
  hw::Memory p = testing::preset_memory();
  p.l2.capacity = 64_KiB;  // 8 sets of 16 ways
  return p;
}

MemoryAccess at(Time t, std::uint64_t offset, std::uint32_t bytes, bool write = false,
                std::uint16_t who = 0) {
  MemoryAccess a;
  a.at = t;
  a.offset = offset;
  a.bytes = bytes;
  a.write = write;
  a.requester = who;
  return a;
}

TEST(DieMemory, SecondReadHits) {
  DieMemory memory(testing::preset_memory());
  const Time miss = memory.access(at(1_us, 4096, 512)) - 1_us;
  const Time hit = memory.access(at(3_us, 4096, 512)) - 3_us;
  EXPECT_LT(hit + 100_ns, miss);
  EXPECT_EQ(memory.statistics().l2_misses, 4u);
  EXPECT_EQ(memory.statistics().l2_hits, 4u);
}

TEST(DieMemory, MissBringsWholeFetchUnits) {
  for (const auto& [fetch, hits] : {std::pair{512_B, 1u}, std::pair{128_B, 0u}}) {
    hw::Memory p = testing::preset_memory();
    p.l2.fetch = fetch;
    DieMemory memory(p);
    memory.access(at(1_us, 0, 128));
    memory.access(at(3_us, 384, 128));
    EXPECT_EQ(memory.statistics().l2_hits, hits);
  }
}

TEST(DieMemory, ReadOfALineOnItsWayWaitsForIt) {
  DieMemory memory(testing::preset_memory());
  const Time first = memory.access(at(1_us, 0, 128));
  const Time second = memory.access(at(1_us + 10_ns, 128, 128));
  EXPECT_EQ(memory.hbm().total().reads, 1u);
  EXPECT_GE(second, first - 5_ns);
  EXPECT_LT(second, first + 20_ns);
}

TEST(DieMemory, EvictsTheLeastRecentlyUsedLine) {
  DieMemory memory(small_l2());
  Time now = 1_us;
  for (std::uint64_t i = 0; i < 16; ++i) memory.access(at(now += 1_us, i * kSameSet, 128));
  memory.access(at(now += 1_us, 0, 128));  // line 0 is now the youngest, line 1 the oldest
  EXPECT_EQ(memory.statistics().l2_hits, 1u);
  memory.access(at(now += 1_us, 16 * kSameSet, 128));
  memory.access(at(now += 1_us, 0, 128));
  EXPECT_EQ(memory.statistics().l2_hits, 2u);
  memory.access(at(now += 1_us, kSameSet, 128));
  EXPECT_EQ(memory.statistics().l2_hits, 2u);
}

// Ways beyond those that stand in the set itself keep the order of use too.
TEST(DieMemory, EveryWayIsReplacedByItsUse) {
  for (std::uint64_t kept = 0; kept < 16; ++kept) {
    DieMemory memory(small_l2());
    Time now = 1_us;
    for (std::uint64_t i = 0; i < 16; ++i) memory.access(at(now += 1_us, i * kSameSet, 128));
    memory.access(at(now += 1_us, kept * kSameSet, 128));
    // Fifteen others take the places of all but the youngest.
    for (std::uint64_t i = 16; i < 31; ++i) memory.access(at(now += 1_us, i * kSameSet, 128));
    EXPECT_EQ(memory.statistics().l2_hits, 1u) << kept;
    memory.access(at(now += 1_us, kept * kSameSet, 128));
    EXPECT_EQ(memory.statistics().l2_hits, 2u) << kept;
  }
}

TEST(DieMemory, WritesCountTheSectorsTheyFind) {
  DieMemory memory(testing::preset_memory());
  memory.access(at(1_us, 0, 512, true));
  EXPECT_EQ(memory.statistics().l2_hits, 0u);
  EXPECT_EQ(memory.statistics().l2_misses, 4u);
  memory.access(at(2_us, 128, 256, true));
  EXPECT_EQ(memory.statistics().l2_hits, 2u);
  EXPECT_EQ(memory.statistics().l2_misses, 4u);
}

TEST(DieMemory, WritesBackDirtyLinesOnly) {
  for (const bool write : {false, true}) {
    DieMemory memory(small_l2());
    Time now = 1_us;
    for (std::uint64_t i = 0; i < 17; ++i) memory.access(at(now += 1_us, i * kSameSet, 512, write));
    EXPECT_EQ(memory.statistics().write_backs, write ? 1u : 0u);
  }
}

// A sum stands in L2 alone until its line goes.
TEST(DieMemory, WritesBackLinesOfAtomicAdds) {
  DieMemory memory(small_l2());
  Time now = 1_us;
  memory.atomic_add(at(now, 0, 4));
  EXPECT_EQ(memory.hbm_traffic() - memory.hbm().read_bytes(), 128u);  // owed by L2
  for (std::uint64_t i = 1; i <= 16; ++i) memory.access(at(now += 1_us, i * kSameSet, 512));
  EXPECT_EQ(memory.statistics().write_backs, 1u);
}

TEST(DieMemory, WriteBackTakesHbmTime) {
  hw::Memory p = small_l2();
  p.hbm.write_queue = 1;
  DieMemory memory(p);
  Time now = 1_us;
  for (std::uint64_t i = 0; i < 416; ++i) memory.access(at(now += 1_us, i * kSameSet, 512, true));
  EXPECT_EQ(memory.statistics().write_backs, 400u);
  // All but the one that each channel's queue may hold.
  EXPECT_GE(memory.hbm().total().writes, 400u - 64u);
  EXPECT_EQ(memory.hbm().total().reads, 0u);
}

TEST(DieMemory, WholeSectorsAreWrittenWithoutAFetchPartsWithOne) {
  DieMemory memory(testing::preset_memory());
  memory.access(at(1_us, 0, 512, true));
  memory.access(at(2_us, 1024, 128, true));
  EXPECT_EQ(memory.hbm().total().reads, 0u);
  memory.access(at(3_us, 2048 + 32, 32, true));
  EXPECT_EQ(memory.hbm().total().reads, 1u);
  EXPECT_EQ(memory.hbm().total().busy_cycles, 4 * 2);
  memory.access(at(4_us, 2048 + 64, 32, true));  // the sector is there
  EXPECT_EQ(memory.hbm().total().reads, 1u);
  memory.access(at(5_us, 4096, 160, true));  // the first sector whole, the second in part at its begin
  EXPECT_EQ(memory.hbm().total().reads, 2u);
  memory.access(at(6_us, 8192 + 96, 160, true));  // the first in part at its end, the second whole
  EXPECT_EQ(memory.hbm().total().reads, 3u);
}

TEST(DieMemory, NoAllocateLeavesNoTrace) {
  DieMemory memory(testing::preset_memory());
  MemoryAccess a = at(1_us, 0, 512);
  a.allocate = false;
  memory.access(a);
  a.at = 3_us;
  memory.access(a);
  EXPECT_EQ(memory.statistics().l2_hits, 0u);
  EXPECT_EQ(memory.hbm().total().reads, 2u);
  a.write = true;
  for (int i = 0; i < 200; ++i) {
    a.at += 1_us;
    a.offset += 64 * 512;
    memory.access(a);
  }
  EXPECT_EQ(memory.statistics().write_backs, 0u);
  EXPECT_GT(memory.hbm().total().writes, 100u);
}

TEST(DieMemory, PartlyOverlappingHitOfNoAllocateReadUsesTheLine) {
  DieMemory memory(testing::preset_memory());
  memory.access(at(1_us, 0, 512));
  MemoryAccess a = at(3_us, 0, 512);
  a.allocate = false;
  memory.access(a);
  EXPECT_EQ(memory.statistics().l2_hits, 4u);
}

// Line numbers that are equal in their lower half, in one set.
TEST(DieMemory, LinesFarApartAreTwo) {
  DieMemory memory(small_l2());
  const std::uint64_t apart = std::uint64_t{1 << 16} * 512;
  memory.access(at(1_us, 0, 512));
  memory.access(at(3_us, apart, 512));
  memory.access(at(5_us, 64 * apart, 512));
  EXPECT_EQ(memory.statistics().l2_hits, 0u);
  memory.access(at(7_us, apart, 512));
  EXPECT_EQ(memory.statistics().l2_hits, 4u);
}

// Another requester gets a line line_hold after the one before; the same requester need not wait.
TEST(DieMemory, LineIsHeldAgainstOtherRequesters) {
  const hw::Memory p = testing::preset_memory();
  const auto second_at = [&](Time gap, std::uint16_t who) {
    DieMemory memory(p);
    memory.access(at(1_us, 0, 128, false, 0));
    memory.access(at(3_us, 0, 128, false, 0));
    return memory.access(at(3_us + gap, 128, 128, false, who)) - 3_us;
  };
  const Time slice = Time{2_ns};  // upper bound of the slice's own occupancy
  const Time alone = second_at(5_us, 1) - 5_us;
  EXPECT_EQ(second_at(p.l2.line_hold, 1), p.l2.line_hold + alone);
  EXPECT_EQ(second_at(p.l2.line_hold - 1_ps, 1), p.l2.line_hold + alone);
  EXPECT_EQ(second_at(p.l2.line_hold + 1_ps, 1), p.l2.line_hold + 1_ps + alone);
  EXPECT_EQ(second_at(5_ns, 1), p.l2.line_hold + alone);
  EXPECT_LE(second_at(slice, 0), slice + alone + 1_ns);
}

// Lines of the preset's slice 0, counted: two of them meet at one slice.
std::uint64_t line_of_slice(const hw::Memory& p, std::uint32_t wanted) {
  std::uint32_t seen = 0;
  for (std::uint64_t line = 0;; ++line) {
    const auto l = static_cast<std::uint32_t>(line);
    const std::uint32_t folded = l ^ (l >> 6) ^ (l >> 13) ^ (l >> 19);
    if (folded % static_cast<std::uint32_t>(p.l2.slices) == 0 && seen++ == wanted) return line * 512;
  }
}

// From the arrival of one request at a slice until the next may be served.
Time slice_time(const hw::Memory& p, std::int64_t bytes) {
  const double ps =
      static_cast<double>(bytes) * 1e12 / static_cast<double>(p.l2.slice_bandwidth.bytes_per_second);
  return Time{static_cast<std::int64_t>(ps) + 1};
}

// Whoever comes behind a request for a held line waits with it; at another slice nobody does.
TEST(DieMemory, AHeldLineHoldsUpItsSlice) {
  const hw::Memory p = testing::preset_memory();
  const std::uint64_t held = line_of_slice(p, 0), behind = line_of_slice(p, 1);
  const auto third = [&](Time gap, std::uint64_t offset) {
    DieMemory memory(p);
    Time now = 1_us;
    for (const std::uint64_t line : {held, behind, behind + 512}) memory.access(at(now += 1_us, line, 512));
    now += 1_us;
    memory.access(at(now, held, 128, false, 0));
    memory.access(at(now + 5_ns, held, 128, false, 1));
    return memory.access(at(now + gap, offset, 512, false, 2)) - now;
  };
  const Time free = p.l2.line_hold + slice_time(p, 512);
  const Time alone = third(1_us, behind) - 1_us;
  EXPECT_LE(third(6_ns, behind), free + alone + 1_ps);
  EXPECT_GE(third(6_ns, behind), free + alone - 1_ps);
  EXPECT_EQ(third(free - 2_ps, behind), third(6_ns, behind));
  EXPECT_EQ(third(free + 1_ps, behind), free + 1_ps + alone);
  EXPECT_EQ(third(6_ns, behind + 512), 6_ns + alone);
}

// Who runs ahead, and is followed by a call for an earlier time, makes nobody forget who holds a line then.
TEST(DieMemory, RemembersHoldsThatACallBeforeTheLatestStillMeets) {
  hw::Memory p = testing::preset_memory();
  p.on_die_network.request_latency = 1_ns;  // shorter than a caller runs ahead
  p.on_die_network.hop_latency = 0_ns;
  DieMemory memory(p);
  memory.look_ahead(40_ns);
  const std::uint64_t held = line_of_slice(p, 0);
  std::vector<std::uint64_t> others;  // of other slices
  for (std::uint64_t line = 0; others.size() < 2'000; ++line) {
    const auto l = static_cast<std::uint32_t>(line);
    if ((l ^ (l >> 6) ^ (l >> 13) ^ (l >> 19)) % static_cast<std::uint32_t>(p.l2.slices) != 0)
      others.push_back(line * 512);
  }
  Time now = 1_us;
  memory.access(at(now, held, 512));
  for (const std::uint64_t line : others) memory.access(at(now += 1_us, line, 512));
  now += 1_us;
  memory.access(at(now, held, 128, false, 0));
  for (const std::uint64_t line : others)
    memory.access(at(now + p.l2.line_hold + 11_ns, line, 512, false, 2));
  EXPECT_EQ(memory.statistics().line_waits, 0u);
  memory.access(at(now + 5_ns, held, 128, false, 1));
  EXPECT_EQ(memory.statistics().line_waits, 1u);
}

// A line that comes from HBM keeps nobody else waiting; those who want it get it one after another.
TEST(DieMemory, RequestsForALineOnItsWayAreSetAside) {
  const hw::Memory p = testing::preset_memory();
  const std::uint64_t missing = line_of_slice(p, 0), present = line_of_slice(p, 1);
  DieMemory memory(p);
  memory.access(at(1_us, present, 512));
  const Time hit = memory.access(at(2_us, present, 512)) - 2_us;
  const Time miss = memory.access(at(3_us, missing, 128, false, 0));
  const auto in = [](std::int64_t ns) { return 3_us + Time{ns * 1000}; };
  const Time same = memory.access(at(in(10), missing, 128, false, 0));
  const Time second = memory.access(at(in(20), missing, 128, false, 1));
  const Time third = memory.access(at(in(30), missing, 128, false, 2));
  EXPECT_EQ(memory.access(at(in(40), present, 512, false, 3)), in(40) + hit);
  EXPECT_EQ(memory.statistics().merged, 3u);
  EXPECT_EQ(second - same, p.l2.line_hold);
  EXPECT_EQ(third - second, p.l2.line_hold);
  // The first fetches at the rate of HBM, the others find the line in L2.
  EXPECT_LT(same, miss);
  EXPECT_EQ(memory.hbm().total().reads, 2u);
}

// What holds a line is the request before: one for all of the line holds it for a time of its own.
TEST(DieMemory, RequestsForAWholeLineHoldItForATimeOfTheirOwn) {
  hw::Memory p = testing::preset_memory();
  for (const Time whole : {0_ns, 7_ns}) {
    p.l2.whole_line_hold = whole;
    const auto wait = [&](std::uint32_t first, std::uint32_t second) {
      DieMemory memory(p);
      memory.access(at(1_us, 0, 512));
      const Time alone = memory.access(at(2_us, 0, second, false, 1)) - 2_us;
      memory.access(at(3_us, 0, first, false, 0));
      return memory.access(at(3_us, 0, second, false, 1)) - 3_us - alone;
    };
    const Time served = slice_time(p, 512);
    for (const std::uint32_t second : {128u, 512u}) {
      EXPECT_EQ(wait(128, second), p.l2.line_hold) << second;
      EXPECT_LE(wait(512, second), std::max(whole, served)) << second;
      EXPECT_GE(wait(512, second), std::max(whole, served) - 1_ps) << second;
    }
  }
}

// A read takes its slice as long as so many bytes do, a write as long as its sectors.
TEST(DieMemory, AReadTakesItsSliceAtLeastSoLong) {
  hw::Memory p = testing::preset_memory();
  for (const Bytes least : {128_B, 256_B, 512_B}) {
    p.l2.slice_access = least;
    for (const bool write : {false, true}) {
      for (const std::uint32_t bytes : {128u, 512u}) {
        DieMemory memory(p);
        const std::uint64_t first = line_of_slice(p, 0), second = line_of_slice(p, 1);
        memory.access(at(1_us, first, 512));
        memory.access(at(2_us, second, 512));
        const Time alone = memory.access(at(3_us, second, bytes, false, 1)) - 3_us;
        memory.access(at(4_us, first, bytes, write, 0));
        const Time wait = memory.access(at(4_us, second, bytes, false, 1)) - 4_us - alone,
                   expected = slice_time(p, std::max<std::int64_t>(write ? 0 : least.count, bytes));
        EXPECT_LE(wait, expected + 1_ps) << bytes << " of " << least.count;
        EXPECT_GE(wait, expected - 1_ps) << bytes << " of " << least.count;
      }
    }
  }
}

// With n places, miss n + 1 of a slice begins when the line of the first is there.
TEST(DieMemory, ASliceWaitsForSoManyLines) {
  hw::Memory p = testing::preset_memory();
  for (const int places : {1, 2, 4}) {
    p.l2.misses = places;
    DieMemory memory(p);
    const Time alone = memory.access(at(1_us, line_of_slice(p, 20), 512)) - 1_us;
    Time first{}, last{};
    for (int i = 0; i <= places; ++i) {
      last = memory.access(at(5_us, line_of_slice(p, static_cast<std::uint32_t>(i)), 512, false,
                              static_cast<std::uint16_t>(i)));
      if (i == 0) first = last;
      EXPECT_EQ(memory.statistics().miss_waits, i == places ? 1u : 0u) << places;
      if (i < places) EXPECT_LT(last - 5_us, alone + 60_ns);
    }
    // The last fetch begins when the first one ends, and may find its row open.
    const Time port{512 / 32 * 541};
    const Time fetch = first - 5_us - p.on_die_network.request_latency - p.l2.hit_latency -
                       p.on_die_network.response_latency - port;
    EXPECT_GE(last - first, fetch - p.hbm.t_rcd_read - p.hbm.t_rrd_s) << places;
    EXPECT_LE(last - first, fetch + 1_ns) << places;
  }
}

TEST(DieMemory, AtomicAddsOfOneLineFollowEachOther) {
  const hw::Memory p = testing::preset_memory();
  DieMemory memory(p);
  memory.access(at(1_us, 0, 512));
  const Time plain = memory.access(at(3_us, 0, 4)) - 3_us;
  const Time first = memory.atomic_add(at(5_us, 0, 4));
  const Time second = memory.atomic_add(at(5_us, 0, 4, false, 1));
  EXPECT_EQ(first - 5_us, plain + p.l2.atomic_latency);
  EXPECT_EQ(second - first, p.l2.atomic_latency + p.l2.line_hold);
  EXPECT_EQ(memory.statistics().atomics, 2u);
}

TEST(DieMemory, KnowsItsEndAndItsPorts) {
  hw::Memory p = testing::preset_memory();
  const DieMemory memory(p);
  EXPECT_TRUE(memory.contains((std::uint64_t{64} << 30) - 1, 1));
  EXPECT_FALSE(memory.contains((std::uint64_t{64} << 30) - 1, 2));
  EXPECT_EQ(memory.external_requester(0), 72);
}

TEST(DieMemory, RefusesWhatDoesNotFit) {
  hw::Memory p = testing::preset_memory();
  p.hbm.pseudo_channels = 3;
  EXPECT_THROW(DieMemory{p}, InputError);
  p = testing::preset_memory();
  p.l2.capacity = Bytes{(192 << 20) + 512};
  EXPECT_THROW(DieMemory{p}, InputError);
  p = testing::preset_memory();
  p.l2.fetch = 192_B;
  EXPECT_THROW(DieMemory{p}, InputError);
  p = testing::preset_memory();
  p.hbm.train_bank_groups = 3;
  EXPECT_THROW(DieMemory{p}, InputError);
}

}  // namespace
}  // namespace cm384::npu::die_memory_test
