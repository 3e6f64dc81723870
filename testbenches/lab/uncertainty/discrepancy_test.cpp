// What is learnt of a model's discrepancy against closed forms: Student's t from tables, variances by hand.
#include "lab/uncertainty/discrepancy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "lab/uncertainty/recipes.h"

namespace cm384::uncertainty::discrepancy_test {
namespace {

// A figure whose members all give 100, and that was published as so many times that.
Evidence exact(const std::string& family, double times) {
  return {family + std::to_string(times), family, 100 * times, {100, 100}};
}

double share(const std::vector<FamilyDiscrepancy>& all, const std::string& family) {
  return discrepancy_of(all, family).share;
}

// Four rows at e^0.1, e^-0.1: variance 0.01. With no other family the row of prior weight is of their own
// variance, and t of five degrees at 95 % is 2.015 (any table).
TEST(Discrepancy, OneFamilyIsItsOwnMeanSquare) {
  std::vector<Evidence> evidence;
  for (const double power : {0.1, -0.1, 0.1, -0.1}) evidence.push_back(exact("a", std::exp(power)));
  const auto all = learn(evidence);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].family, "");
  EXPECT_EQ(all[1].rows, 4u);
  EXPECT_NEAR(share(all, "a"), std::exp(2.0150 * 0.1) - 1, 1e-4);
  EXPECT_EQ(all[1].held, 4u);  // each lies within the others' 2.13 x 0.1
}

// One row at e^0.3 beside a family of variance 0.01: half of each, and two degrees of freedom, 2.920.
TEST(Discrepancy, ARowAloneIsDrawnHalfwayToTheOthers) {
  std::vector<Evidence> evidence{exact("one", std::exp(0.3))};
  for (const double power : {0.1, -0.1, 0.1, -0.1}) evidence.push_back(exact("many", std::exp(power)));
  const auto all = learn(evidence);
  EXPECT_NEAR(share(all, "one"), std::exp(2.9200 * std::sqrt((0.09 + 0.01) / 2)) - 1, 1e-4);
  EXPECT_NEAR(share(all, "many"), std::exp(2.0150 * std::sqrt((4 * 0.01 + 0.09) / 5)) - 1, 1e-4);
  // Nothing is known of a third family but that it is one of two such: t of two degrees.
  EXPECT_NEAR(share(all, "none"), std::exp(2.9200 * std::sqrt((0.09 + 0.01) / 2)) - 1, 1e-4);
}

// What the members differ by is theirs: a figure at the end of their middle 90 % leaves 1.645^2 - 1 parts of
// their variance to the model, and one in their middle leaves nothing.
TEST(Discrepancy, WhatParametersExplainIsNotCountedAgain) {
  const double sigma = 0.1, half = 1.6448536 * sigma;
  const Interval members{100 * std::exp(-half), 100 * std::exp(half)};
  EXPECT_NEAR(share(learn({{"a", "x", 100 * std::exp(half), members}}), "x"),
              std::exp(2.9200 * sigma * std::sqrt(1.6448536 * 1.6448536 - 1)) - 1, 1e-4);
  EXPECT_EQ(share(learn({{"a", "x", 100, members}}), "x"), 0);
}

// Half widths add as squares of logarithms; a share of nothing changes nothing.
TEST(Discrepancy, WidensByAFactor) {
  const Interval one = widened({100, 100}, 0.25);
  EXPECT_NEAR(one.high, 125, 1e-9);
  EXPECT_NEAR(one.low, 80, 1e-9);
  const Interval both = widened({100 * std::exp(-0.3), 100 * std::exp(0.3)}, std::exp(0.4) - 1);
  EXPECT_NEAR(both.high, 100 * std::exp(0.5), 1e-9);
  EXPECT_NEAR(both.low, 100 * std::exp(-0.5), 1e-9);
  const Interval same = widened({90, 110}, 0);
  EXPECT_NEAR(same.low, 90, 1e-9);
  EXPECT_NEAR(same.high, 110, 1e-9);
  EXPECT_EQ(widened({-1, 2}, 0.5).low, -1.5);
}

// Two parts of equal time and share: a half of it by the root of two. One part: its own.
TEST(Discrepancy, OfPartsAddsAsSquares) {
  const std::vector<FamilyDiscrepancy> all{{"", 2, 2, 1.0}, {"a", 1, 1, 0.25}, {"b", 1, 1, 0.25}};
  EXPECT_NEAR(share_of_parts(all, {{"a", 7}}), 0.25, 1e-12);
  EXPECT_NEAR(share_of_parts(all, {{"a", 3}, {"b", 3}}), std::exp(std::log(1.25) / std::sqrt(2.0)) - 1,
              1e-12);
  EXPECT_NEAR(share_of_parts(all, {{"a", 3}, {"none", 1}}),
              std::exp(std::hypot(0.75 * std::log(1.25), 0.25 * std::log(2.0))) - 1, 1e-12);
  EXPECT_EQ(share_of_parts(all, {}), 0);
}

