// Several services on the NPUs of one supernode: each as if alone where there are enough, and shares of what
// is free where there are not.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/text/error.h"
#include "testbenches/workloads/service/small_service.h"
#include "workloads/service/drawn_requests.h"
#include "workloads/service/npu_budget.h"
#include "workloads/service/simulation.h"

namespace cm384::service::beside_test {
namespace {

using ::testing::HasSubstr;

// Prompts of 100 ms on one NPU each, a single token as the answer.
RequestTrace prompts(int count, Time from, Time gap) {
  RequestTrace trace;
  for (int k = 0; k < count; ++k) {
    Request& request = trace.requests.emplace_back();
    request.arrival = from + gap * k;
    request.prompt = 1000;
    request.output = 1;
  }
  return trace;
}

Deployment scaled(int most) {
  Deployment deployment = small_deployment();
  deployment.prefill.instances = 1;
  deployment.prefill.sequences = 1;
  deployment.scale.most = most;
  deployment.scale.up_tokens = 1000;
  deployment.scale.interval = 1_s;
  deployment.scale.start = 300_ms;
  return deployment;
}

// Own instances have an NPU for prompts and two for decode.
constexpr int kOwn = 3;

TEST(Beside, EachIsAsAloneWhereThereAreEnoughNpus) {
  DrawnRequests drawn;
  drawn.rate = 40;
  drawn.duration = 60_s;
  drawn.prompt = "uniform:50:900";
  drawn.output = "uniform:1:120";
  drawn.ramp = "0.2:2:0.2";
  const RequestTrace first = draw_requests(drawn);
  drawn.seed = 2;
  drawn.ramp = "2:0.2:2";
  const RequestTrace second = draw_requests(drawn);
  Deployment deployment = scaled(4);
  deployment.scale.decode_most = 4;
  deployment.scale.up_use = 0.5;
  const Library library = small_library();
  ServiceOptions options;
  options.sample = 1_s;
  std::vector<SharingService> services{{"first", first, deployment, library, options},
                                       {"second", second, deployment, library, options}};
  const std::vector<ServiceResult> together = serve_together(services, 100);
  ASSERT_EQ(together.size(), 2u);
  for (const RequestTrace* trace : {&first, &second}) {
    const ServiceResult alone = serve(*trace, deployment, library, options);
    const ServiceResult& other = together[trace == &first ? 0 : 1];
    EXPECT_GT(alone.scaled_up + alone.decode_scaled_up, 2);
    EXPECT_EQ(other.scaled_up, alone.scaled_up);
    EXPECT_EQ(other.decode_scaled_up, alone.decode_scaled_up);
    EXPECT_EQ(other.denied, 0);
    EXPECT_EQ(other.end, alone.end);
    EXPECT_EQ(other.request_seconds, alone.request_seconds);
    EXPECT_EQ(other.prefill_pool_s, alone.prefill_pool_s);
    for (std::size_t k = 0; k < trace->requests.size(); ++k)
      ASSERT_EQ(other.served[k].done, alone.served[k].done) << k;
  }
}

// Where all want more than there is, each has its part of all NPUs.
TEST(Beside, NpusAreSharedByWeight) {
  const Library library = small_library();
  struct Case {
    std::vector<double> shares;
    int npus;
    std::vector<int> parts;
  };
  for (const Case& one : {Case{{1, 1}, 20, {10, 10}},
                          {{2, 1}, 30, {20, 10}},
                          {{2, 1}, 12, {8, 4}},
                          {{1, 3}, 32, {8, 24}},
                          {{1, 1, 2}, 40, {10, 10, 20}},
                          {{0.5, 1, 0.25}, 35, {10, 20, 5}}}) {
    std::vector<RequestTrace> traces(one.shares.size(), prompts(6000, {}, 1_ms));
    const Deployment deployment = scaled(100);
    ServiceOptions options;
    options.sample = 100_ms;
    std::vector<SharingService> services;
    for (std::size_t k = 0; k < one.shares.size(); ++k)
      services.push_back({"one", traces[k], deployment, library, options, one.shares[k]});
    const std::vector<ServiceResult> results = serve_together(services, one.npus);
    std::map<Time, int> sums;
    for (std::size_t k = 0; k < one.shares.size(); ++k) {
      EXPECT_GT(results[k].denied, 0);
      int most = 0;
      for (const Occupancy& o : results[k].occupancy) {
        sums[o.at] += o.prefill_instances + 2 * o.decode_instances;
        // As long as all of them want more.
        if (o.at < 25_s) most = std::max(most, o.prefill_instances + 2);
      }
      EXPECT_EQ(most, one.parts[k]) << k << " of " << one.shares.size() << ", " << one.npus;
    }
    for (const auto& [at, sum] : sums) EXPECT_LE(sum, one.npus) << at.us();
  }
}

// The first has the only free NPU until its prompts are answered; then the second one has it.
TEST(Beside, NpusGoToOthersWhenTheyAreNotNeeded) {
  const Library library = small_library();
  const RequestTrace first = prompts(80, {}, 1_ms), second = prompts(300, 1_ms, 1_ms);
  const Deployment deployment = scaled(5);
  ServiceOptions options;
  options.sample = 10_ms;
  std::vector<SharingService> services{{"first", first, deployment, library, options},
                                       {"second", second, deployment, library, options}};
  const std::vector<ServiceResult> results = serve_together(services, 2 * kOwn + 1);
  EXPECT_EQ(results[0].scaled_up, 1);
  EXPECT_EQ(results[1].scaled_up, 1);
  // Ten prompts a second, from 1.3 s on twenty: 80 prompts end at about 4.7 s, so that the look at 5 s ends
  // it.
  EXPECT_NEAR(results[0].end.us() * 1e-6, 4.7, 0.15);
  const auto had_two = std::ranges::find(results[1].occupancy, 2, &Occupancy::prefill_instances);
  ASSERT_NE(had_two, results[1].occupancy.end());
  EXPECT_NEAR(had_two->at.us() * 1e-6, 5.3, 0.02);
  EXPECT_GE(results[1].denied, 4);
}

// The first had three free ones, of which its last look ends one: the others are free as well.
TEST(Beside, AServiceThatHasAnsweredAllKeepsNone) {
  const Library library = small_library();
  const RequestTrace first = prompts(100, {}, 1_ms), second = prompts(400, 5500_ms, 1_ms);
  const Deployment deployment = scaled(5);
  ServiceOptions options;
  options.sample = 10_ms;
  std::vector<SharingService> services{{"first", first, deployment, library, options},
                                       {"second", second, deployment, library, options}};
  const std::vector<ServiceResult> results = serve_together(services, 2 * kOwn + 3);
  const auto most = [&](std::size_t k) {
    return std::ranges::max(results[k].occupancy, {}, &Occupancy::prefill_instances).prefill_instances;
  };
  EXPECT_LT(results[0].end, 5_s);
  EXPECT_EQ(most(0), 4);
  EXPECT_EQ(most(1), 4);
}

TEST(Beside, BeyondItsPartAServiceTakesWhatNobodyElseIsDueTo) {
  NpuBudget budget(10, {{4, 1}, {4, 1}});
  EXPECT_EQ(budget.free(), 2);
  EXPECT_FALSE(budget.acquire(0, false, 4)) << "there are two";
  EXPECT_TRUE(budget.acquire(1, true, 1)) << "the fifth of five";
  // The other one wants an instance of four, which is more than it is due to.
  EXPECT_TRUE(budget.acquire(1, true, 1));
  EXPECT_EQ(budget.free(), 0);
  budget.release(1, 1);
  EXPECT_TRUE(budget.acquire(0, true, 1));
  budget.release(0, 1);
  // It may want one more, and is due to it.
  EXPECT_FALSE(budget.acquire(1, true, 1));
  budget.withdraw(0, true);
  EXPECT_TRUE(budget.acquire(1, true, 1));
  EXPECT_EQ(budget.denied(0), 1);
  EXPECT_EQ(budget.denied(1), 1);
}

TEST(Beside, RefusesDeploymentsThatHaveMoreTogether) {
  const Library library = small_library();
  const RequestTrace trace = prompts(1, {}, {});
  const Deployment deployment = scaled(5);
  std::vector<SharingService> services{{"one", trace, deployment, library, {}},
                                       {"other", trace, deployment, library, {}}};
  EXPECT_EQ(serve_together(services, 2 * kOwn).size(), 2u);
  try {
    serve_together(services, 2 * kOwn - 1);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("have 6 NPUs together; allowed: at most 5"));
  }
  // What one of them cannot serve is said of it.
  RequestTrace large = trace;
  large.requests[0].prompt = 1'000'000;
  large.requests[0].output = 1'000'000;
  services.push_back({"third", large, deployment, library, {}});
  try {
    serve_together(services, 100);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), ::testing::StartsWith("third: request 0: "));
  }
}

}  // namespace
}  // namespace cm384::service::beside_test
