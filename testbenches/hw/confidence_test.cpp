#include "workloads/frame/confidence.h"

#include <gmock/gmock.h>

#include <boost/math/distributions/students_t.hpp>
#include <cmath>

#include "workloads/frame/result_json.h"

namespace cm384::studies::confidence_test {
namespace {

TEST(Confidence, KnownSample) {
  // Mean 5, sample variance 32/7, so the standard error is sqrt(32/7/8) = 0.755929; t(7) = 2.365.
  const Summary summary = summarise({2, 4, 4, 4, 5, 5, 7, 9});
  EXPECT_EQ(summary.count, 8);
  EXPECT_DOUBLE_EQ(summary.mean, 5);
  EXPECT_DOUBLE_EQ(summary.p50, 4);
  EXPECT_DOUBLE_EQ(summary.p99, 9);
  EXPECT_DOUBLE_EQ(summary.min, 2);
  EXPECT_DOUBLE_EQ(summary.max, 9);
  EXPECT_NEAR(summary.ci95, 1.78777, 1e-4);
}

TEST(Confidence, PercentilesAreMeasuredValues) {
  std::vector<double> samples;
  for (int i = 200; i >= 1; --i) samples.push_back(i);
  const Summary summary = summarise(samples);
  EXPECT_EQ(summary.p50, 100);
  EXPECT_EQ(summary.p99, 198);
}

// The nearest rank above: of 60 samples 99 % is rank 59.4, and at least 99 % of them are at or below the 60th
// alone.
TEST(Confidence, ARankBetweenTwoSamplesIsTheUpperOne) {
  const auto of = [](int count) {
    std::vector<double> samples;
    for (int i = 1; i <= count; ++i) samples.push_back(i);
    return summarise(samples);
  };
  EXPECT_EQ(of(60).p99, 60);
  EXPECT_EQ(of(60).p50, 30);
  EXPECT_EQ(of(61).p50, 31);
  EXPECT_EQ(of(100).p99, 99);
  EXPECT_EQ(of(101).p99, 100);
  EXPECT_EQ(of(2).p50, 1);
}

TEST(Confidence, OneSampleHasNoInterval) {
  const Summary summary = summarise({3});
  EXPECT_EQ(summary.mean, 3);
  EXPECT_EQ(summary.p99, 3);
  EXPECT_TRUE(std::isnan(summary.ci95));
  EXPECT_EQ(to_json(to_row(summary)).dump(), R"({"mean":3.0,"p50":3.0,"p99":3.0,"max":3.0,"ci95":null})");
  EXPECT_EQ(summarise({}).count, 0);
}

TEST(Confidence, StudentsTAgreesWithBoost) {
  for (const int n : {1, 2, 7, 30, 31, 40, 100, 1000, 100'000}) {
    const double exact = boost::math::quantile(boost::math::students_t(n), 0.975);
    EXPECT_NEAR(student_t95(n), exact, 6e-4) << n;
  }
}

}  // namespace
}  // namespace cm384::studies::confidence_test
