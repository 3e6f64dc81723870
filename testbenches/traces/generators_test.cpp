// Routings that are made: how often, how many, from which row on. And the index of a trace whose records
// begin together.
#include <gtest/gtest.h>

#include <set>

#include "traces/routing/routing.h"
#include "traces/traffic_file.h"

namespace cm384::traces::generators_test {
namespace {

TEST(DriftingRouting, MovesOnAfterEachPeriodAndNotBefore) {
  const Routing still = zipf_routing(100, 3, 16, 1.5, 7);
  const Routing moving = drifting_routing(100, 3, 16, 1.5, 20, 7);
  for (std::int64_t row = 0; row < 100; ++row) {
    for (std::size_t k = 0; k < 3; ++k)
      EXPECT_EQ(moving.row(row)[k], (still.row(row)[k] + row / 20) % 16) << row;
  }
}

TEST(HotRouting, TheShareOfRowsThatNameTheHotExpert) {
  for (const double share : {0.0, 0.25, 1.0}) {
    const Routing r = hot_routing(20'000, 4, 32, share, 11);
    int hot = 0;
    for (std::int64_t row = 0; row < r.rows(); ++row) {
      const std::set<int> ids(r.row(row).begin(), r.row(row).end());
      EXPECT_EQ(ids.size(), 4u);
      EXPECT_LT(*ids.rbegin(), 32);
      hot += ids.contains(0) ? 1 : 0;
    }
    EXPECT_NEAR(hot / 20'000.0, share, 0.015) << share;
  }
}

TEST(GroupLimitedRouting, ExpertsOfARowStandInSoManyGroups) {
  const Routing r = group_limited_routing(2'000, 8, 64, 8, 3, 5);
  std::set<int> used;
  std::size_t most = 0;
  for (std::int64_t row = 0; row < r.rows(); ++row) {
    std::set<int> ids, groups;
    for (const std::int32_t id : r.row(row)) {
      ids.insert(id);
      groups.insert(id / 8);
      used.insert(id);
    }
    EXPECT_EQ(ids.size(), 8u);
    most = std::max(most, groups.size());
    EXPECT_LE(groups.size(), 3u);
  }
  EXPECT_EQ(most, 3u);
  EXPECT_EQ(used.size(), 64u);
}

// Blocks of records that all begin at one time: the first of them is found, not one of a later block.
TEST(TrafficIndex, FindsTheFirstOfRecordsOfOneTime) {
  const std::string path = ::testing::TempDir() + "cm384-index-of-one-time.trace";
  constexpr std::uint64_t kBefore = 100, kRecords = 60'000;
  {
    const auto sink = create_traffic(path, {"node8", "test", {}});
    TrafficRecord record;
    record.bytes = 64;
    for (std::uint64_t n = 0; n < kRecords; ++n) {
      record.start = record.end = n < kBefore ? Time{0} : 5_us;
      record.offset = n * 0x100'0001 % (1 << 30);
      sink->add(record);
    }
    sink->finish();
  }
  TrafficFileReader reader(path);
  EXPECT_LE(reader.seek(5_us), kBefore);
  EXPECT_GT(reader.seek(6_us), kBefore);  // there are several blocks
}

}  // namespace
}  // namespace cm384::traces::generators_test
