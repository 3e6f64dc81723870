// What each request's latencies are known from, against the times that they add up to.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "testbenches/workloads/service/small_service.h"
#include "workloads/service/drawn_requests.h"
#include "workloads/service/simulation.h"

namespace cm384::service::evidence_test {
namespace {

double s_of(Time time) {
  return time.us() * 1e-6;
}

constexpr auto kParameter = static_cast<std::size_t>(Evidence::parameter),
               kMeasured = static_cast<std::size_t>(Evidence::measured);

// A prompt by a parameter of the deployment, and four steps by the library.
TEST(LatencyEvidence, IsThatOfTheBatchAndTheStepsOfOneRequest) {
  RequestTrace trace;
  trace.requests.resize(1);
  trace.requests[0].prompt = 500;
  trace.requests[0].output = 9;
  Deployment deployment = small_deployment();
  deployment.decode.acceptance = 1;
  deployment.decode.bubble = 1_ms;
  ServiceOptions options;
  options.evidence = true;
  const LatencyEvidence of = serve(trace, deployment, small_library(), options).evidence_of.at(0);
  EXPECT_DOUBLE_EQ(of.prefill.s[kParameter], 0.05);
  EXPECT_DOUBLE_EQ(of.prefill.total(), 0.05);
  const StepTime step = DecodeSteps(small_library(), 4, 1).at(8, 128);
  const auto kind = static_cast<std::size_t>(step.evidence);
  ASSERT_NE(kind, kParameter);
  EXPECT_NEAR(of.decode.s[kind], 4 * step.ms * 1e-3, 1e-9);
  EXPECT_NEAR(of.decode.s[kParameter], 4 * 1e-3, 1e-9);
  EXPECT_NEAR(of.decode.total(), 4 * (step.ms + 1) * 1e-3, 1e-9);
  EXPECT_NEAR(of.decode.error_s, 4 * step.ms * 1e-3 * step.error, 1e-12);
}

// Time by scaled points is told from the rest, with their error.
TEST(LatencyEvidence, OfAScaledLibraryIsScaled) {
  RequestTrace trace;
  trace.requests.resize(1);
  trace.requests[0].prompt = 500;
  trace.requests[0].output = 9;
  const Library whole = small_library();
  Library library("other");
  for (DecodePoint point : whole.decode()) {
    point.from = "scaled";
    point.error = 0.03;
    library.add(point);
  }
  for (const AttentionPoint& point : whole.attention()) library.add(point);
  ServiceOptions options;
  options.evidence = true;
  const ServiceResult result = serve(trace, small_deployment(), library, options);
  const LatencyEvidence of = result.evidence_of.at(0);
  constexpr auto kScaled = static_cast<std::size_t>(Evidence::scaled);
  const StepTime step = DecodeSteps(library, 4, 1).at(8, 128);
  EXPECT_EQ(step.evidence, Evidence::scaled);
  EXPECT_GT(of.decode.s[kScaled], 0);
  EXPECT_EQ(of.decode.s[kMeasured], 0);
  EXPECT_NEAR(of.decode.error_s, of.decode.s[kScaled] * (step.error + 0.03), 1e-12);
  EXPECT_NEAR(of.decode.total(), of.decode.s[kScaled] + of.decode.s[kParameter], 1e-12);
  EXPECT_DOUBLE_EQ(result.worst_scaled, 0.03);
}

// From the beginning of its prompt to the first token its batches are one behind the other, and from its
// first step to its end the steps.
TEST(LatencyEvidence, KeepsAllOfTheTime) {
  for (const bool chunks : {false, true}) {
    for (const char* reserve : {"whole", "growing"}) {
      DrawnRequests drawn;
      drawn.rate = 18;
      drawn.duration = 60_s;
      drawn.prompt = "uniform:50:900";
      drawn.output = "uniform:1:120";
      const RequestTrace trace = draw_requests(drawn);
      Deployment deployment = small_deployment();
      deployment.prefill.chunk = chunks ? 150 : 0;
      deployment.decode.reserve = reserve;
      deployment.decode.kv_room = Bytes{1'300'000};
      ServiceOptions options;
      options.evidence = true;
      const ServiceResult result = serve(trace, deployment, small_library(), options);
      int waited = 0, preempted = 0;
      for (std::size_t k = 0; k < trace.requests.size(); ++k) {
        const Served& served = result.served[k];
        const LatencyEvidence& of = result.evidence_of[k];
        const double batches = s_of(served.first_token - served.prefill_start),
                     all = s_of(served.first_token - served.arrival);
        const bool with_queue = std::abs(of.prefill.total() - all) < 1e-9;
        // Who waited less than any batch took knows nothing of what was computed meanwhile.
        ASSERT_TRUE(with_queue || std::abs(of.prefill.total() - batches) < 1e-9)
            << k << " " << of.prefill.total();
        waited += with_queue && all > batches ? 1 : 0;
        if (trace.requests[k].output == 1) {
          EXPECT_EQ(of.decode.total(), 0);
          continue;
        }
        const double answer = s_of(served.done - served.transferred);
        preempted += served.preemptions;
        if (served.preemptions > 0) {
          EXPECT_GT(of.decode.total(), 0);
          EXPECT_LT(of.decode.total(), s_of(served.done - served.first_token));
        } else {
          EXPECT_LE(of.decode.total(), answer + 1e-9) << k;
          EXPECT_GT(of.decode.total(), answer - 0.05) << "less than a step before its first one";
        }
      }
      EXPECT_GT(waited, 200);
      EXPECT_EQ(preempted > 0, std::string(reserve) == "growing");
      // Looking changes nothing.
      options.evidence = false;
      const ServiceResult without = serve(trace, deployment, small_library(), options);
      EXPECT_TRUE(without.evidence_of.empty());
      EXPECT_EQ(without.end, result.end);
      EXPECT_EQ(without.evidence_s, result.evidence_s);
    }
  }
}

// Two seconds of waiting while prefill computed four, of which three were measured.
TEST(LatencyEvidence, KnowsAWaitAsWellAsWhatWasComputedMeanwhile) {
  RequestEvidence latencies(true, 2);
  EvidenceSum before, meanwhile, own;
  before.s[kParameter] = 100;
  meanwhile.s[kMeasured] = 3;
  meanwhile.s[kParameter] = 1;
  own.s[kParameter] = 7;
  latencies.add_computed(before);
  latencies.begin_waiting(0);
  latencies.add_computed(meanwhile);
  latencies.begin_prefill(0, 2);
  latencies.add_batch(0, own);
  latencies.begin_waiting(1);
  latencies.begin_prefill(1, 2);
  latencies.add_batch(1, own);
  const std::vector<LatencyEvidence> of = latencies.release();
  EXPECT_DOUBLE_EQ(of[0].prefill.s[kMeasured], 1.5);
  EXPECT_DOUBLE_EQ(of[0].prefill.s[kParameter], 7.5);
  EXPECT_DOUBLE_EQ(of[1].prefill.total(), 7);
}

}  // namespace
}  // namespace cm384::service::evidence_test
