// The published headline figures as assertions, at volumes that take seconds.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "testbenches/runs/machine_run.h"
#include "workloads/frame/validation.h"

namespace cm384::testing::headline_test {
namespace {

double published(const std::string& id) {
  for (const studies::Figure& figure : studies::published_figures()) {
    if (figure.id == id) return figure.value;
  }
  ADD_FAILURE() << "no figure " << id;
  return NAN;
}

// Table 1 of the paper: all 16 figures within 5 %, with one set of parameters.
TEST(Headline, Table1) {
  int figures = 0;
  for (const auto& [tag, target] : {std::pair{"nn", "npu"}, std::pair{"nc", "cpu"}}) {
    for (const char* operation : {"read", "write"}) {
      for (const char* distance : {"inter", "intra"}) {
        studies::P2pPoint point;
        point.operation = operation;
        point.target = target;
        point.distance = fmt::format("{}-node", distance);
        point.volume = 512_KiB;
        const studies::P2pReading reading = run_p2p(point);
        for (const auto& [what, value] :
             {std::pair{"bw", reading.bandwidth_GBps}, std::pair{"lat", reading.latency_us}}) {
          const std::string id = fmt::format("t1-{}-{}-{}-{}", tag, operation, what, distance);
          EXPECT_NEAR(value / published(id), 1.0, 0.05) << id << ": " << value;
          ++figures;
        }
      }
    }
  }
  EXPECT_EQ(figures, 16);
}

// With one set of parameters for all numbers of ranks; 256 follow in full_size_test.cpp.
TEST(Headline, DispatchOfEightRanks) {
  studies::DispatchCase setting = small_dispatch(8, 128, 7168, 48);
  setting.warmup = 1;
  setting.iterations = 2;
  const studies::DispatchReading reading = run_dispatch(setting);
  EXPECT_NEAR(reading.task_us.mean / published("t7-dispatch-8"), 1.0, 0.10) << reading.task_us.mean;
  EXPECT_LT(reading.task_us.max, reading.task_us.mean * 1.1);
}

TEST(Headline, CombineOfEightRanks) {
  const studies::DispatchReading reading = run_combine(small_combine(8, 128, 7168, 48)).combine;
  EXPECT_NEAR(reading.task_us.mean / published("t7-combine-8"), 1.0, 0.10) << reading.task_us.mean;
  EXPECT_LT(reading.task_us.max, reading.task_us.mean * 1.1);
}

TEST(Headline, AivDirectStartsInLessThanAMicrosecond) {
  studies::P2pPoint point;
  point.volume = 0_B;
  for (const char* operation : {"read", "write"}) {
    point.operation = operation;
    const double startup = run_p2p(point).startup_us;
    EXPECT_LT(startup, published("s-aiv-startup")) << operation;
    EXPECT_GT(startup, 0.0) << operation;
  }
}

// All rows that were measured on the part, with one set of parameters (ascend-facts A6).
TEST(Headline, StreamingReads) {
  const std::span<const studies::StreamShape> shapes = studies::stream_shapes();
  EXPECT_EQ(shapes.size(), 13u);
  for (const studies::StreamShape& shape : shapes) {
    // A quarter of the rows where that changes neither who reads what nor what is found in L2: the rate is
    // steady long before.
    const bool whole = shape.shared != 0 || shape.passes > 1;
    const double measured = static_cast<double>(shape.bytes(48)) / (shape.measured_us * 1e6);
    const double rate = run_stream(shape.name, {}, whole ? 1 : 0.25).bandwidth_TBps;
    EXPECT_NEAR(rate / measured, 1.0, 0.1) << shape.name << ": " << rate << " of " << measured;
  }
}

}  // namespace
}  // namespace cm384::testing::headline_test
