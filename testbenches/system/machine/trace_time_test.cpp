// Times of timelines as Perfetto reads them, over every nanosecond of a stretch and at the size of a long
// service.
#include "system/observe/trace_time.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace cm384::observe::trace_time_test {
namespace {

std::string text_of(std::int64_t ps) {
  std::string text;
  append_us(text, Time{ps});
  return text;
}

// What Perfetto makes of the file's text.
std::int64_t read(std::int64_t ps) {
  return static_cast<std::int64_t>(std::strtod(text_of(ps).c_str(), nullptr) * 1000.0);
}

TEST(TraceTime, IsExactToThePicosecond) {
  EXPECT_EQ(text_of(0), "0.000000");
  EXPECT_EQ(text_of(1'234'567), "1.234567");
  EXPECT_EQ(text_of(12'000'000), "12.000000");
}

TEST(TraceTime, AWholeNanosecondIsNeverReadAsTheOneBefore) {
  // 2.01 us are 2009.9999999999998 ns in doubles.
  EXPECT_LT(static_cast<std::int64_t>(2.01 * 1000.0), 2010);
  constexpr std::int64_t kTenHours = 36'000'000'000'000'000;  // ps
  for (std::int64_t ns = 0; ns < 200'000; ++ns) {
    ASSERT_EQ(read(ns * 1000), ns) << text_of(ns * 1000);
    ASSERT_EQ(read(kTenHours + ns * 1000), kTenHours / 1000 + ns) << text_of(kTenHours + ns * 1000);
  }
}

TEST(TraceTime, SlicesThatFollowEachOtherDoNotOverlap) {
  std::int64_t at = 0;
  std::uint64_t state = 1;
  for (int k = 0; k < 200'000; ++k) {
    state = state * 6'364'136'223'846'793'005u + 1'442'695'040'888'963'407u;
    // Lengths in picoseconds and in nanoseconds.
    const auto length = static_cast<std::int64_t>((state >> 40) % 20'000) * (k % 2 == 0 ? 1 : 1000);
    ASSERT_LE(read(at) + read(length), read(at + length)) << text_of(at) << " " << text_of(length);
    at += length;
  }
}

}  // namespace
}  // namespace cm384::observe::trace_time_test
