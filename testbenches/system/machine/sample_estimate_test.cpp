// Estimates from windows: intervals cover though values of a window hang together.
#include "system/observe/messages/sample_estimate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace cm384::observe::sample_estimate_test {
namespace {

TEST(SampleEstimate, IsTheRatioOfSumsWithItsSpread) {
  // Two windows of means 1 and 4: sums 2 and 4 of counts 2 and 1, and one without values.
  SampleEstimate of;
  of.add(0, 1);
  of.add(0, 1);
  of.add(2, 4);
  EXPECT_EQ(of.windows(), 2);
  const SampleEstimate::Estimate mean = of.mean(3);
  EXPECT_DOUBLE_EQ(mean.value, 2);
  // Residues -2 and 2: sqrt(3 / 2 * 8) / 3, and Student's t of two degrees of freedom.
  EXPECT_NEAR(*mean.high - 2, 4.3027 * std::sqrt(12.0) / 3, 1e-3);
  EXPECT_NEAR(2 - *mean.low, *mean.high - 2, 1e-12);
}

TEST(SampleEstimate, IntervalsCoverInNineteenOfTwenty) {
  std::mt19937_64 draw(11);
  std::normal_distribution<double> level(0, 0.5);
  std::exponential_distribution<double> value(1);
  constexpr int kWindows = 400, kDrawn = 25, kRuns = 400;
  std::vector<std::vector<double>> windows(kWindows);
  std::vector<double> all;
  for (std::vector<double>& window : windows) {
    const double its = std::exp(level(draw));
    window.resize(20 + draw() % 200);
    for (double& v : window) v = its * (1 + value(draw));
    all.insert(all.end(), window.begin(), window.end());
  }
  std::ranges::sort(all);
  double mean = 0;
  for (const double v : all) mean += v / static_cast<double>(all.size());
  const auto truth = [&](double share) {
    return all[static_cast<std::size_t>(share * static_cast<double>(all.size()))];
  };
  int of_mean = 0, of_median = 0, of_tail = 0;
  double width = 0;
  for (int run = 0; run < kRuns; ++run) {
    SampleEstimate estimate;
    for (int part = 0; part < kDrawn; ++part) {
      for (const double v : windows[static_cast<std::size_t>(part) * 16 + draw() % 16]) estimate.add(part, v);
    }
    const auto covers = [](const SampleEstimate::Estimate& e, double at) {
      return (!e.low || *e.low <= at * 1.002) && (!e.high || at <= *e.high * 1.002) ? 1 : 0;
    };
    of_mean += covers(estimate.mean(kDrawn), mean);
    of_median += covers(estimate.quantile(0.5, kDrawn), truth(0.5));
    of_tail += covers(estimate.quantile(0.95, kDrawn), truth(0.95));
    width += (*estimate.mean(kDrawn).high - *estimate.mean(kDrawn).low) / mean / kRuns;
  }
  for (const int covered : {of_mean, of_median, of_tail}) {
    EXPECT_GE(covered, 0.91 * kRuns);
    EXPECT_LE(covered, 0.99 * kRuns);
  }
  EXPECT_LT(width, 0.6);
}

}  // namespace
}  // namespace cm384::observe::sample_estimate_test
