// Markov chains through machines that hold, on models where it is known which do.
#include "lab/uncertainty/chains.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

namespace cm384::uncertainty::chains_test {
namespace {

using ::testing::ElementsAreArray;
using ::testing::Gt;
using ::testing::Lt;
using ::testing::SizeIs;

constexpr std::size_t kUnknowns = 30;
// Of all points 1.9 % give the first, 4.9 % the second.
const std::vector<Target> kTargets{{"sum", 2, 0.005}, {"difference", 11, 0.005}};
const Point kStart(kUnknowns, 0.5);

Point figures_of(const Point& x) {
  return {1 + x[0] + x[1], 10.5 + x[2] - x[3] + 0.5 * (x[4] + x[5])};
}

Points model(const Points& points, bool stop_early) {
  Points figures;
  for (const Point& point : points) {
    figures.push_back(figures_of(point));
    if (stop_early && !kTargets[0].holds(figures.back()[0]))
      figures.back()[1] = std::numeric_limits<double>::quiet_NaN();
  }
  return figures;
}

Matching walked(const ChainOptions& options, const Points& from = {kStart}) {
  return walk(
      from, model(from, false), kTargets, model, options, [](const std::string&) {}, [] { return false; });
}

TEST(Chains, EveryMemberGivesEveryFigure) {
  const Matching matching = walked({.chains = 24, .steps = 60});
  ASSERT_THAT(matching.members, SizeIs(24));
  ASSERT_THAT(matching.log, SizeIs(60));
  for (std::size_t m = 0; m < 24; ++m) {
    EXPECT_EQ(matching.figures[m], figures_of(matching.members[m]));
    EXPECT_TRUE(all_hold(kTargets, matching.figures[m]));
  }
}

// What has no part in the figures spreads evenly over its range: 200 of 4800 draws of a uniform one are
// further than 0.012 off its mean, 0.008 off its variance (both three standard deviations).
TEST(Chains, WhatHasNoPartInTheFiguresSpreadsEvenly) {
  const Matching matching = walked({.chains = 200, .steps = 200});
  double sum = 0, squares = 0, count = 0;
  for (const Point& member : matching.members) {
    for (std::size_t i = 6; i < kUnknowns; ++i) {
      sum += member[i];
      squares += std::pow(member[i] - 0.5, 2);
      ++count;
    }
  }
  EXPECT_EQ(count, 4800);
  EXPECT_NEAR(sum / count, 0.5, 0.0125);
  EXPECT_NEAR(squares / count, 1.0 / 12, 0.0035);
}

// The sum binds x0 and x1 to each other and leaves each its range.
TEST(Chains, WhatAFigureBindsMovesTogether) {
  const Matching matching = walked({.chains = 200, .steps = 400});
  double low = 1, high = 0;
  for (const Point& member : matching.members) {
    EXPECT_NEAR(member[0] + member[1], 1, 0.01 + 1e-12);
    low = std::min(low, member[0]);
    high = std::max(high, member[0]);
  }
  EXPECT_THAT(low, Lt(0.2));
  EXPECT_THAT(high, Gt(0.8));
}

TEST(Chains, MoreStepsGoOnWhereFewerEnded) {
  const Matching few = walked({.chains = 5, .steps = 7});
  Matching many = walked({.chains = 5, .steps = 20});
  EXPECT_NE(many.members, few.members);
  many.log.resize(7);
  EXPECT_THAT(many.log, ElementsAreArray(few.log));
  EXPECT_EQ(walked({.chains = 5, .steps = 7}).members, few.members);
  EXPECT_NE(walked({.chains = 5, .steps = 7, .seed = 2}).members, few.members);
}

TEST(Chains, BeginOneAfterAnotherAtWhatIsGiven) {
  Point other(kUnknowns, 0.25);
  other[1] = 0.75;
  other[4] = other[5] = 0.5;
  ASSERT_TRUE(all_hold(kTargets, figures_of(other)));
  Points proposed;
  const auto record = [&](const Points& points, bool) {
    proposed = points;
    return Points(points.size(), Point{0, 0});
  };
  const Points from{kStart, other};
  const Matching none = walk(
      from, model(from, false), kTargets, record, {.chains = 5, .steps = 1}, [](const std::string&) {},
      [] { return false; });
  // Nothing that holds was found: a chain that never left where it began is no member.
  EXPECT_THAT(none.members, SizeIs(0));
  for (std::size_t chain = 0; chain < 5; ++chain) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < kUnknowns; ++i) kept += proposed[chain][i] == from[chain % 2][i];
    EXPECT_THAT(kept, Gt(kUnknowns / 3)) << chain;
    EXPECT_THAT(kept, Lt(kUnknowns)) << chain;
  }
}

TEST(Chains, ReportsEachStepAndEndsWhenCancelled) {
  std::size_t lines = 0;
  const Matching matching = walk(
      {kStart}, {figures_of(kStart)}, kTargets, model, {.chains = 3, .steps = 50},
      [&](const std::string&) { ++lines; }, [&] { return lines == 2; });
  EXPECT_EQ(lines, 2u);
  EXPECT_THAT(matching.log, SizeIs(2));
}

// Where no move holds ever fewer unknowns are drawn anew, down to one or two; where all do, all of them are.
TEST(Chains, MovesAdapt) {
  const auto drawn_at_last = [](bool hold) {
    const auto always = [&](const Points& points, bool) {
      return Points(points.size(), Point{hold ? 1.0 : 0});
    };
    const Matching matching = walk(
        {kStart}, {{1}}, {{"one", 1, 0.1}}, always, {.chains = 10, .steps = 60}, [](const std::string&) {},
        [] { return false; });
    return std::stod(matching.log.back().substr(matching.log.back().find(':') + 1));
  };
  EXPECT_EQ(drawn_at_last(true), kUnknowns);
  EXPECT_NEAR(drawn_at_last(false), 1.5, 0.05);
}

}  // namespace
}  // namespace cm384::uncertainty::chains_test
