#include "base/text/quantity.h"

#include <gmock/gmock.h>

#include "base/text/nearest_name.h"
#include "testbenches/hw/refusal.h"

namespace cm384::hw::quantity_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Quantity, TimesAreWholePicoseconds) {
  EXPECT_EQ(parse_time("47.5ns").ps, 47'500);
  EXPECT_EQ(parse_time("1 us").ps, 1'000'000);
  EXPECT_EQ(parse_time("0.001ns").ps, 1);
  EXPECT_EQ(parse_time("2s").ps, 2'000'000'000'000);
  EXPECT_EQ(parse_time("-3ns").ps, -3000);
}

TEST(Quantity, SizesKnowPowersOf1024And1000) {
  EXPECT_EQ(parse_bytes("7.5KiB").count, 7680);
  EXPECT_EQ(parse_bytes("192MiB").count, 201'326'592);
  EXPECT_EQ(parse_bytes("64GB").count, 64'000'000'000);
  EXPECT_EQ(parse_bytes("16GiB").count, 17'179'869'184);
  EXPECT_EQ(parse_bytes("512B").count, 512);
}

TEST(Quantity, BandwidthsInBytesAndBits) {
  EXPECT_EQ(parse_bandwidth("28GB/s").bytes_per_second, 28'000'000'000);
  EXPECT_EQ(parse_bandwidth("224Gbit/s"), parse_bandwidth("28GB/s"));
  EXPECT_EQ(parse_bandwidth("1.49TB/s").bytes_per_second, 1'490'000'000'000);
  EXPECT_EQ(parse_bandwidth("1GiB/s").bytes_per_second, 1'073'741'824);
}

TEST(Quantity, Frequencies) {
  EXPECT_EQ(parse_frequency("1.85GHz").hertz, 1'850'000'000);
  EXPECT_EQ(parse_frequency("50MHz").hertz, 50'000'000);
}

TEST(Quantity, ANumberWithoutUnitIsRefusedAndTheUnitsAreNamed) {
  EXPECT_EQ(refusal([] { parse_time("47.5"); }),
            "'47.5' has no unit; allowed: a time such as 47.5ns (units: ps, ns, us, ms, s)");
  EXPECT_THAT(refusal([] { parse_bytes("7680"); }), AllOf(HasSubstr("has no unit"), HasSubstr("KiB")));
  EXPECT_THAT(refusal([] { parse_bandwidth("28"); }), AllOf(HasSubstr("has no unit"), HasSubstr("GB/s")));
  EXPECT_THAT(refusal([] { parse_frequency("1"); }), AllOf(HasSubstr("has no unit"), HasSubstr("GHz")));
}

TEST(Quantity, WhatIsNoQuantityIsRefused) {
  EXPECT_THAT(refusal([] { parse_time("fast"); }), HasSubstr("'fast' is not a time"));
  EXPECT_THAT(refusal([] { parse_time(""); }), HasSubstr("is not a time"));
  EXPECT_THAT(refusal([] { parse_time("."); }), HasSubstr("is not a time"));
  EXPECT_THAT(refusal([] { parse_time("1.2.3ns"); }), HasSubstr("unknown unit '.3ns'"));
  EXPECT_THAT(refusal([] { parse_time("3GB"); }), HasSubstr("unknown unit 'GB'"));
  EXPECT_THAT(refusal([] { parse_bytes("7.5KB"); }), HasSubstr("ambiguous"));
  EXPECT_THAT(refusal([] { parse_time("0.5ps"); }), HasSubstr("finer than 1 ps"));
  EXPECT_THAT(refusal([] { parse_bytes("0.3B"); }), HasSubstr("finer than 1 B"));
  EXPECT_THAT(refusal([] { parse_time("99999999999s"); }), HasSubstr("too large"));
  EXPECT_THAT(refusal([] { parse_time("12345678901234567890123ns"); }), HasSubstr("too many digits"));
  EXPECT_THAT(refusal([] { parse_integer("16x"); }), HasSubstr("not a whole number"));
  EXPECT_THAT(refusal([] { parse_real("nan"); }), HasSubstr("not a number"));
  EXPECT_THAT(refusal([] { parse_bool("yes"); }), HasSubstr("neither true nor false"));
}

TEST(Quantity, FormatGivesTheShortestTextThatReadsBack) {
  EXPECT_EQ(format(Time{47'500}), "47.5ns");
  EXPECT_EQ(format(Time{0}), "0ps");
  EXPECT_EQ(format(Time{1'000'000'000}), "1ms");
  EXPECT_EQ(format(Bytes{7680}), "7.5KiB");
  EXPECT_EQ(format(Bytes{7212}), "7212B");
  EXPECT_EQ(format(Bytes{201'326'592}), "192MiB");
  EXPECT_EQ(format(Bytes{64'000'000'000}), "64GB");
  EXPECT_EQ(format(Bytes{1'024'000}), "1000KiB");  // 1024kB is as long: the later unit
  EXPECT_EQ(format(Bandwidth{28'000'000'000}), "28GB/s");
  EXPECT_EQ(format(Frequency{1'850'000'000}), "1.85GHz");
  for (const std::int64_t v : {1ll, 999ll, 1000ll, 1023ll, 1024ll, 540'541ll, 1'234'567'891ll, 1ll << 40}) {
    EXPECT_EQ(parse_time(format(Time{v})).ps, v);
    EXPECT_EQ(parse_time(format(Time{-v})).ps, -v);
    EXPECT_EQ(parse_bytes(format(Bytes{v})).count, v);
    EXPECT_EQ(parse_bandwidth(format(Bandwidth{v})).bytes_per_second, v);
    EXPECT_EQ(parse_frequency(format(Frequency{v})).hertz, v);
  }
}

TEST(NearestName, FindsTyposAndNothingElse) {
  const std::vector<std::string> names = {"hbm.t_rc", "hbm.t_ras", "l2.capacity"};
  EXPECT_EQ(nearest_name("hbm.t_rrc", names), "hbm.t_rc");
  EXPECT_EQ(nearest_name("hmb.t_rc", names), "hbm.t_rc");
  EXPECT_EQ(nearest_name("l2.capcity", names), "l2.capacity");
  EXPECT_EQ(nearest_name("speed", names), "");
  // Two letters that changed places are one mistake, as one that is missing.
  const std::vector<std::string> close = {"hbm", "hb"};
  EXPECT_EQ(nearest_name("hmb", close), "hbm");
}

}  // namespace
}  // namespace cm384::hw::quantity_test
