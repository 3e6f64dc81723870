// Drawn requests against what their distributions say, and recorded ones at other rates.
#include "workloads/service/drawn_requests.h"

#include <gmock/gmock.h>

#include <cmath>
#include <set>

#include "base/text/error.h"

namespace cm384::service::drawn_requests_test {
namespace {

double mean_of(const RequestTrace& trace, std::int32_t Request::*tokens) {
  double sum = 0;
  for (const Request& request : trace.requests) sum += request.*tokens;
  return sum / static_cast<double>(trace.requests.size());
}

TEST(DrawnRequests, ComeAsAPoissonStream) {
  DrawnRequests drawn;
  drawn.rate = 50;
  drawn.duration = 1000_s;
  const RequestTrace trace = draw_requests(drawn);
  // 50,000 expected, standard deviation 224.
  EXPECT_NEAR(static_cast<double>(trace.requests.size()), 50'000, 900);
  double sum = 0, squares = 0;
  for (std::size_t k = 1; k < trace.requests.size(); ++k) {
    const double gap = (trace.requests[k].arrival - trace.requests[k - 1].arrival).us() * 1e-6;
    ASSERT_GE(gap, 0);
    sum += gap;
    squares += gap * gap;
  }
  const double n = static_cast<double>(trace.requests.size() - 1), mean = sum / n;
  EXPECT_NEAR(squares / n / (mean * mean), 2, 0.06);  // of exponential gaps
}

TEST(DrawnRequests, HaveLengthsOfTheirDistributions) {
  DrawnRequests drawn;
  drawn.rate = 100;
  drawn.duration = 400_s;
  drawn.prompt = "uniform:100:300";
  drawn.output = "lognormal:200:0.5";
  const RequestTrace trace = draw_requests(drawn);
  EXPECT_NEAR(mean_of(trace, &Request::prompt), 200, 1.5);
  EXPECT_NEAR(mean_of(trace, &Request::output), 200 * std::exp(0.125), 3);
  std::int32_t low = 1000, high = 0;
  for (const Request& request : trace.requests) {
    low = std::min(low, request.prompt);
    high = std::max(high, request.prompt);
  }
  EXPECT_EQ(low, 100);
  EXPECT_EQ(high, 300);
  EXPECT_TRUE(trace.keys.empty());
}

TEST(DrawnRequests, AreTheSameForTheSameSeed) {
  DrawnRequests drawn;
  drawn.duration = 100_s;
  drawn.prompt = "lognormal:1000:1";
  const RequestTrace one = draw_requests(drawn), two = draw_requests(drawn);
  drawn.seed = 2;
  const RequestTrace other = draw_requests(drawn);
  ASSERT_EQ(one.requests.size(), two.requests.size());
  EXPECT_EQ(one.requests[5].arrival, two.requests[5].arrival);
  EXPECT_EQ(one.requests[5].prompt, two.requests[5].prompt);
  EXPECT_NE(one.requests[5].arrival, other.requests[5].arrival);
}

TEST(DrawnRequests, ShareTheBlocksThatAreAskedFor) {
  DrawnRequests drawn;
  drawn.duration = 30_s;
  drawn.prompt = "fixed:4200";
  drawn.reuse = 0.5;
  const RequestTrace trace = draw_requests(drawn);
  ASSERT_GT(trace.requests.size(), 5u);
  std::set<std::uint64_t> keys;
  for (const Request& request : trace.requests) {
    const auto blocks = trace.blocks_of(request);
    ASSERT_EQ(blocks.size(), 8u);
    for (std::uint64_t k = 0; k < 4; ++k) EXPECT_EQ(blocks[k], k);
    keys.insert(blocks.begin(), blocks.end());
  }
  EXPECT_EQ(keys.size(), 4 + 4 * trace.requests.size());
}

TEST(DrawnRequests, RefuseDistributionsThatAreNone) {
  for (const char* text :
       {"", "4096", "fixed:0", "fixed:1:2", "uniform:9:8", "uniform:1", "lognormal:5:-1", "normal:1:2"})
    EXPECT_THROW(LengthDistribution{text}, InputError) << text;
}

RequestTrace three() {
  RequestTrace trace;
  trace.block_tokens = 512;
  trace.keys = {5, 6};
  trace.requests.resize(3);
  trace.requests[1].arrival = 1_s;
  trace.requests[2].arrival = 4_s;
  trace.requests[2].blocks = 2;
  return trace;
}

TEST(RequestsAtARate, KeepTheirShape) {
  EXPECT_DOUBLE_EQ(rate_of(three()), 0.5);
  const RequestTrace fast = at_rate(three(), 2, {});
  ASSERT_EQ(fast.requests.size(), 3u);
  EXPECT_EQ(fast.requests[1].arrival, 250_ms);
  EXPECT_EQ(fast.requests[2].arrival, 1_s);
  EXPECT_DOUBLE_EQ(rate_of(fast), 2);
}

TEST(RequestsAtARate, AreRepeatedWithBlocksOfTheirOwn) {
  const RequestTrace long_one = at_rate(three(), 0, 11_s);
  // A pass takes 4 s and a mean distance of 2 s.
  ASSERT_EQ(long_one.requests.size(), 6u);
  EXPECT_EQ(long_one.requests[3].arrival, 6_s);
  EXPECT_EQ(long_one.requests[5].arrival, 10_s);
  const auto again = long_one.blocks_of(long_one.requests[5]);
  ASSERT_EQ(again.size(), 2u);
  EXPECT_NE(again[0], 5u);
  EXPECT_NE(again[0], again[1]);
  EXPECT_EQ(at_rate(three(), 0, 3_s).requests.size(), 2u);
  RequestTrace one = three();
  one.requests.resize(1);
  EXPECT_THROW(at_rate(one, 2, {}), InputError);
}

// A trace is made as a whole, in memory: what would fill it is refused before, not when it has.
TEST(DrawnRequests, AreRefusedWhereTheyWouldFillTheMemory) {
  DrawnRequests wanted;
  wanted.rate = 1000;
  wanted.duration = 100'000_s;
  wanted.prompt = "fixed:100";
  wanted.output = "fixed:10";
  EXPECT_THROW(draw_requests(wanted), InputError);
  RequestTrace often = three();
  EXPECT_THROW(at_rate(often, 1000, 100'000_s), InputError);
}

}  // namespace
}  // namespace cm384::service::drawn_requests_test
