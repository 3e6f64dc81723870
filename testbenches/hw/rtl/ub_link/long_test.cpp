// The bit error rate that links are specified for: rare hits, so a long run.
#include <gtest/gtest.h>

#include <cstdio>

#include "testbenches/hw/rtl/ub_link/preset_link.h"

namespace cm384::rtl::long_test {
namespace {

TEST(LinkLong, AtOneErrorInAMillionBitsTheLossIsTheClosedForm) {
  constexpr double kRate = 1e-6;
  const Loss loss = measured(kRate, 300'000, kEndpointLatency);
  const double expected = closed_form(kRate, kWriteFlits, kEndpointLatency);
  // 1,340 hits expected: three standard deviations are 8 %.
  EXPECT_NEAR(static_cast<double>(loss.damaged), 300'000 * hit(kRate, kWriteFlits), 110.0);
  EXPECT_NEAR(loss.lost / expected, 1.0, 0.1) << "lost " << loss.lost;
  std::printf("bit error rate %.0e: lost %.5f of the useful time, closed form %.5f, %d hits\n", kRate,
              loss.lost, expected, static_cast<int>(loss.damaged));
}

}  // namespace
}  // namespace cm384::rtl::long_test
