#include "lab/uncertainty/sensitivity.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "testbenches/hw/refusal.h"

namespace cm384::uncertainty::sensitivity_test {
namespace {

const std::vector<Unknown>& unknowns() {
  static const std::vector<Unknown> all = unknowns_of(hw::load_machine("cloudmatrix384"));
  return all;
}

std::size_t index_of(std::string_view key) {
  return static_cast<std::size_t>(std::ranges::find(unknowns(), key, &Unknown::key) - unknowns().begin());
}

// 100 + 8 hit + 4 write + 2 hit x controller: sections l2 and hbm matter, all else does not.
Point model(const Points& points) {
  Point values;
  for (const Point& x : points) {
    const double hit = x[index_of("l2.hit_latency")], write = x[index_of("l2.write_latency")],
                 controller = x[index_of("hbm.controller_latency")];
    values.push_back(100 + 8 * hit + 4 * write + 2 * hit * controller);
  }
  return values;
}

TEST(Sensitivity, FindsWhatMattersAndLeavesOutWhatDoesNot) {
  std::size_t runs = 0;
  const auto counted = [&](const Points& points) {
    runs += points.size();
    return model(points);
  };
  const auto found =
      analyse(unknowns(), counted, {.trajectories = 20, .keep = 3, .samples = 60}, [] { return false; });
  ASSERT_TRUE(found);
  EXPECT_EQ(found->runs, runs);
  EXPECT_EQ(found->ranked[0].unknown, index_of("l2.hit_latency"));
  EXPECT_EQ(found->ranked[1].unknown, index_of("l2.write_latency"));
  EXPECT_EQ(found->ranked[2].unknown, index_of("hbm.controller_latency"));
  EXPECT_NEAR(found->ranked[1].effect.mean_absolute, 4, 1e-9);
  for (std::size_t i = 3; i < found->ranked.size(); ++i) EXPECT_EQ(found->ranked[i].effect.mean_absolute, 0);
  for (const std::size_t i : found->inert)
    EXPECT_FALSE(unknowns()[i].key.starts_with("l2.") || unknowns()[i].key.starts_with("hbm."));
  EXPECT_EQ(found->inert.size() + found->ranked.size(), unknowns().size());
  // Variances: hit (8 + 1)^2 / 12, write 16 / 12, controller 1 / 12, hit and controller together 4 / 144.
  const double all = (81.0 + 16 + 1) / 12 + 4.0 / 144;
  EXPECT_NEAR(*found->ranked[0].first, 81.0 / 12 / all, 0.03);
  EXPECT_NEAR(*found->ranked[1].total, 16.0 / 12 / all, 0.03);
  EXPECT_GT(*found->surrogate_quality, 0.95);
  EXPECT_FALSE(found->ranked[3].first);
}

// What only binds above the machine's own value has no effect at the lower end.
TEST(Sensitivity, AGroupThatMattersAtOneEndStays) {
  const std::size_t call = index_of("host.call");
  const auto above = [&](const Points& points) {
    Point values;
    for (const Point& x : points)
      values.push_back(100 + std::max(0.0, x[call] - unknowns()[call].own_place()));
    return values;
  };
  const auto found = analyse(unknowns(), above, {.trajectories = 8, .keep = 0}, [] { return false; });
  EXPECT_EQ(found->ranked.front().unknown, call);
  EXPECT_GT(found->ranked.front().effect.mean_absolute, 0);
}

TEST(Sensitivity, SaysWhatCannotBeRun) {
  const auto refusing = [](const Points& points) {
    Point values = model(points);
    const std::size_t at = index_of("rdma.mtu");
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (points[i][at] != unknowns()[at].own_place()) values[i] = std::numeric_limits<double>::quiet_NaN();
    }
    return values;
  };
  const auto found = analyse(unknowns(), refusing, {.trajectories = 2, .keep = 0}, [] { return false; });
  EXPECT_THAT(found->refused, ::testing::Contains(index_of("rdma.mtu")));
  EXPECT_EQ(found->failed, 0u);
  EXPECT_FALSE(found->surrogate_quality);
  const auto never = [](const Points& points) { return Point(points.size(), std::nan("")); };
  EXPECT_THAT(refusal([&] { analyse(unknowns(), never, {}, [] { return false; }); }),
              ::testing::HasSubstr("own values failed"));
}

TEST(Sensitivity, AnInterruptEndsIt) {
  int stages = 0;
  EXPECT_FALSE(analyse(unknowns(), model, {.trajectories = 2}, [&] { return ++stages == 2; }));
}

}  // namespace
}  // namespace cm384::uncertainty::sensitivity_test
