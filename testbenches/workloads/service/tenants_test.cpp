// Tenants that share a service: decode fair to them by weights, and quotas of what each may ask for.
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

#include "base/text/error.h"
#include "testbenches/workloads/service/small_service.h"
#include "workloads/service/context_queue.h"
#include "workloads/service/simulation.h"
#include "workloads/service/tenant_quota.h"

namespace cm384::service::tenants_test {
namespace {

using ::testing::HasSubstr;

RequestTrace flood(std::mt19937& random, int count, int most_out) {
  RequestTrace trace;
  for (int k = 0; k < count; ++k) {
    Request& request = trace.requests.emplace_back();
    request.session = static_cast<std::uint32_t>(k % 2);
    request.prompt = 1;
    request.output = 2 + static_cast<int>(random() % static_cast<unsigned>(most_out));
  }
  return trace;
}

// Answers' tokens of each tenant that came to decode dies while both had contexts waiting.
std::array<double, 2> given_while_both_wait(const RequestTrace& trace, const ServiceResult& result) {
  std::vector<std::size_t> order(trace.requests.size());
  for (std::size_t k = 0; k < order.size(); ++k) order[k] = k;
  std::ranges::sort(order, {}, [&](std::size_t k) { return result.served[k].transfer_start; });
  std::array<std::size_t, 2> left{}, all{};
  for (const Request& request : trace.requests) ++all[request.session];
  left = all;
  std::array<double, 2> given{};
  for (const std::size_t k : order) {
    const Request& request = trace.requests[k];
    if (--left[request.session] == 0) break;
    given[request.session] += request.output - 1;
  }
  return given;
}

// Two tenants that want far more than decode gives, with weights 2 to 1: tokens are 2 to 1.
TEST(FairDecode, GivesTokensByWeight) {
  std::mt19937 random(17);
  const RequestTrace trace = flood(random, 6000, 60);
  struct Case {
    const char *order, *shares;
    double ratio;
  };
  for (const Case& one :
       {Case{"fair", "2:1", 2}, {"fair", "", 1}, {"fair", "1:3", 1.0 / 3}, {"fcfs", "", 1}}) {
    Deployment deployment = small_deployment();
    deployment.decode.batch = 4;
    deployment.decode.order = one.order;
    deployment.prefill.shares = one.shares;
    ServiceOptions options;
    options.tenants = 2;
    const ServiceResult result = serve(trace, deployment, small_library(), options);
    const auto [first, second] = given_while_both_wait(trace, result);
    EXPECT_NEAR(first / second, one.ratio, 0.02 * one.ratio) << one.order << " " << one.shares;
    // The same by the time at which answers end, long before either has none waiting.
    std::array<double, 2> ended{};
    for (std::size_t k = 0; k < trace.requests.size(); ++k)
      if (result.served[k].done < Time{result.end.ps / 2}) ended[k % 2] += trace.requests[k].output;
    EXPECT_NEAR(ended[0] / ended[1], one.ratio, 0.03 * one.ratio) << one.order << " " << one.shares;
  }
}

// In any interval in which both have contexts waiting, what they are given over their shares differs by no
// more than a longest answer of each over its share (theorem 1 of start-time fair queueing).
TEST(FairDecode, KeepsTheBoundOfItsTheorem) {
  for (const auto& [first, second] : {std::pair{1.0, 1.0}, {3.0, 1.0}, {0.5, 2.0}}) {
    std::mt19937 random(8);
    ContextQueue queue(true, {first, second});
    std::vector<std::pair<int, int>> asked;  // tenant, tokens
    std::array<int, 2> waiting{};
    std::array<double, 2> given{};
    double low = 0, high = 0;
    int busy = 0;
    for (int k = 0; k < 20'000; ++k) {
      const int tenant = random() % 3 == 0 ? 0 : 1;
      asked.emplace_back(tenant, 1 + static_cast<int>(random() % (tenant == 0 ? 900 : 200)));
      queue.push(static_cast<std::uint32_t>(k), static_cast<std::uint32_t>(tenant), asked.back().second);
      ++waiting[static_cast<std::size_t>(tenant)];
      if (random() % 50 == 0)
        for (int more = 0; more < 60 && !queue.empty(); ++more) {
          const auto [of, tokens] = asked[queue.front()];
          queue.pop();
          const bool both = waiting[0] > 0 && waiting[1] > 0;
          --waiting[static_cast<std::size_t>(of)];
          if (!both) {
            given = {}, low = high = 0;
            continue;
          }
          ++busy;
          given[static_cast<std::size_t>(of)] += tokens / (of == 0 ? first : second);
          low = std::min(low, given[0] - given[1]);
          high = std::max(high, given[0] - given[1]);
          ASSERT_LE(high - low, 900 / first + 200 / second) << k;
          if (waiting[static_cast<std::size_t>(of)] == 0) given = {}, low = high = 0;
        }
    }
    EXPECT_GT(busy, 2000);
  }
}

TEST(FairDecode, OwesNothingToWhoComesLate) {
  ContextQueue queue(true);
  for (std::uint32_t k = 0; k < 100; ++k) queue.push(k, 0, 10);
  for (int k = 0; k < 50; ++k) queue.pop();
  for (std::uint32_t k = 100; k < 200; ++k) queue.push(k, 1, 10);
  int second = 0;
  for (int k = 0; k < 40; ++k, queue.pop()) second += queue.front() >= 100 ? 1 : 0;
  EXPECT_NEAR(second, 20, 1);
  // What a fault takes away is not charged, and the order of each stays.
  queue.erase_if([](std::uint32_t k) { return k >= 100; });
  EXPECT_EQ(queue.size(), 30u);
  std::vector<std::uint32_t> left;
  queue.for_each([&](std::uint32_t k) { left.push_back(k); });
  EXPECT_TRUE(std::ranges::is_sorted(left));
  while (!queue.empty()) queue.pop();
  queue.push(7, 1, 10);
  EXPECT_EQ(queue.front(), 7u);
}

// A bucket that holds a period's tokens and fills evenly; who finds too few is refused and takes none.
TEST(Quotas, AreBucketsOfTokens) {
  std::mt19937 random(23);
  int refused = 0, admitted = 0;
  for (int trial = 0; trial < 60; ++trial) {
    Deployment deployment = small_deployment();
    deployment.quota.tokens_s = 100 + static_cast<std::int64_t>(random() % 5000);
    deployment.quota.period = Time{1'000'000'000 * static_cast<std::int64_t>(1 + random() % 3000)};
    const bool weighted = trial % 2 == 0;
    if (weighted) deployment.prefill.shares = "2:0.5";
    TenantQuota quota(deployment);
    std::array<long double, 2> level{}, since{}, rate{};
    for (std::size_t t = 0; t < 2; ++t) {
      rate[t] = static_cast<long double>(deployment.quota.tokens_s) * (!weighted ? 1 : t == 0 ? 2 : 0.5L);
      level[t] = rate[t] * static_cast<long double>(deployment.quota.period.ps) * 1e-12L;
    }
    const std::array<long double, 2> full = level;
    std::int64_t now = 0;
    for (int k = 0; k < 500; ++k) {
      now += 1 + static_cast<std::int64_t>((std::uint64_t{random()} << 8) % 300'000'000'000u);
      const auto t = static_cast<std::size_t>(random() % 2);
      const auto tokens = 1 + static_cast<std::int64_t>(random() % 900);
      level[t] = std::min(full[t], level[t] + rate[t] * (static_cast<long double>(now) - since[t]) * 1e-12L);
      since[t] = static_cast<long double>(now);
      const bool enough = level[t] >= static_cast<long double>(tokens);
      if (enough) level[t] -= static_cast<long double>(tokens);
      ASSERT_EQ(quota.admit(static_cast<std::uint32_t>(t), tokens, {now}), enough) << trial << " " << k;
      (enough ? admitted : refused) += 1;
    }
  }
  EXPECT_GT(refused, 3000);
  EXPECT_GT(admitted, 3000);
}

// Seven requests of one tenant and two of another come at once, of whom each may have three.
TEST(Quotas, BoundTheRequestsOfATenant) {
  RequestTrace trace;
  for (std::uint32_t k = 0; k < 10; ++k) {
    Request& request = trace.requests.emplace_back();
    request.session = k < 7 ? 0 : 1;
    request.prompt = 100;
    request.output = 5;
    request.arrival = {k};
  }
  trace.requests.back().session = 0;  // when the first ones have ended
  trace.requests.back().arrival = 10_s;
  Deployment deployment = small_deployment();
  deployment.quota.requests = 3;
  ServiceOptions options;
  options.tenants = 2;
  const ServiceResult result = serve(trace, deployment, small_library(), options);
  std::vector<bool> refused;
  for (const Served& served : result.served) refused.push_back(served.state == RequestState::refused);
  EXPECT_THAT(refused,
              ::testing::ElementsAre(false, false, false, true, true, true, true, false, false, false));
  EXPECT_EQ(result.refused, 4);
  // Tokens bind too: 105 of each, of 250 that the bucket holds.
  deployment.quota = {0, 250, 1_s};
  EXPECT_EQ(serve(trace, deployment, small_library(), options).refused, 5);
}

TEST(Quotas, RefuseWhatHasNoEffect) {
  const auto refusal = [](const std::vector<std::string>& changes) -> std::string {
    try {
      load_deployment(std::string(kPublishedDeployment), changes);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(refusal({"quota.period=1s"}), HasSubstr("quota.period: has no effect"));
  EXPECT_THAT(refusal({"quota.requests=5", "quota.period=1s"}), HasSubstr("quota.period: has no effect"));
  EXPECT_EQ(refusal({"quota.tokens_s=5", "quota.period=1s", "prefill.shares=2:1"}), "");
  EXPECT_THAT(refusal({"prefill.shares=2:1"}), HasSubstr("prefill.shares: has no effect"));
  EXPECT_EQ(refusal({"prefill.shares=2:1", "decode.order=fair"}), "");
  EXPECT_THAT(refusal({"prefill.pool=decode", "decode.order=fair"}),
              HasSubstr("decode.order: has no effect"));
}

}  // namespace
}  // namespace cm384::service::tenants_test
