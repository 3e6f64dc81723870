// Elementary effects of functions whose effects are known.
#include "lab/uncertainty/morris.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <set>

namespace cm384::uncertainty::morris_test {
namespace {

std::vector<double> outputs_of(const Points& design, double (*model)(const Point&)) {
  std::vector<double> outputs;
  for (const Point& point : design) outputs.push_back(model(point));
  return outputs;
}

TEST(Morris, EachFactorChangesOncePerTrajectory) {
  const Points design = morris_design(5, 7, 3);
  ASSERT_EQ(design.size(), 7u * 6);
  for (std::size_t t = 0; t < 7; ++t) {
    std::set<std::size_t> changed;
    for (std::size_t i = 1; i < 6; ++i) {
      const Point &from = design[t * 6 + i - 1], &to = design[t * 6 + i];
      for (std::size_t f = 0; f < 5; ++f) {
        EXPECT_GE(to[f], -1e-12);
        EXPECT_LE(to[f], 1 + 1e-12);
        if (from[f] == to[f]) continue;
        EXPECT_NEAR(std::abs(to[f] - from[f]), 2.0 / 3, 1e-12);
        changed.insert(f);
      }
      EXPECT_EQ(changed.size(), i);
    }
  }
  EXPECT_EQ(design, morris_design(5, 7, 3));
  EXPECT_NE(design, morris_design(5, 7, 4));
}

TEST(Morris, ALinearFunctionHasItsSlopesAndNoSpread) {
  const Points design = morris_design(3, 10, 1);
  const auto effects =
      elementary_effects(design, outputs_of(design, [](const Point& x) { return 3 * x[0] - 2 * x[1] + 7; }));
  EXPECT_NEAR(effects[0].mean, 3, 1e-9);
  EXPECT_NEAR(effects[1].mean, -2, 1e-9);
  EXPECT_NEAR(effects[1].mean_absolute, 2, 1e-9);
  EXPECT_EQ(effects[2].mean_absolute, 0);
  for (const Effect& effect : effects) {
    EXPECT_NEAR(effect.spread, 0, 1e-9);
    EXPECT_EQ(effect.count, 10u);
  }
}

// Of x0 x1 the effect of x0 is x1, one of 0, 1/3, 2/3, 1: mean 1/2, variance 5/36.
TEST(Morris, AnInteractionShowsAsSpread) {
  const Points design = morris_design(2, 4000, 1);
  const auto effects =
      elementary_effects(design, outputs_of(design, [](const Point& x) { return x[0] * x[1]; }));
  for (const Effect& effect : effects) {
    EXPECT_NEAR(effect.mean, 0.5, 0.02);
    EXPECT_NEAR(effect.spread, std::sqrt(5.0 / 36), 0.01);
  }
}

// (x - 1/2)^2 goes down as often as up: of effects -1/3 and 1/3 only the absolute ones say that it matters.
TEST(Morris, EffectsThatCancelAreSeenByTheirSize) {
  const Points design = morris_design(1, 2000, 1);
  const auto effects =
      elementary_effects(design, outputs_of(design, [](const Point& x) { return std::pow(x[0] - 0.5, 2); }));
  EXPECT_NEAR(effects[0].mean_absolute, 1.0 / 3, 1e-9);
  EXPECT_LT(std::abs(effects[0].mean), 0.05);
}

// Morris' function of 20 factors (1991, section 5): with its first ten coefficients of 20 and interactions,
// what matters are factors 1 to 10; 8 to 10 do so without interaction.
double morris_function(const Point& x) {
  std::vector<double> w(20);
  for (std::size_t i = 0; i < 20; ++i)
    w[i] = i == 2 || i == 4 || i == 6 ? 2 * (1.1 * x[i] / (x[i] + 0.1) - 0.5) : 2 * (x[i] - 0.5);
  double y = 0;
  for (std::size_t i = 0; i < 10; ++i) y += 20 * w[i];
  for (std::size_t i = 0; i < 6; ++i) {
    for (std::size_t j = i + 1; j < 6; ++j) y -= 15 * w[i] * w[j];
  }
  for (std::size_t i = 0; i < 5; ++i) {
    for (std::size_t j = i + 1; j < 5; ++j) {
      for (std::size_t k = j + 1; k < 5; ++k) y -= 10 * w[i] * w[j] * w[k];
    }
  }
  return y;
}

TEST(Morris, HisOwnFunction) {
  const Points design = morris_design(20, 40, 1);
  const auto effects = elementary_effects(design, outputs_of(design, morris_function));
  for (std::size_t i = 0; i < 20; ++i) {
    if (i < 10) EXPECT_GT(effects[i].mean_absolute, 20) << i;
    if (i >= 10) EXPECT_NEAR(effects[i].mean_absolute, 0, 1e-9) << i;
  }
  for (const std::size_t i : {7, 8, 9}) {
    EXPECT_NEAR(effects[i].mean, 40, 1e-9);
    EXPECT_NEAR(effects[i].spread, 0, 1e-9);
  }
  for (const std::size_t i : {0, 1, 3, 5}) EXPECT_GT(effects[i].spread, 10) << i;
}

// A run that failed takes the two effects with it that it is a part of, no others.
TEST(Morris, AFailedRunHasNoEffects) {
  const Points design = morris_design(3, 2, 1);
  std::vector<double> outputs = outputs_of(design, [](const Point& x) { return x[0] + x[1] + x[2]; });
  outputs[1] = std::numeric_limits<double>::quiet_NaN();
  std::size_t count = 0;
  for (const Effect& effect : elementary_effects(design, outputs)) {
    count += effect.count;
    EXPECT_NEAR(effect.mean, 1, 1e-9);
  }
  EXPECT_EQ(count, 4u);
}

}  // namespace
}  // namespace cm384::uncertainty::morris_test
