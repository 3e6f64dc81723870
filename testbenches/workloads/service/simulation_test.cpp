// A service against closed forms: one request alone, Little's law, conservation, queues M/D/c.
#include "workloads/service/simulation.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <map>
#include <random>

#include "base/text/error.h"
#include "testbenches/workloads/service/small_service.h"
#include "workloads/service/drawn_requests.h"

namespace cm384::service::simulation_test {
namespace {

using ::testing::HasSubstr;

RequestTrace drawn(double rate, Time duration, const char* prompt, const char* output, double reuse = 0) {
  DrawnRequests wanted;
  wanted.rate = rate;
  wanted.duration = duration;
  wanted.prompt = prompt;
  wanted.output = output;
  wanted.reuse = reuse;
  wanted.block_tokens = 128;
  return draw_requests(wanted);
}

RequestTrace one(std::int32_t prompt, std::int32_t output) {
  RequestTrace trace;
  trace.requests.resize(1);
  trace.requests[0].prompt = prompt;
  trace.requests[0].output = output;
  return trace;
}

// Four NPUs of one die are the four dies of two of two: a step of half of the batch of an NPU takes as long,
// and tokens of a graph are spread over all the slots of a die.
TEST(Service, CountsTheDiesThatAnNpuOfTheMachineHas) {
  Deployment pairs = small_deployment(), singles = small_deployment();
  singles.settle(1);
  singles.prefill.npus = 2;
  singles.decode.npus = 4;
  singles.decode.batch = 16;
  singles.decode.graph_step = 4;
  EXPECT_EQ(pairs.decode_dies(), singles.decode_dies());
  EXPECT_EQ(pairs.prefill_dies(), singles.prefill_dies());
  EXPECT_EQ(pairs.decode.slots(), singles.decode.slots());
  EXPECT_EQ(singles.npus(), 2 * pairs.npus());
  Library halves("singles");
  const Library library = small_library();
  for (DecodePoint point : library.decode()) {
    point.batch /= 2;
    halves.add(point);
  }
  for (const AttentionPoint& point : library.attention()) halves.add(point);
  const RequestTrace trace = drawn(150, 4_s, "uniform:64:1000", "uniform:4:60");
  const ServiceResult two = serve(trace, pairs, library, {}), one_die = serve(trace, singles, halves, {});
  ASSERT_EQ(two.served.size(), one_die.served.size());
  for (std::size_t k = 0; k < two.served.size(); ++k) {
    EXPECT_EQ(two.served[k].done, one_die.served[k].done);
    EXPECT_EQ(two.served[k].die, one_die.served[k].die);
  }
}

TEST(Service, TakesOneRequestAsLongAsItsPartsTake) {
  Deployment deployment = small_deployment();
  deployment.decode.acceptance = 1;
  ServiceOptions options;
  options.rdma = {1'000'000'000};
  options.rdma_latency = 3_us;
  // 500 tokens: half a batch of 100 ms; 0.5 MB of context at 1 GB/s; two tokens a step.
  const ServiceResult result = serve(one(500, 9), deployment, small_library(), options);
  const Served& served = result.served[0];
  EXPECT_EQ(served.ttft_ms(), 50);
  EXPECT_EQ(served.transferred - served.first_token, 503_us);
  EXPECT_EQ(served.steps, 4);
  // A graph of eight requests per NPU whose one request has 500 tokens and more: 128 each of the four of a
  // die.
  const DecodeSteps steps(small_library(), 4, 1);
  // Tokens grow: 500 of four are a block of 128, 512 and more are two.
  const double first = steps.at(8, 128).ms;
  EXPECT_NEAR(served.e2e_ms(), 50.503 + 4 * first, 1e-6);
  EXPECT_NEAR(served.tpot_ms(9), (0.503 + 4 * first) / 8, 1e-6);
  EXPECT_EQ(result.steps, 4);
  ASSERT_EQ(result.gaps.size(), 4u);
  EXPECT_NEAR(result.gaps[0].ms, 0.503 + first, 1e-6);
  EXPECT_NEAR(result.gaps[1].ms, first, 1e-6);
  EXPECT_NEAR(served.longest_gap_ms(), 0.503 + first, 1e-6);
  EXPECT_EQ(result.output_tokens, 9);
  EXPECT_DOUBLE_EQ(result.rdma_busy_s, 0.0005);
}

// Forty answers at once take long steps; one that comes when they are done has its own short ones alone.
TEST(Service, ALateAnswerHasItsOwnLongestWait) {
  Deployment deployment = small_deployment();
  deployment.decode.acceptance = 1;
  ServiceOptions options;
  options.rdma = {1'000'000'000};
  options.rdma_latency = 3_us;
  RequestTrace trace = one(500, 200);
  trace.requests.resize(41, trace.requests[0]);
  trace.requests.back().output = 9;
  trace.requests.back().arrival = 1000_s;
  const ServiceResult result = serve(trace, deployment, small_library(), options);
  const double late = result.served.back().longest_gap_ms();
  EXPECT_NEAR(late, 0.503 + DecodeSteps(small_library(), 4, 1).at(8, 128).ms, 1e-6);
  std::vector<double> waits;
  for (const TokenGap& gap : result.gaps)
    if (gap.requests > 1) waits.push_back(gap.ms);
  ASSERT_FALSE(waits.empty());
  EXPECT_GT(std::ranges::max(waits), late) << "what others waited is not its wait";
}

// A step has its token and as many of three predicted ones as are right in turn.
TEST(Service, EachPredictedTokenHasItsChance) {
  const Library one_draft = small_library();
  Library library("machine");
  for (const DecodePoint& point : one_draft.decode()) {
    DecodePoint three = point;
    three.mtp = 3;
    library.add(three);
  }
  for (const AttentionPoint& point : one_draft.attention()) {
    AttentionPoint three = point;
    three.mtp = 3;
    library.add(three);
  }
  for (const PrefillPoint& point : one_draft.prefill()) library.add(point);
  const auto steps = [&](hw::Reals chances, std::int32_t tokens) {
    Deployment deployment = small_deployment();
    deployment.decode.mtp = 3;
    deployment.decode.draft_acceptance = std::move(chances);
    // The first token is the prompt's.
    return serve(one(500, tokens + 1), deployment, library, {}).served[0].steps;
  };
  EXPECT_EQ(steps({1, 1, 1}, 40), 10);
  EXPECT_EQ(steps({1, 0, 1}, 40), 20) << "what stands behind a wrong one does not count";
  EXPECT_EQ(steps({0, 1, 1}, 40), 40);
  EXPECT_EQ(steps({1, 1, 0}, 39), 13);
  // 1 + 0.8 + 0.8 x 0.5 + 0.8 x 0.5 x 0.5 tokens a step.
  EXPECT_NEAR(steps({0.8, 0.5, 0.5}, 4000), 4000 / 2.4, 40);
}

// Two equal prompts of five blocks, where each tier in turn is the only one that has room.
TEST(Service, ReadsWhatIsCachedAtTheRateOfItsTier) {
  RequestTrace trace = one(500, 1);
  trace.block_tokens = 100;
  trace.keys = {1, 2, 3, 4, 5};
  trace.requests[0].blocks = 5;
  trace.requests.push_back(trace.requests[0]);
  trace.requests[1].arrival = 1_s;
  Deployment deployment = small_deployment();
  deployment.cache.on = true;
  deployment.cache.dram_rate = Bandwidth{10'000'000};
  deployment.cache.evs_rate = Bandwidth{4'000'000};
  deployment.cache.obs_rate = Bandwidth{1'000'000};
  deployment.cache.latency = 2_ms;
  deployment.cache.obs_latency = 30_ms;
  constexpr Bytes kRoom{500'000};
  const auto ttft = [&] { return serve(trace, deployment, small_library(), {}).served[1].ttft_ms(); };
  EXPECT_DOUBLE_EQ(ttft(), 50);
  deployment.cache.dram = kRoom;
  EXPECT_NEAR(ttft(), 0.1 + 49.9 + 2, 1e-6);
  deployment.cache.dram = {};
  deployment.cache.evs = kRoom;
  EXPECT_NEAR(ttft(), 0.1 + 499 / 4.0 + 2, 1e-6);
  deployment.cache.evs = {};
  deployment.cache.obs = kRoom;
  EXPECT_NEAR(ttft(), 0.1 + 499 + 2 + 30, 1e-6);
}

TEST(Service, EndsWithTheFirstTokenWhereThereIsNoOther) {
  const ServiceResult result = serve(one(500, 1), small_deployment(), small_library(), {});
  EXPECT_EQ(result.served[0].e2e_ms(), 50);
  EXPECT_EQ(result.steps, 0);
}

TEST(Service, GivesAStepAsManyTokensAsAreAccepted) {
  ServiceOptions options;
  options.allow_extrapolation = true;
  const ServiceResult result = serve(one(100, 20'001), small_deployment(), small_library(), options);
  // 20,000 tokens of 1.7 a step, standard deviation 0.46 a step.
  EXPECT_NEAR(result.served[0].steps, 20'000 / 1.7, 4 * 0.46 * std::sqrt(20'000 / 1.7));
}

TEST(Service, KeepsLittlesLawAndEveryToken) {
  const RequestTrace trace = drawn(20, 60_s, "uniform:50:900", "uniform:1:120", 0.5);
  Deployment deployment = small_deployment();
  deployment.cache.on = true;
  deployment.cache.dram = Bytes{1'000'000'000};
  ServiceOptions options;
  options.sample = 1_s;
  const ServiceResult result = serve(trace, deployment, small_library(), options);
  double e2e_s = 0;
  std::int64_t prompts = 0, outputs = 0, cached = 0;
  for (std::size_t k = 0; k < trace.requests.size(); ++k) {
    const Served& s = result.served[k];
    const Request& r = trace.requests[k];
    e2e_s += s.e2e_ms() * 1e-3;
    prompts += r.prompt;
    outputs += r.output;
    cached += s.cached();
    EXPECT_EQ(s.arrival, r.arrival);
    EXPECT_LE(s.arrival, s.prefill_start);
    EXPECT_LT(s.prefill_start, s.first_token);
    EXPECT_LE(s.first_token, s.done);
    if (r.output > 1) {
      EXPECT_LT(s.first_token, s.transferred);
      EXPECT_LT(s.transferred, s.done);
    }
  }
  // Requests in the service on the average are the rate times the time in it.
  EXPECT_NEAR(result.request_seconds, e2e_s, e2e_s * 1e-9);
  // Gaps of an answer are one behind the other from its first token to its end, one per step.
  double answered_s = 0, gaps_s = 0;
  std::int64_t steps = 0, gaps = 0;
  for (const Served& s : result.served) {
    answered_s += (s.done - s.first_token).us() * 1e-6;
    steps += s.steps;
  }
  for (const TokenGap& gap : result.gaps) {
    gaps_s += gap.ms * 1e-3 * static_cast<double>(gap.requests);
    gaps += gap.requests;
  }
  EXPECT_NEAR(gaps_s, answered_s, answered_s * 1e-9);
  EXPECT_EQ(gaps, steps);
  EXPECT_EQ(result.prompt_tokens, prompts);
  EXPECT_EQ(result.output_tokens, outputs);
  EXPECT_EQ(result.computed_tokens + cached, prompts);
  EXPECT_GT(cached, prompts / 5);
  EXPECT_EQ(result.cache.written + result.cache.kept_once, result.cache.asked);
  EXPECT_LE(result.kv_peak, 1);
  ASSERT_GT(result.occupancy.size(), 50u);
  double decoding = 0;
  for (const Occupancy& o : result.occupancy) decoding += o.decoding;
  EXPECT_GT(decoding, 0);
}

// Mean waiting time of Poisson arrivals at `servers` that take `service` each: the number in the system after
// a service's time is what was beyond the servers plus what arrived in it (Crommelin 1932), solved by
// iteration.
double mean_wait_mdc(double rate, double service, int servers) {
  const double load = rate * service;
  constexpr int kMost = 400;
  std::vector<double> arrivals(kMost), now(kMost), next(kMost);
  arrivals[0] = std::exp(-load);
  for (int k = 1; k < kMost; ++k) arrivals[k] = arrivals[k - 1] * load / k;
  now[0] = 1;
  for (int turn = 0; turn < 4000; ++turn) {
    std::ranges::fill(next, 0);
    for (int n = 0; n < kMost; ++n) {
      if (now[n] < 1e-14) continue;
      const int left = std::max(0, n - servers);
      for (int k = 0; k + left < kMost && k < 60; ++k) next[left + k] += now[n] * arrivals[k];
    }
    std::swap(now, next);
  }
  double queue = 0;
  for (int n = servers; n < kMost; ++n) queue += (n - servers) * now[n];
  return queue / rate;
}

TEST(Service, QueuesPromptsAsMD1AndMDC) {
  // The formula of Pollaczek and Khinchine, where it holds.
  EXPECT_NEAR(mean_wait_mdc(8, 0.1, 1), 0.8 * 0.1 / (2 * (1 - 0.8)), 1e-6);
  for (const int servers : {1, 3}) {
    Deployment deployment = small_deployment();
    deployment.prefill.instances = servers;
    // Each prompt fills a batch of 100 ms.
    const double rate = 8.0 * servers;
    const RequestTrace trace = drawn(rate, 10'000_s, "fixed:1000", "fixed:1");
    const ServiceResult result = serve(trace, deployment, small_library(), {});
    double wait_s = 0;
    for (const Served& s : result.served) wait_s += s.queue_ms() * 1e-3;
    wait_s /= static_cast<double>(result.served.size());
    const double expected = mean_wait_mdc(rate, 0.1, servers);
    EXPECT_NEAR(wait_s, expected, expected * 0.04) << servers;
    EXPECT_NEAR(result.prefill_busy_s / servers / 10'000, 0.8, 0.01);
  }
}

TEST(Service, IsTheSameForTheSameSeed) {
  const RequestTrace trace = drawn(20, 20_s, "uniform:50:900", "uniform:1:120");
  const auto ends = [&](std::uint64_t seed) {
    std::vector<std::int64_t> all;
    ServiceOptions options;
    options.seed = seed;
    const ServiceResult result = serve(trace, small_deployment(), small_library(), options);
    for (const Served& s : result.served) all.push_back(s.done.ps);
    return all;
  };
  EXPECT_EQ(ends(1), ends(1));
  EXPECT_NE(ends(1), ends(2));
}

TEST(Service, WaitsForRoomAndSlots) {
  Deployment deployment = small_deployment();
  deployment.decode.kv_room = Bytes{1'000'000};  // a request of 1,000 tokens fills a die
  const RequestTrace trace = drawn(50, 10_s, "fixed:900", "fixed:100");
  ServiceOptions options;
  options.sample = 100_ms;
  const ServiceResult result = serve(trace, deployment, small_library(), options);
  for (const Occupancy& o : result.occupancy) EXPECT_LE(o.decoding, 4);
  EXPECT_DOUBLE_EQ(result.kv_peak, 1);
  EXPECT_THROW(serve(one(901, 100), deployment, small_library(), {}), InputError);
}

TEST(Service, RefusesTimesThatNobodyMeasured) {
  try {
    serve(one(900, 20'000), small_deployment(), small_library(), {});
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("is outside of what the library has measured"));
  }
}

TEST(Service, FollowsSessions) {
  RequestTrace trace = one(500, 1);
  trace.requests.push_back(trace.requests[0]);
  trace.requests[1].follows = 0;
  trace.requests[1].arrival = 7_ms;
  const ServiceResult result = serve(trace, small_deployment(), small_library(), {});
  EXPECT_EQ(result.served[1].arrival, 57_ms);
  EXPECT_EQ(result.served[1].done, 107_ms);
}

TEST(Service, GoesOnWithoutAnInstance) {
  const RequestTrace trace = drawn(20, 20_s, "fixed:500", "fixed:50");
  std::int64_t outputs = 0;
  for (const Request& r : trace.requests) outputs += r.output;
  const ServiceResult whole = serve(trace, small_deployment(), small_library(), {});
  for (const bool prefill : {true, false}) {
    ServiceOptions options;
    options.faults.outages.push_back({prefill, 0, 5_s, 4_s});
    const ServiceResult result = serve(trace, small_deployment(), small_library(), options);
    EXPECT_GT(result.restarted, 0);
    EXPECT_EQ(result.output_tokens, outputs);
    double before = 0, after = 0;
    for (std::size_t k = 0; k < trace.requests.size(); ++k) {
      EXPECT_GT(result.served[k].done, Time{});
      before += whole.served[k].e2e_ms();
      after += result.served[k].e2e_ms();
    }
    EXPECT_GT(after, before);
  }
  ServiceOptions wrong;
  wrong.faults.outages.push_back({true, 2, 5_s, 4_s});
  EXPECT_THROW(serve(trace, small_deployment(), small_library(), wrong), InputError);
}

// Requests that come at one moment tell no distance for samples: one of a picosecond, and the run is 10 s.
// Memory stays bounded, and the samples lie evenly over all of the run.
TEST(Service, KeepsSoManySamplesHoweverLongItRuns) {
  ServiceOptions options;
  options.allow_extrapolation = true;
  options.sample = Time{1};
  const ServiceResult result = serve(one(100, 20'001), small_deployment(), small_library(), options);
  ASSERT_LE(result.occupancy.size(), kMostOccupancies);
  ASSERT_GE(result.occupancy.size(), kMostOccupancies / 2);
  const Time step = result.occupancy[1].at - result.occupancy[0].at;
  for (std::size_t k = 0; k < result.occupancy.size(); ++k)
    EXPECT_EQ(result.occupancy[k].at, step * static_cast<std::int64_t>(k));
  EXPECT_GT(result.occupancy.back().at + step, result.end - step);
  EXPECT_EQ(result.occupancy.back().decoding, 1);
}

// As many waits as there are, in memory for those that differ; against a map of all.
TEST(TokenGaps, CountsAllInMemoryForThoseThatDiffer) {
  TokenGaps gaps;
  std::map<double, std::int64_t> all;
  std::mt19937 random(3);
  std::size_t most = 0;
  for (int k = 0; k < 1'000'000; ++k) {
    // 40,000 different ones, and some that come once.
    const Time wait{k % 50 == 0 ? 1'000'000'000 + k : static_cast<std::int64_t>(random() % 40'000) * 1000};
    const auto requests = static_cast<std::int64_t>(1 + random() % 9);
    gaps.add(wait, requests);
    all[wait.us() * 1e-3] += requests;
    most = std::max(most, gaps.entries());
  }
  EXPECT_LE(most, 2 * (40'000u + 20'000u));
  std::map<double, std::int64_t> kept;
  for (const TokenGap& gap : gaps.release()) kept[gap.ms] += gap.requests;
  EXPECT_EQ(kept, all);
}

// Against looking through all of them.
TEST(StepGaps, KnowTheLongestSinceAnyStep) {
  std::mt19937 random(5);
  StepGaps gaps;
  std::vector<Time> all;
  for (int k = 0; k < 2000; ++k) {
    for (int look = 0; look < 5; ++look) {
      const std::size_t from = random() % (all.size() + 1);
      const auto longest = std::max_element(all.begin() + static_cast<std::ptrdiff_t>(from), all.end());
      EXPECT_EQ(gaps.longest_since(static_cast<std::uint32_t>(from)),
                longest == all.end() ? Time{} : *longest);
    }
    all.push_back(Time{static_cast<std::int64_t>(random() % 50)});
    gaps.add(all.back());
    EXPECT_EQ(gaps.count(), all.size());
  }
}

// A sample is of its moment, and looking changes nothing, to the last bit.
TEST(Service, IsTheSameWithSamples) {
  const RequestTrace trace = drawn(20, 10_s, "uniform:10:900", "uniform:1:200");
  ServiceOptions options;
  const ServiceResult without = serve(trace, small_deployment(), small_library(), options);
  options.sample = 7_ms;
  const ServiceResult with = serve(trace, small_deployment(), small_library(), options);
  EXPECT_EQ(with.end, without.end);
  EXPECT_EQ(with.request_seconds, without.request_seconds);
  EXPECT_EQ(with.steps, without.steps);
  for (const Occupancy& o : with.occupancy) {
    const auto waiting = std::ranges::count_if(
        with.served, [&](const Served& s) { return s.arrival <= o.at && o.at < s.prefill_start; });
    EXPECT_EQ(o.waiting, waiting) << o.at.us();
  }
  EXPECT_EQ(with.occupancy.front().prefill_busy, 1) << "what happens at a sample's moment is in it";
}

TEST(Service, EndsAtAnInterruption) {
  volatile std::sig_atomic_t interrupted = 1;
  ServiceOptions options;
  options.interrupted = &interrupted;
  const RequestTrace trace = drawn(20, 10_s, "fixed:100", "fixed:100");
  EXPECT_FALSE(serve(trace, small_deployment(), small_library(), options).complete);
  interrupted = 0;
  EXPECT_TRUE(serve(trace, small_deployment(), small_library(), options).complete);
}

}  // namespace
}  // namespace cm384::service::simulation_test
