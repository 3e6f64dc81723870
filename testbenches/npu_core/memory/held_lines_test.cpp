// The table of lines that are held, against a map that forgets nothing.
#include "npu_core/memory/held_lines.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace cm384::npu::held_lines_test {
namespace {

TEST(HeldLines, ToldHoldsLastUntilTheirEnd) {
  std::mt19937_64 draw(1);
  HeldLines table;
  std::map<std::uint32_t, HeldLines::Hold> all;
  int lasting = 0;
  Time now{};
  for (int n = 0; n < 200'000; ++n) {
    now += Time{static_cast<std::int64_t>(draw() % 2)};
    // Lines next to each other and lines that share many digits.
    const auto line = static_cast<std::uint32_t>(draw() % 2 == 0 ? draw() % 3'000 : draw() % 500 << 17);
    HeldLines::Hold& told = table.of(line, now);
    HeldLines::Hold& known = all[line];
    if (known.free > now) {
      ++lasting;
      ASSERT_EQ(told.free, known.free) << n;
      ASSERT_EQ(told.holder, known.holder) << n;
    } else {
      ASSERT_LE(told.free, now) << n;
    }
    known.free = told.free = now + Time{static_cast<std::int64_t>(draw() % 2'000)};
    known.holder = told.holder = static_cast<std::uint16_t>(draw() % 72);
  }
  EXPECT_GT(lasting, 20'000);
}

// Lines whose hashes begin alike, held at the same time: the table does not grow without end, and forgets
// none.
TEST(HeldLines, LinesOfOneSetDoNotMakeItGrowWithoutEnd) {
  std::uint32_t inverse = 1;  // of the factor that spreads lines over sets
  for (int n = 0; n < 5; ++n) inverse *= 2 - 0x9e3779b1u * inverse;
  HeldLines table;
  const auto line = [&](std::uint32_t n) { return n * inverse; };
  for (std::uint32_t n = 0; n < 200; ++n) {
    HeldLines::Hold& hold = table.of(line(n), Time{0});
    hold.free = Time{1'000 + n};
    hold.holder = static_cast<std::uint16_t>(n);
  }
  EXPECT_LE(table.sets(), HeldLines::kMostSets);
  for (std::uint32_t n = 0; n < 200; ++n) {
    EXPECT_EQ(table.of(line(n), Time{999}).free, Time{1'000 + n});
    EXPECT_EQ(table.of(line(n), Time{999}).holder, n);
  }
  // Those that have ended make room for others.
  EXPECT_EQ(table.of(line(7), Time{5'000}).free, Time{1'007});
  for (std::uint32_t n = 200; n < 400; ++n) table.of(line(n), Time{5'000}).free = Time{6'000};
  EXPECT_LE(table.overflow_size(), 200u);
}

}  // namespace
}  // namespace cm384::npu::held_lines_test
