// Memory that is given out and given back.
#include "system/host/memory_ranges.h"

#include <gtest/gtest.h>

#include <map>

#include "traces/random.h"

namespace cm384::host::memory_ranges_test {
namespace {

TEST(MemoryRanges, LieOneBehindTheOtherUntilOneIsGivenBack) {
  MemoryRanges ranges;
  EXPECT_EQ(ranges.allocate(100, 64, 1000), 0u);
  EXPECT_EQ(ranges.allocate(10, 64, 1000), 128u);
  EXPECT_EQ(ranges.allocate(1, 1, 1000), 138u);  // not into what alignment has left
  EXPECT_EQ(ranges.used(), 139u);
  const auto range = ranges.release(128);
  ASSERT_TRUE(range);
  EXPECT_EQ(range->begin, 128u);
  EXPECT_EQ(range->bytes, 10u);
  EXPECT_EQ(ranges.used(), 101u);
  EXPECT_EQ(ranges.allocate(38, 1, 1000), 100u);  // with what alignment had taken
  EXPECT_EQ(ranges.allocate(1, 1, 140), 139u);
}

TEST(MemoryRanges, TakeTheLastByteAndNoMore) {
  MemoryRanges ranges;
  EXPECT_EQ(ranges.allocate(100, 1, 99), std::nullopt);
  EXPECT_EQ(ranges.allocate(99, 1, 99), 0u);
  EXPECT_EQ(ranges.allocate(1, 1, 99), std::nullopt);
}

TEST(MemoryRanges, AreGivenBackOnceAndByTheirBegin) {
  MemoryRanges ranges;
  ranges.allocate(64, 1, 1000);
  EXPECT_FALSE(ranges.release(1));
  EXPECT_TRUE(ranges.release(0));
  EXPECT_FALSE(ranges.release(0));
  EXPECT_EQ(ranges.used(), 0u);
}

// Against a list of what is given out: none overlap, and what all give back is one hole again.
TEST(MemoryRanges, NeverOverlap) {
  constexpr std::uint64_t kCapacity = 5000;
  traces::Random random(1, 1);
  MemoryRanges ranges;
  std::map<std::uint64_t, std::uint64_t> given;
  for (int n = 0; n < 5000; ++n) {
    if (random.below(2) == 0 && !given.empty()) {
      auto which = given.begin();
      std::advance(which, static_cast<std::ptrdiff_t>(random.below(given.size())));
      ASSERT_EQ(ranges.release(which->first)->bytes, which->second);
      given.erase(which);
      continue;
    }
    const std::uint64_t bytes = 1 + random.below(200), alignment = std::uint64_t{1} << random.below(8);
    const auto at = ranges.allocate(bytes, alignment, kCapacity);
    if (!at) continue;
    ASSERT_EQ(*at % alignment, 0u);
    ASSERT_LE(*at + bytes, kCapacity);
    const auto next = given.lower_bound(*at);
    ASSERT_TRUE(next == given.end() || *at + bytes <= next->first);
    ASSERT_TRUE(next == given.begin() || std::prev(next)->first + std::prev(next)->second <= *at);
    given[*at] = bytes;
  }
  for (const auto& [begin, bytes] : given) ranges.release(begin);
  EXPECT_EQ(ranges.allocate(kCapacity, 1, kCapacity), 0u);
}

// Whole ranges, also over several that follow on each other, and not a byte more.
TEST(MemoryRanges, HoldsWhatIsGivenOut) {
  MemoryRanges ranges;
  const std::uint64_t first = *ranges.allocate(100, 1, 4096), second = *ranges.allocate(50, 1, 4096),
                      third = *ranges.allocate(8, 256, 4096);
  ASSERT_EQ(second, first + 100);
  ASSERT_EQ(third, 256u);
  EXPECT_TRUE(ranges.holds(first, 1));
  EXPECT_TRUE(ranges.holds(first, 150));
  EXPECT_TRUE(ranges.holds(first + 99, 2));
  EXPECT_FALSE(ranges.holds(first, 151));
  EXPECT_FALSE(ranges.holds(200, 1)) << "what alignment leaves out";
  EXPECT_TRUE(ranges.holds(third, 8));
  EXPECT_FALSE(ranges.holds(third, 9));
  EXPECT_FALSE(ranges.holds(third + 8, 1));
  ranges.release(second);
  EXPECT_TRUE(ranges.holds(first, 100));
  EXPECT_FALSE(ranges.holds(first + 99, 2));
}

}  // namespace
}  // namespace cm384::host::memory_ranges_test
