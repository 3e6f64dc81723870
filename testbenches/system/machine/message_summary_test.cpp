// What many messages come to: percentiles against sorted values, intervals that cover, slices of time that
// merge.
#include "system/observe/messages/message_summary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace cm384::observe::message_summary_test {
namespace {

using namespace cm384::literals;

TEST(Quantiles, AreThoseOfSortedValues) {
  std::mt19937_64 draw(3);
  std::lognormal_distribution<double> values(1, 2);
  std::vector<double> all;
  Quantiles quantiles;
  for (int n = 0; n < 100'000; ++n) {
    all.push_back(values(draw));
    quantiles.add(all.back());
  }
  std::ranges::sort(all);
  for (const double share : {0.001, 0.5, 0.9, 0.99, 0.999, 0.9999}) {
    const double exact = all[static_cast<std::size_t>(std::ceil(share * 1e5)) - 1];
    EXPECT_NEAR(quantiles.at(share) / exact, 1, 0.002) << share;
  }
  EXPECT_EQ(quantiles.max(), all.back());
  EXPECT_EQ(quantiles.curve().back().at_most, 1);
}

TEST(Quantiles, OfEqualValuesAreThatValue) {
  Quantiles one, others;
  one.add(8.743886);
  EXPECT_EQ(one.at(0.5), 8.743886);
  others.add(one);
  others.add(8.743886);
  EXPECT_EQ(others.at(0.01), 8.743886);
  EXPECT_EQ(others.at(0.99), 8.743886);
}

TEST(Quantiles, IntervalsCoverInNineteenOfTwenty) {
  std::mt19937_64 draw(5);
  std::exponential_distribution<double> values(1);
  int covered = 0, open = 0;
  constexpr int kRuns = 1000;
  const double truth = -std::log(1 - 0.99);
  for (int run = 0; run < kRuns; ++run) {
    Quantiles quantiles;
    for (int n = 0; n < 1000; ++n) quantiles.add(values(draw));
    const Quantiles::Interval at = quantiles.interval(0.99);
    ASSERT_TRUE(at.low);
    open += at.high ? 0 : 1;
    covered += *at.low <= truth * 1.002 && (!at.high || truth <= *at.high * 1.002) ? 1 : 0;
    EXPECT_FALSE(quantiles.interval(0.9999).high);  // a thousand values do not bound it
  }
  EXPECT_EQ(open, 0);
  EXPECT_GE(covered, 935);
  EXPECT_LE(covered, 990);  // and are not wider than need be
}

Message message(Time ready, Time length, std::uint64_t bytes) {
  Message m;
  m.target.number = 1;
  m.bytes = bytes;
  m.ready = m.start = ready;
  m.end = ready + length;
  m.unloaded = 1_us;
  m.parts[MessageCause::uplink] = length.ps;
  m.parts.hops = 2;
  return m;
}

TEST(MessageSummary, CountsEachMessageOnceInEachTable) {
  MessageSummary summary;
  for (int n = 0; n < 1000; ++n)
    summary.add(message(Time{n * 1'000'000}, n % 2 == 0 ? 2_us : 4_us, n % 10 == 0 ? 512 : 7680));
  const Json all = summary.to_json();
  EXPECT_EQ(all["count"], 1000);
  EXPECT_NEAR(all["slowdown"]["mean"].get<double>(), 3, 1e-9);
  EXPECT_NEAR(all["slowdown"]["p50"]["value"].get<double>(), 2, 0.004);
  EXPECT_NEAR(all["latency_us"]["p99"]["value"].get<double>(), 4, 0.008);
  for (const char* table : {"by_size", "by_hops", "by_time"}) {
    int sum = 0;
    for (const Json& row : all[table]) sum += row["latency_us"]["count"].get<int>();
    EXPECT_EQ(sum, 1000) << table;
  }
  EXPECT_EQ(all["by_size"].size(), 2u);
  EXPECT_EQ(all["by_size"][0]["from_bytes"], 512);
  // Slices double until 64 hold all: 16 us each.
  EXPECT_EQ(all["by_time"].size(), 63u);
  EXPECT_NEAR(all["by_time"][1]["from_us"].get<double>(), 16, 1e-9);
  EXPECT_EQ(all["by_time"][1]["latency_us"]["count"], 16);
  EXPECT_EQ(all["pairs"].size(), 1u);
  EXPECT_FALSE(all.contains("by_level"));
  EXPECT_NEAR(all["causes"][2]["share"].get<double>(), 1, 1e-12);
  // Half of them take longer than 2 us.
  const Json& tail = all["tail"]["latency_us"];
  EXPECT_EQ(tail.front()[1], 1.0);
  EXPECT_NEAR(tail.back()[1].get<double>(), 0.5, 1e-9);
}

// Every pair of so many dies, die s to die t with a slowdown of 1 + s % 4.
Json all_pairs(unsigned dies) {
  MessageSummary summary;
  for (unsigned source = 0; source < dies; ++source) {
    for (unsigned target = 0; target < dies; ++target) {
      Message m = message({}, Time{(1 + source % 4) * 1'000'000}, 512);
      m.source.number = static_cast<std::uint16_t>(source);
      m.target.number = static_cast<std::uint16_t>(target);
      summary.add(m);
    }
  }
  return summary.to_json();
}

// No message is left out of the pairs: where there are too many, neighbours become one.
TEST(MessageSummary, TooManyPairsAreThoseOfNeighbours) {
  const Json most = all_pairs(256);
  EXPECT_EQ(most["pairs"].size(), 65'536u);
  EXPECT_FALSE(most.contains("pair_units"));
  const Json joined = all_pairs(257);
  EXPECT_EQ(joined["pair_units"], 2);
  ASSERT_EQ(joined["pairs"].size(), 129u * 129u);
  std::uint64_t messages = 0, bytes = 0;
  for (const Json& pair : joined["pairs"]) {
    messages += pair["count"].get<std::uint64_t>();
    bytes += pair["bytes"].get<std::uint64_t>();
  }
  EXPECT_EQ(messages, 257u * 257u);
  EXPECT_EQ(bytes, 257u * 257u * 512u);
  // Dies 2 and 3 to dies 4 and 5: slowdowns of 3 and 4, twice each.
  const Json& pair = joined["pairs"][129 + 2];
  EXPECT_EQ(pair["source"], "die2");
  EXPECT_EQ(pair["target"], "die4");
  EXPECT_EQ(pair["count"], 4);
  EXPECT_NEAR(pair["slowdown"].get<double>(), 3.5, 1e-12);
  EXPECT_EQ(joined["pairs"].back()["source"], "die256");
}

// Where there are several service levels each has a row.
TEST(MessageSummary, TellsServiceLevelsApart) {
  MessageSummary summary;
  for (int n = 0; n < 300; ++n) {
    Message m = message(Time{n * 1'000'000}, n % 3 == 0 ? 2_us : 4_us, 512);
    m.level = n % 3 == 0 ? 7 : 0;
    summary.add(m);
  }
  const Json levels = summary.to_json()["by_level"];
  ASSERT_EQ(levels.size(), 2u);
  EXPECT_EQ(levels[0]["level"], 0);
  EXPECT_EQ(levels[1]["level"], 7);
  EXPECT_EQ(levels[1]["latency_us"]["count"], 100);
  EXPECT_EQ(levels[1]["bytes"], 51'200);
  EXPECT_NEAR(levels[1]["latency_us"]["p99"].get<double>(), 2, 0.004);
  EXPECT_NEAR(levels[0]["latency_us"]["p50"].get<double>(), 4, 0.008);
}

}  // namespace
}  // namespace cm384::observe::message_summary_test
