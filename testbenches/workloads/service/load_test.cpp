// Loads as benchmarks make them, against the moments and laws that they have.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <tuple>

#include "base/text/error.h"
#include "testbenches/workloads/service/file_of.h"
#include "testbenches/workloads/service/small_service.h"
#include "workloads/service/drawn_requests.h"
#include "workloads/service/simulation.h"

namespace cm384::service::load_test {
namespace {

struct Moments {
  double mean = 0, squared_variation = 0;
};
Moments moments_of(const std::vector<double>& values) {
  const double n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return {mean, squares / n / (mean * mean)};
}

std::vector<double> gaps(const char* text, int count = 400'000) {
  const GapDistribution distribution(text);
  traces::Random random(3);
  std::vector<double> drawn;
  for (int k = 0; k < count; ++k) drawn.push_back(distribution.draw(random));
  return drawn;
}

double share_below(const std::vector<double>& values, double limit) {
  return static_cast<double>(std::ranges::count_if(values, [&](double value) { return value < limit; })) /
         static_cast<double>(values.size());
}

TEST(Gaps, HaveTheMomentsOfTheirDistributions) {
  for (const double shape : {0.25, 0.5, 1.0, 2.0, 9.0}) {
    const Moments gamma = moments_of(gaps(fmt::format("gamma:{}", shape).c_str()));
    EXPECT_NEAR(gamma.mean, 1, 0.015) << shape;
    EXPECT_NEAR(gamma.squared_variation * shape, 1, 0.04) << shape;
    if (shape < 0.5) continue;  // heavy tails: a mean of squares says little
    const Moments weibull = moments_of(gaps(fmt::format("weibull:{}", shape).c_str()));
    const double once = std::tgamma(1 + 1 / shape), twice = std::tgamma(1 + 2 / shape);
    EXPECT_NEAR(weibull.mean, 1, 0.015) << shape;
    EXPECT_NEAR(weibull.squared_variation / (twice / (once * once) - 1), 1, 0.06) << shape;
    EXPECT_NEAR(share_below(gaps(fmt::format("weibull:{}", shape).c_str()), 1 / once), 1 - std::exp(-1),
                0.004);
  }
  // Half of a chi-squared variable of one degree of freedom is below 0.4549.
  EXPECT_NEAR(share_below(gaps("gamma:0.5"), 0.454936), 0.5, 0.004);
}

TEST(Gaps, RefuseWhatIsNone) {
  for (const char* text :
       {"", "poisson", "gamma", "gamma:0", "gamma:0.04", "weibull:101", "gamma:1:2", "exponential:1"})
    EXPECT_THROW(GapDistribution{text}, InputError) << text;
  for (const char* text : {"", "1", "0:0", "0:0:0", "-1:1", "1:-2:3", "1:2000000", "a:b", "1::2"})
    EXPECT_THROW(Ramp{text}, InputError) << text;
}

TEST(Ramps, HaveTheirRateAtEachTime) {
  for (const auto& [ramp, from, to] :
       {std::tuple{"0:2", 0.0, 2.0}, {"2:0", 2.0, 0.0}, {"0.5:3", 0.5, 3.0}, {"3:3", 3.0, 3.0}}) {
    DrawnRequests drawn;
    drawn.rate = 100;
    drawn.duration = 1000_s;
    drawn.ramp = ramp;
    std::array<double, 10> counts{};
    for (const Request& request : draw_requests(drawn).requests)
      ++counts[std::min<std::size_t>(9, static_cast<std::size_t>(request.arrival.ps / Time{100_s}.ps))];
    for (int k = 0; k < 10; ++k) {
      const double expected = 10'000 * (from + (to - from) * (k + 0.5) / 10);
      EXPECT_NEAR(counts[static_cast<std::size_t>(k)], expected, 4 * std::sqrt(expected) + 1)
          << ramp << " " << k;
    }
  }
}

// Through every share at its time, evenly in between; a piece without a rate has no requests.
TEST(Ramps, GoThroughTheirShares) {
  const std::vector<double> shares{0.2, 2, 0.5, 0, 0, 1};
  DrawnRequests drawn;
  drawn.rate = 200;
  drawn.duration = 1000_s;
  drawn.ramp = "0.2:2:0.5:0:0:1";
  std::array<double, 20> counts{};
  for (const Request& request : draw_requests(drawn).requests) {
    ASSERT_LE(request.arrival, 1000_s);
    ++counts[static_cast<std::size_t>(std::min<std::int64_t>(19, request.arrival.ps / Time{50_s}.ps))];
  }
  for (int k = 0; k < 20; ++k) {
    const auto piece = static_cast<std::size_t>(k / 4);
    const double at = (k % 4 + 0.5) / 4,
                 expected = 10'000 * (shares[piece] * (1 - at) + shares[piece + 1] * at);
    EXPECT_NEAR(counts[static_cast<std::size_t>(k)], expected, 4 * std::sqrt(expected) + 1) << k;
  }
  EXPECT_EQ(counts[13], 0);
}

TEST(Lengths, AreThoseOfRecords) {
  DrawnRequests drawn;
  drawn.rate = 100;
  drawn.lengths = {{10, 1}, {20, 0}, {30, 3}};
  drawn.duration = 300_s;
  std::array<int, 4> counts{};
  for (const Request& request : draw_requests(drawn).requests) {
    const auto kind = static_cast<std::size_t>(request.prompt / 10);
    ASSERT_EQ(request.output, kind == 1 ? 1 : kind == 2 ? 0 : 3);
    ++counts[kind];
  }
  for (int kind = 1; kind <= 3; ++kind) EXPECT_NEAR(counts[static_cast<std::size_t>(kind)], 10'000, 400);
}

// The interactive response time law: users are the rate of their requests times response and thinking.
TEST(ClosedLoops, KeepTheirUsersBusy) {
  for (const Time think : {0_s, 500_ms}) {
    DrawnRequests drawn;
    drawn.concurrency = 12;
    drawn.count = 6000;
    drawn.think = think;
    drawn.prompt = "uniform:50:400";
    drawn.output = "uniform:1:40";
    const RequestTrace trace = draw_requests(drawn);
    ASSERT_EQ(trace.requests.size(), 6000u);
    const ServiceResult result = serve(trace, small_deployment(), small_library(), {});
    std::vector<std::pair<Time, int>> changes;
    std::array<Time, 12> last{};
    for (std::size_t k = 0; k < 6000; ++k) {
      changes.emplace_back(result.served[k].arrival, 1);
      changes.emplace_back(result.served[k].done, -1);
      last[k % 12] = result.served[k].done;
    }
    // Who ends makes room before the next one comes.
    std::ranges::sort(changes);
    int now = 0, most = 0;
    for (const auto& [at, change] : changes) most = std::max(most, now += change);
    EXPECT_EQ(most, 12);
    // Until the first user has all his answers.
    const Time until = std::ranges::min(last);
    double response_s = 0, ended = 0;
    for (const Served& served : result.served) {
      if (served.done > until) continue;
      response_s += served.e2e_ms() * 1e-3;
      ++ended;
    }
    const double rate = ended / (until.us() * 1e-6);
    EXPECT_NEAR(rate * (response_s / ended + think.us() * 1e-6), 12, 0.15) << think.us();
  }
}

// Blocks of 100 tokens; a turn's prompt is all before it and 150 tokens.
TEST(Sessions, FindTheirAnswersInTheCache) {
  DrawnRequests drawn;
  drawn.rate = 3;
  drawn.duration = 0_s;
  drawn.prompt = "fixed:150";
  drawn.output = "fixed:80";
  drawn.turns = 3;
  drawn.block_tokens = 100;
  const RequestTrace trace = draw_requests(drawn);
  ASSERT_EQ(trace.requests.size(), 3u);
  EXPECT_EQ(trace.requests[1].prompt, 150 + 80 + 150);
  EXPECT_EQ(trace.requests[2].prompt, 380 + 80 + 150);
  EXPECT_EQ(trace.requests[2].follows, 1);
  Deployment deployment = small_deployment();
  deployment.cache.on = true;
  deployment.cache.dram = Bytes{10'000'000};
  const auto cached = [&](int turn) {
    return serve(trace, deployment, small_library(), {}).served[static_cast<std::size_t>(turn)].cached();
  };
  // 229 tokens are in the cache after the first turn, 459 after the second.
  EXPECT_EQ(cached(0), 0);
  EXPECT_EQ(cached(1), 200);
  EXPECT_EQ(cached(2), 400);
  deployment.cache.answers = false;
  EXPECT_EQ(cached(1), 100);
  EXPECT_EQ(cached(2), 300);
}

TEST(Answers, MayHaveNoToken) {
  RequestTrace trace;
  trace.requests.resize(1);
  trace.requests[0].prompt = 500;
  const ServiceResult result = serve(trace, small_deployment(), small_library(), {});
  EXPECT_EQ(result.served[0].done, 50_ms);
  EXPECT_EQ(result.output_tokens, 0);
  EXPECT_EQ(result.steps, 0);
}

// What is written gives the same requests, and the same service to the last bit.
TEST(Export, GivesTheSameRequests) {
  for (const int users : {0, 5}) {
    DrawnRequests drawn;
    drawn.rate = 20;
    drawn.duration = 20_s;
    drawn.prompt = "uniform:50:300";
    drawn.output = "uniform:0:60";
    drawn.reuse = 0.3;
    drawn.turns = 2;
    drawn.think = 100_ms;
    drawn.block_tokens = 50;
    drawn.gaps = "gamma:0.3";
    drawn.concurrency = users;
    drawn.count = 60;
    RequestTrace trace = draw_requests(drawn);
    for (Request& request : trace.requests) request.priority = static_cast<std::uint8_t>(request.session % 4);
    const FileOf file(requests_text(trace));
    const RequestTrace again = read_requests(file.path());
    ASSERT_EQ(again.requests.size(), trace.requests.size());
    EXPECT_EQ(again.block_tokens, trace.block_tokens);
    for (std::size_t k = 0; k < trace.requests.size(); ++k) {
      const Request &one = trace.requests[k], &two = again.requests[k];
      ASSERT_EQ(std::tie(one.arrival, one.prompt, one.output, one.blocks, one.answer_blocks, one.follows,
                         one.session, one.priority),
                std::tie(two.arrival, two.prompt, two.output, two.blocks, two.answer_blocks, two.follows,
                         two.session, two.priority));
      ASSERT_TRUE(std::ranges::equal(trace.blocks_with_answer(one), again.blocks_with_answer(two)));
    }
    Deployment deployment = small_deployment();
    deployment.cache.on = true;
    deployment.cache.dram = Bytes{10'000'000};
    const ServiceResult served = serve(trace, deployment, small_library(), {}),
                        replayed = serve(again, deployment, small_library(), {});
    for (std::size_t k = 0; k < trace.requests.size(); ++k)
      ASSERT_EQ(served.served[k].done, replayed.served[k].done);
    EXPECT_GT(served.cache.dram_hits, 100);
  }
}

}  // namespace
}  // namespace cm384::service::load_test
