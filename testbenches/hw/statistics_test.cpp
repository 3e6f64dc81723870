#include "base/engine/statistics.h"

#include <gmock/gmock.h>

#include "base/engine/probe.h"

namespace cm384::sim::statistics_test {
namespace {

TEST(Statistics, ReadsCountersWhereTheyStand) {
  std::uint64_t hits = 0, other = 0;
  Statistics statistics;
  statistics.declare("die0.l2.hits", "requests", "requests that found their sector", hits);
  statistics.declare("die1.l2.hits", "requests", "requests that found their sector", other);
  statistics.declare("die1.l2.no_hits", "requests", "a name that only ends alike", other);
  hits = 5;
  other = 7;
  EXPECT_EQ(*statistics.list()[0].counter, 5u);
  EXPECT_EQ(statistics.list()[1].name, "die1.l2.hits");
  EXPECT_EQ(statistics.total("l2.hits"), 12u);
  EXPECT_EQ(statistics.total("hits"), 12u);
  EXPECT_EQ(statistics.total("die0.l2.hits"), 5u);
  EXPECT_EQ(statistics.total("misses"), 0u);
  EXPECT_THROW(statistics.declare("die0.l2.hits", "", "", hits), std::logic_error);
}

TEST(Probe, CallsListenersInOrderOnlyWhenOn) {
  Probe<int> probe;
  EXPECT_FALSE(probe);
  std::vector<int> first, second;
  const auto append = [](void* self, int value) { static_cast<std::vector<int>*>(self)->push_back(value); };
  probe.attach(&first, append);
  probe.attach(&second, append);
  EXPECT_TRUE(probe);
  probe(3);
  probe.detach(&first);
  probe(4);
  EXPECT_EQ(first, (std::vector<int>{3}));
  EXPECT_EQ(second, (std::vector<int>{3, 4}));
  probe.detach(&second);
  EXPECT_FALSE(probe);
}

}  // namespace
}  // namespace cm384::sim::statistics_test