// Families whose logarithms are normal with variances of their own: nine in ten further figures lie inside.
TEST(Discrepancy, HoldsNineInTenOfWhatFollows) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  std::size_t inside = 0, figures = 0;
  for (int repeat = 0; repeat < 200; ++repeat) {
    std::vector<Evidence> evidence;
    const double sigmas[] = {0.05, 0.1, 0.2, 0.3};
    for (std::size_t family = 0; family < 4; ++family) {
      for (int row = 0; row < 10; ++row)
        evidence.push_back(exact(std::to_string(family), std::exp(sigmas[family] * normal(random))));
    }
    const auto all = learn(evidence);
    for (std::size_t family = 0; family < 4; ++family) {
      const double limit = std::log1p(share(all, std::to_string(family)));
      for (int row = 0; row < 10; ++row) {
        ++figures;
        inside += std::abs(sigmas[family] * normal(random)) <= limit ? 1 : 0;
      }
    }
  }
  EXPECT_GT(static_cast<double>(inside) / static_cast<double>(figures), 0.9);
  EXPECT_LT(static_cast<double>(inside) / static_cast<double>(figures), 0.97);
}

// The figure that is far off is held by nothing that is learnt without it.
TEST(Discrepancy, HeldIsByTheOthersAlone) {
  std::vector<Evidence> evidence;
  for (const double power : {0.1, -0.1, 0.1, 1.0}) evidence.push_back(exact("a", std::exp(power)));
  const auto all = learn(evidence);
  EXPECT_GT(std::log1p(share(all, "a")), 1.0);
  EXPECT_EQ(all[1].held, 3u);
  EXPECT_TRUE(learn({}).empty());
}

std::string value_of(const runs::Settings& settings, std::string_view name) {
  for (const auto& [key, value] : settings) {
    if (key == name) return value;
  }
  return "-";
}

TEST(Recipes, AreAllPairsOfWhatAnOperatorHas) {
  const runs::Settings quantise{{"name", "quantise"}, {"cores", "24"}};
  EXPECT_EQ(by_recipe("op", quantise, 0), quantise);
  std::string seen;
  for (std::size_t number = 1; number <= 5; ++number) {
    const runs::Settings made = by_recipe("op", quantise, number);
    seen += value_of(made, "buffers") + "/" + value_of(made, "cores") + " ";
  }
  EXPECT_EQ(seen, "1/24 2/24 1/12 2/12 1/24 ");
  EXPECT_EQ(value_of(by_recipe("op", {{"name", "matmul"}}, 2), "tile"), "fitted");
  EXPECT_EQ(value_of(by_recipe("op", {{"name", "matmul"}, {"cores", "24"}}, 3), "cores"), "24");
  EXPECT_EQ(value_of(by_recipe("op", {{"name", "add"}}, 1), "buffers"), "-");
  // The user's word stays; cores of a die where nobody named any; other studies have none.
  EXPECT_EQ(value_of(by_recipe("op", quantise, 4, quantise, 24), "cores"), "24");
  EXPECT_EQ(value_of(by_recipe("op", {{"name", "add"}}, 3, {{"name", "add"}}, 24), "cores"), "12");
  EXPECT_EQ(value_of(by_recipe("op", {{"name", "add"}}, 3), "cores"), "-");
  EXPECT_EQ(by_recipe("gemm", quantise, 3), quantise);
}

TEST(Alternatives, AreAllCombinationsOfWhatIsOpen) {
  const std::vector<studies::Alternatives> open{
      {"launch", {"a", "b"}}, {"ranks", {"1", "2"}}, {"tp", {"x", "y", "z"}}};
  const runs::Settings given{{"ranks", "1"}, {"batch", "8"}};
  EXPECT_EQ(by_alternatives(given, open, 0, given), given);
  std::string seen;
  for (std::size_t number = 1; number <= 7; ++number) {
    const runs::Settings made = by_alternatives(given, open, number, given);
    EXPECT_EQ(value_of(made, "ranks"), "1");  // the user's word
    EXPECT_EQ(value_of(made, "batch"), "8");
    seen += value_of(made, "launch") + value_of(made, "tp") + " ";
  }
  EXPECT_EQ(seen, "bx ay by az bz ax bx ");
}

}  // namespace
}  // namespace cm384::uncertainty::discrepancy_test
