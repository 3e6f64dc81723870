// History matching on a model whose members are known.
#include "lab/uncertainty/history.h"

#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <limits>

namespace cm384::uncertainty::history_test {
namespace {

// 20 unknowns, of which four matter. The first target fixes x0 + x1, the second 3 x2 - x3.
Point figures_of(const Point& x) {
  return {1 + x[0] + x[1] + 0.02 * x[9], 10 + 3 * x[2] - x[3] * x[3]};
}
const std::vector<Target> kTargets{{"sum", 2, 0.02}, {"difference", 11, 0.01}};

struct Counted {
  std::size_t runs = 0;
  bool stopped_early = false;
  Points operator()(const Points& points, bool stop_early) {
    Points figures;
    for (const Point& point : points) {
      Point own = figures_of(point);
      if (stop_early && !kTargets[0].holds(own[0])) {
        own[1] = std::numeric_limits<double>::quiet_NaN();
        stopped_early = true;
      }
      figures.push_back(own);
      ++runs;
    }
    return figures;
  }
};

TEST(History, EveryMemberGivesEveryFigure) {
  Counted model;
  const Matching matching = match(
      20, kTargets, std::ref(model),
      {.members = 24, .first = 60, .batch = 20, .waves = 6, .candidates = 4000}, [](const std::string&) {},
      [] { return false; });
  ASSERT_EQ(matching.members.size(), 24u);
  for (std::size_t m = 0; m < 24; ++m) {
    EXPECT_EQ(figures_of(matching.members[m]), matching.figures[m]);
    for (std::size_t t = 0; t < 2; ++t) EXPECT_TRUE(kTargets[t].holds(matching.figures[m][t]));
  }
  // By chance alone about one draw in 200 would do.
  EXPECT_LE(model.runs, 180u);
  // What has no part in the figures keeps its whole range.
  double low = 1, high = 0;
  for (const Point& member : matching.members) {
    low = std::min(low, member[15]);
    high = std::max(high, member[15]);
  }
  EXPECT_LT(low, 0.2);
  EXPECT_GT(high, 0.8);
}

// Three targets of three unknowns each: by chance one draw in some thousand gives all, so that of 300
// candidates a wave hardly one does.
TEST(History, ClosesInOnWhatNoDrawFinds) {
  constexpr std::size_t kUnknowns = 40, kFigures = 3;
  const std::vector<Target> targets(kFigures, Target{"sum", 10, 0.02});
  std::size_t runs = 0;
  const auto all = [&](const Point& x) {
    Point figures;
    for (std::size_t t = 0; t < kFigures; ++t)
      figures.push_back(8.4 + 2 * x[3 * t] + x[3 * t + 1] * x[3 * t + 2] + 0.2 * x[t]);
    return figures;
  };
  const auto model = [&](const Points& points, bool) {
    Points figures;
    for (const Point& point : points) figures.push_back(all(point));
    runs += points.size();
    return figures;
  };
  const Matching matching = match(
      kUnknowns, targets, model, {.members = 24, .first = 96, .batch = 24, .waves = 5, .candidates = 300},
      [](const std::string&) {}, [] { return false; });
  ASSERT_EQ(matching.members.size(), 24u) << matching.log.back();
  double low = 1, high = 0, nearest = 1e9;
  for (std::size_t m = 0; m < 24; ++m) {
    for (std::size_t t = 0; t < kFigures; ++t) EXPECT_TRUE(targets[t].holds(all(matching.members[m])[t]));
    low = std::min(low, matching.members[m][35]);
    high = std::max(high, matching.members[m][35]);
    for (std::size_t other = 0; other < m; ++other) {
      double square = 0;
      for (std::size_t f = 0; f < kUnknowns; ++f)
        square += std::pow(matching.members[m][f] - matching.members[other][f], 2);
      nearest = std::min(nearest, std::sqrt(square));
    }
  }
  // Members are no copies of each other, and what has no part in the figures keeps its range.
  EXPECT_GT(nearest, 0.2);
  EXPECT_LT(low, 0.2);
  EXPECT_GT(high, 0.8);
  EXPECT_LT(runs, 220u);
}

TEST(History, TheSameSeedGivesTheSameMembers) {
  const MatchingOptions options{.members = 4, .first = 40, .batch = 10, .waves = 3, .candidates = 500};
  Counted model;
  const Matching one = match(
      20, kTargets, std::ref(model), options, [](const std::string&) {}, [] { return false; });
  EXPECT_EQ(one.members,
            match(
                20, kTargets, std::ref(model), options, [](const std::string&) {}, [] { return false; })
                .members);
  MatchingOptions other = options;
  other.seed = 2;
  EXPECT_NE(one.members,
            match(
                20, kTargets, std::ref(model), other, [](const std::string&) {}, [] { return false; })
                .members);
}

TEST(History, EndsWithWhatThereIs) {
  const auto never = [](const Points& points, bool) { return Points(points.size(), Point{5, 5}); };
  const Matching none = match(
      3, kTargets, never, {.members = 2, .first = 20, .batch = 5, .waves = 2, .candidates = 50},
      [](const std::string&) {}, [] { return false; });
  EXPECT_TRUE(none.members.empty());
  EXPECT_EQ(none.log.size(), 3u);
  Counted model;
  const Matching cancelled = match(
      20, kTargets, std::ref(model), {.members = 24, .first = 40, .waves = 6}, [](const std::string&) {},
      [] { return true; });
  EXPECT_EQ(model.runs, 40u);
  EXPECT_EQ(cancelled.log.size(), 1u);
}

TEST(History, ToleranceIsTightOnBothSides) {
  const Target target{"t", 100, 0.05};
  EXPECT_TRUE(target.holds(105));
  EXPECT_TRUE(target.holds(95));
  EXPECT_FALSE(target.holds(105.001));
  EXPECT_FALSE(target.holds(94.999));
  EXPECT_FALSE(target.holds(std::numeric_limits<double>::quiet_NaN()));
}

// 3, 4 and 12 as shares of a hundred make 13.
TEST(History, ImplausibilityCountsAllThatIsNotKnown) {
  EXPECT_NEAR(implausibility({"t", 100, 0.03}, 113, 12, 0.04), 1, 1e-12);
  EXPECT_NEAR(implausibility({"t", 100, 0.03}, 87, 12, 0.04), 1, 1e-12);
  EXPECT_NEAR(implausibility({"t", 100, 0.05}, 110, 0, 0), 2, 1e-12);
}

TEST(History, ASurrogateFindsTheFactorsThatExplain) {
  const Points points = statistics().latin_hypercube(20, 120, 1);
  Point values;
  for (const Point& point : points) values.push_back(figures_of(point)[1]);
  const FigureSurrogate surrogate(points, values);
  EXPECT_EQ(surrogate.factors(), (std::vector<std::size_t>{2, 3}));
  EXPECT_LT(surrogate.error(), 0.05);
  for (const Point& point : statistics().latin_hypercube(20, 30, 5))
    EXPECT_NEAR(surrogate.at(point), figures_of(point)[1], 0.1);
}

TEST(History, AFigureThatNothingMovesIsItsMean) {
  const Points points = statistics().latin_hypercube(3, 20, 1);
  const FigureSurrogate surrogate(points, Point(20, 7.0));
  EXPECT_EQ(surrogate.at({0.1, 0.2, 0.3}), 7);
  EXPECT_EQ(surrogate.error(), 0);
}

}  // namespace
}  // namespace cm384::uncertainty::history_test
