// Every parameter of the memory moves the time of some traffic, in the stated direction.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/text/error.h"
#include "npu_core/memory/die_memory.h"
#include "testbenches/npu_core/memory/preset.h"

namespace cm384::npu::memory_knobs_test {
namespace {

// Sum of the latencies, in ps, of traffic that meets every mechanism: light and heavy reads and writes, with
// and without allocation, random and in runs, lines shared by cores, atomics, evictions; on both kinds of
// refresh.
std::int64_t total_latency(hw::Memory p) {
  std::int64_t sum = 0;
  for (const char* refresh : {"per-bank", "all-bank"}) {
    p.hbm.refresh = refresh;
    for (const std::int64_t gap : {60'000, 900}) {
      DieMemory memory(p, 2);
      std::uint64_t x = 11;
      Time now = 5_us;
      for (int i = 0; i < 12'000; ++i) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        const auto r = static_cast<std::uint32_t>(x >> 33);
        MemoryAccess a;
        a.requester = static_cast<std::uint16_t>(r % 20 == 0 ? 72 : r % 4);
        a.write = r / 32 % 8 < 2;
        a.allocate = r / 256 % 4 != 0;
        a.bytes = r / 1024 % 4 == 0 ? 512 : 128;
        // 64 lines of a few channels, many rows of few banks, or a wide span.
        const std::uint32_t kind = r / 4096 % 4;
        const std::uint64_t pick = x >> 20;
        a.offset = kind == 0 ? pick % 64 * 512 : kind == 1 ? pick % 4096 * (1u << 19) : pick % 65536 * 512;
        if (a.bytes == 128 && pick % 16 == 0) a.offset += 100;
        a.at = now;
        now += Time{gap};
        const Time done = i % 50 == 0 ? memory.atomic_add(a) : memory.access(a);
        sum += (done - a.at).ps;
      }
    }
  }
  return sum;
}

hw::Memory base() {
  hw::Memory p = testing::preset_memory();
  p.l2.capacity = 1_MiB;  // small enough for evictions
  p.hbm.write_queue = 4;  // and for drains
  p.l2.misses = 16;       // few enough to be taken
  p.l2.slice_access = 128_B;
  p.l2.whole_line_hold = 3_ns;
  p.on_die_network.hop_latency = 100_ps;
  p.hbm.reorder_window = 1;
  return p;
}

// Doubles one field, the `wanted`-th: powers of two stay powers of two.
struct Doubler {
  std::string section;
  std::size_t wanted, seen = 0;
  std::string key;

  template <class T>
  void change(std::string_view name, T& value) {
    if (seen++ != wanted) return;
    key = section + std::string(name);
    if constexpr (std::is_same_v<T, Time>) {
      value = Time{value.ps * 2};
    } else if constexpr (std::is_same_v<T, Bytes>) {
      value = Bytes{value.count * 2};
    } else if constexpr (std::is_same_v<T, Bandwidth>) {
      value = Bandwidth{value.bytes_per_second * 2};
    } else if constexpr (std::is_same_v<T, Frequency>) {
      value = Frequency{value.hertz * 2};
    } else if constexpr (std::is_same_v<T, bool>) {
      value = !value;
    } else if constexpr (std::is_same_v<T, std::string>) {
      value = "off";
    } else {
      value = static_cast<T>(value * 2);
    }
  }
  template <class T, class... Rest>
  void operator()(std::string_view name, T& value, Rest&&...) {
    if constexpr (requires { T::describe(value, *this); }) {
      section = std::string(name) + ".";
      T::describe(value, *this);
    } else {
      change(name, value);
    }
  }
};

TEST(MemoryKnobs, EveryParameterMovesTime) {
  // Not of time: capacity bounds addresses, ports bound requester ids (other tests); a line is 512 B; the
  // kinds of refresh are compared by the formula tests, this traffic sets them itself; 16 ways are the most
  // there can be.
  const std::vector<std::string> elsewhere{
      "hbm.capacity", "on_die_network.external_ports", "l2.line", "hbm.refresh", "l2.ways", "l2.fetch",
      "hbm.bandwidth"};  // sets others
  const std::int64_t before = total_latency(base());
  std::size_t tried = 0;
  for (std::size_t i = 0;; ++i) {
    hw::Memory p = base();
    Doubler doubler{"", i, 0, ""};
    hw::Memory::describe(p, doubler);
    if (doubler.key.empty()) break;
    const std::string key = doubler.key;
    if (std::find(elsewhere.begin(), elsewhere.end(), key) != elsewhere.end()) continue;
    ++tried;
    std::int64_t after = 0;
    try {
      after = total_latency(p);
    } catch (const InputError&) {
      ADD_FAILURE() << key << " cannot be doubled";
      continue;
    }
    EXPECT_NE(after, before) << key;
    const std::string name = key.substr(key.find('.') + 1);
    const bool slower = key != "hbm.t_refi" && (name.starts_with("t_") || name.ends_with("latency") ||
                                                name.ends_with("line_hold") || name == "slice_access");
    const bool faster = name.ends_with("per_cycle") || name.ends_with("bandwidth") || key == "l2.capacity" ||
                        key == "l2.misses" || key == "hbm.t_refi" || key == "hbm.stacks" ||
                        key == "on_die_network.clock";
    if (slower) {
      EXPECT_GT(after, before) << key;
    }
    if (faster) {
      EXPECT_LT(after, before) << key;
    }
  }
  EXPECT_GT(tried, 35u);
}

TEST(MemoryKnobs, FewerWaysAndSmallerFetchMissMore) {
  hw::Memory p = base();
  p.l2.ways = 4;
  EXPECT_NE(total_latency(p), total_latency(base()));
  p = base();
  p.l2.fetch = 128_B;
  EXPECT_NE(total_latency(p), total_latency(base()));
}

TEST(MemoryKnobs, MorePortsMoreRequesters) {
  hw::Memory p = base();
  p.on_die_network.external_ports = 20;
  DieMemory memory(p);
  MemoryAccess a;
  a.bytes = 128;
  a.requester = memory.external_requester(19);
  a.at = 1_us;
  EXPECT_GT(memory.access(a), 1_us);
}

}  // namespace
}  // namespace cm384::npu::memory_knobs_test
