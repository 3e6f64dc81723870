// What the library of OpenTURNS gives, on functions with known answers.
#include "lab/uncertainty/statistics.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace cm384::uncertainty::statistics_test {
namespace {

// Ishigami and Homma 1990, a = 7, b = 0.1.
double ishigami(const Point& x) {
  const auto angle = [](double place) { return std::numbers::pi * (2 * place - 1); };
  return std::sin(angle(x[0])) + 7 * std::pow(std::sin(angle(x[1])), 2) +
         0.1 * std::pow(angle(x[2]), 4) * std::sin(angle(x[0]));
}

TEST(Statistics, SobolIndicesOfIshigami) {
  const double pi4 = std::pow(std::numbers::pi, 4);
  const double v1 = 0.5 * std::pow(1 + 0.1 * pi4 / 5, 2), v2 = 49.0 / 8,
               v13 = 0.01 * pi4 * pi4 * (1.0 / 18 - 1.0 / 50), all = v1 + v2 + v13;
  const Points experiment = statistics().sobol_experiment(3, 8192);
  ASSERT_EQ(experiment.size(), 5u * 8192);
  Point values;
  for (const Point& point : experiment) values.push_back(ishigami(point));
  const SobolIndices indices = statistics().sobol_indices(experiment, values, 8192);
  EXPECT_NEAR(indices.first[0], v1 / all, 0.02);
  EXPECT_NEAR(indices.first[1], v2 / all, 0.02);
  EXPECT_NEAR(indices.first[2], 0, 0.02);
  EXPECT_NEAR(indices.total[0], (v1 + v13) / all, 0.02);
  EXPECT_NEAR(indices.total[1], v2 / all, 0.02);
  EXPECT_NEAR(indices.total[2], v13 / all, 0.02);
}

// One point of each factor in each stratum.
TEST(Statistics, ALatinHypercubeFillsEachStratumOnce) {
  const Points points = statistics().latin_hypercube(4, 25, 1);
  ASSERT_EQ(points.size(), 25u);
  for (std::size_t f = 0; f < 4; ++f) {
    std::vector<int> strata;
    for (const Point& point : points) strata.push_back(static_cast<int>(point[f] * 25));
    std::ranges::sort(strata);
    for (int i = 0; i < 25; ++i) EXPECT_EQ(strata[static_cast<std::size_t>(i)], i);
  }
  EXPECT_EQ(points, statistics().latin_hypercube(4, 25, 1));
  EXPECT_NE(points, statistics().latin_hypercube(4, 25, 2));
}

// A surrogate holds the values that it is made from, is near a smooth function between them, and knows less
// far from them.
TEST(Statistics, ASurrogateIsNearASmoothFunction) {
  const auto smooth = [](const Point& x) { return 3 * x[0] + x[1] * x[1] - x[0] * x[2]; };
  const Points points = statistics().latin_hypercube(3, 60, 1);
  Point values;
  for (const Point& point : points) values.push_back(smooth(point));
  const auto surrogate = statistics().kriging(points, values);
  for (const Point& point : points) EXPECT_NEAR(surrogate->at(point).mean, smooth(point), 0.02);
  for (const Point& point : statistics().latin_hypercube(3, 20, 9))
    EXPECT_NEAR(surrogate->at(point).mean, smooth(point), 0.05);
  EXPECT_GT(surrogate->at({5, 5, 5}).variance, 4 * surrogate->at(points.front()).variance);
}

}  // namespace
}  // namespace cm384::uncertainty::statistics_test
