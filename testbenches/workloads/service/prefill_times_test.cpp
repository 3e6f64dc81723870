// Batches of prompts between measured ones, against values reckoned by hand.
#include "workloads/service/prefill_times.h"

#include <gmock/gmock.h>

#include "base/text/error.h"
#include "testbenches/workloads/service/small_service.h"
#include "workloads/service/simulation.h"

namespace cm384::service::prefill_times_test {
namespace {

using ::testing::HasSubstr;

// One NPU, so that an instance's tokens are a point's. Rest: 10, 14, 30 ms for 100, 200, 400 tokens;
// attention: 1, 2, 4, 24 ms for 500, 1,000, 2,000, 20,000 pairs.
Library with_prefill() {
  Library library = small_library();
  const auto add = [&](int tokens, int prompt, double latency_ms, double attention_ms) {
    PrefillPoint point;
    point.ranks = 2;
    point.tokens = tokens;
    point.prompt = prompt;
    point.latency_ms = latency_ms;
    point.attention_ms = attention_ms;
    library.add(point);
  };
  add(400, 10, 34, 4);
  add(100, 10, 11, 1);
  add(200, 10, 16, 2);
  add(400, 100, 54, 24);
  return library;
}

TEST(PrefillTimes, AreAttentionByPairsAndTheRestByTokens) {
  const PrefillTimes times(small_deployment(), with_prefill());
  ASSERT_TRUE(times.measured());
  const auto expect = [&](double tokens, double pairs, double ms, Evidence evidence) {
    const StepTime time = times.of({tokens, pairs, tokens});
    EXPECT_NEAR(time.ms, ms, 1e-6) << tokens << ", " << pairs;
    EXPECT_EQ(time.evidence, evidence) << tokens << ", " << pairs;
  };
  expect(100, 500, 11, Evidence::measured);
  expect(400, 20'000, 54, Evidence::measured);
  expect(200, 2000, 14 + 4, Evidence::interpolated);
  expect(100, 20'000, 10 + 24, Evidence::interpolated);
  // Half-way from 200 to 400 tokens: (14 + 30) / 2 + 200 / 8 x (slope at 200 - slope at 400), with slopes
  // 900 / (500 / 0.04 + 400 / 0.08) and 0.08.
  expect(300, 2000, 22 + 25 * (900 / 17500.0 - 0.08) + 4, Evidence::interpolated);
  // Less than the least measured is a batch of that.
  expect(1, 0.5, 11, Evidence::measured);
  expect(1, 2000, 14, Evidence::interpolated);
  expect(500, 2000, 30 + 100 * 0.08 + 4, Evidence::extrapolated);
  expect(100, 20'018, 10 + 24 + 0.02, Evidence::extrapolated);
}

TEST(PrefillTimes, TellScaledBatchesFromMeasuredOnes) {
  const Library whole = with_prefill();
  Library library = small_library();
  for (PrefillPoint point : whole.prefill()) {
    if (point.tokens == 100) point.from = "scaled", point.error = 0.02;
    library.add(point);
  }
  const PrefillTimes times(small_deployment(), library), before(small_deployment(), with_prefill());
  EXPECT_EQ(times.of({400, 20'000, 400}).evidence, Evidence::measured);
  const StepTime at = times.of({100, 500, 100}), between = times.of({200, 2000, 200});
  EXPECT_EQ(at.evidence, Evidence::scaled);
  EXPECT_DOUBLE_EQ(at.scaled_error, 0.02);
  EXPECT_EQ(between.evidence, Evidence::scaled);
  EXPECT_DOUBLE_EQ(between.scaled_error, 0.02);
  EXPECT_DOUBLE_EQ(between.error, before.of({200, 2000, 200}).error);
  EXPECT_EQ(times.of({500, 2000, 500}).evidence, Evidence::extrapolated);
}

TEST(PrefillTimes, CarryOnByHowMuchABatchIsMissedWithoutIt) {
  const PrefillTimes times(small_deployment(), with_prefill());
  // Worst is that of 200 tokens. Rest without it: 10 + 20 / 3. Attention without 1,000 pairs, a third of the
  // way from 500 to 2,000 (slopes 0.002 and 0.00155378): (20 x 1 + 4 x 3 + 7 x 4 - 2 x 2.33067) / 27.
  EXPECT_NEAR(times.of({200, 2000}).error, (10 + 20.0 / 3 + 2.049580) / 16 - 1, 1e-6);
  EXPECT_EQ(times.of({100, 500}).error, 0);
}

TEST(PrefillTimes, NeverFallWithTokensOrPairs) {
  Library library = with_prefill();
  PrefillPoint odd = library.prefill().front();  // one that took less than smaller ones, twice measured
  odd.tokens = 800;
  odd.latency_ms = 20;
  odd.attention_ms = 3;
  library.add(odd);
  const PrefillTimes times(small_deployment(), library);
  for (double tokens = 1; tokens < 1000; tokens += 13) {
    for (double pairs = 1; pairs < 25'000; pairs += 230) {
      const double ms = times.of({tokens, pairs}).ms;
      EXPECT_GE(times.of({tokens + 13, pairs}).ms, ms - 1e-9) << tokens << ", " << pairs;
      EXPECT_GE(times.of({tokens, pairs + 230}).ms, ms - 1e-9) << tokens << ", " << pairs;
    }
  }
  // A point that curves do not go through is no measured one any more: rest 17 of the odd one stays at 30.
  EXPECT_EQ(times.of({800, 4000}).evidence, Evidence::interpolated);
  EXPECT_GE(times.of({800, 4000}).error, 0.5);
}

// Keys and values of cached tokens are made again: 1, 2, 4 ms for 100, 200, 400 tokens of context.
TEST(PrefillTimes, CachedTokensCostTheirKeysAndValues) {
  Library library = small_library();
  const auto add = [&](int tokens, int cached, double latency_ms, double context_ms, double read_ms) {
    PrefillPoint point;
    point.ranks = 2;
    point.tokens = tokens;
    point.prompt = 100;
    point.cached = cached;
    point.latency_ms = latency_ms;
    point.attention_ms = tokens / 100.0;
    point.context_ms = context_ms;
    point.read_ms = read_ms;
    library.add(point);
  };
  add(100, 0, 10 + 1 + 1, 1, 0);
  add(200, 0, 14 + 2 + 2, 2, 0);
  add(400, 0, 30 + 4 + 4, 4, 0);
  add(200, 50, 10 + 2 + 2 + 7, 2, 7);  // 100 new tokens behind 100 cached ones, which 7 ms read
  const PrefillTimes times(small_deployment(), library);
  PrefillWork half;
  half.add(50, 50);
  half.add(50, 50);
  EXPECT_DOUBLE_EQ(half.context, 200);
  EXPECT_DOUBLE_EQ(half.pairs, 2 * 50 * 75);
  // 7,500 pairs took 2 ms, between 1 ms for 5,000 and 2 ms for 10,000: as much as what is measured there.
  EXPECT_NEAR(times.of(half).ms, 10 + 2 + 2, 1e-9);
  EXPECT_EQ(times.of(half).evidence, Evidence::measured);
  EXPECT_NEAR(times.of({100, 5000, 400}).ms - times.of({100, 5000, 200}).ms, 4 - 2, 1e-9);
  EXPECT_EQ(times.of({100, 5000, 401}).evidence, Evidence::extrapolated);
}

// With two microbatches 9, 16, 44 ms for what takes 11, 16, 54 with one.
TEST(PrefillTimes, TwoPromptsAreDealtOutOverMicrobatchesWhereThatIsFaster) {
  Library library = with_prefill();
  const Library measured = with_prefill();
  for (PrefillPoint point : measured.prefill()) {
    point.microbatches = 2;
    point.latency_ms *= 0.8;
    point.attention_ms *= 0.8;
    library.add(point);
  }
  Deployment deployment = small_deployment();
  deployment.prefill.microbatches = 1;
  EXPECT_NEAR(PrefillTimes(deployment, library).of({400, 20'000}, 2).ms, 54, 1e-9);
  deployment.prefill.microbatches = 2;
  const PrefillTimes times(deployment, library);
  EXPECT_NEAR(times.of({400, 20'000}, 2).ms, 0.8 * 54, 1e-9);
  EXPECT_NEAR(times.of({400, 20'000}, 1).ms, 54, 1e-9);
}

TEST(PrefillTimes, OfSeveralWaysAreRefused) {
  Library library = with_prefill();
  PrefillPoint other = library.prefill().front();
  other.way = "sp-tp-sp, sdma, int8";
  library.add(other);
  try {
    PrefillTimes(small_deployment(), library);
    ADD_FAILURE() << "nothing is refused";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("were measured in several ways"));
  }
}

TEST(PrefillTimes, OfOtherInstancesOrOfOneBatchAreAParameter) {
  Deployment other = small_deployment();
  other.prefill.npus = 2;
  EXPECT_FALSE(PrefillTimes(other, with_prefill()).measured());
  Library one = small_library();
  one.add(with_prefill().prefill().front());
  const PrefillTimes times(small_deployment(), one);
  EXPECT_FALSE(times.measured());
  EXPECT_EQ(times.of({500, 5}).evidence, Evidence::parameter);
  EXPECT_DOUBLE_EQ(times.of({500, 5}).ms, 50);
}

TEST(PrefillTimes, OfLibrariesWithoutAttentionHaveTheShareOfTheDeployment) {
  Library library = small_library();
  const Library measured = with_prefill();
  for (PrefillPoint point : measured.prefill()) {
    point.attention_ms = 0;
    library.add(point);
  }
  Deployment deployment = small_deployment();
  deployment.prefill.attention_share = 0.25;
  // 11 ms at 100 tokens, 8.5 ms of 34 at 2,000 pairs.
  EXPECT_NEAR(PrefillTimes(deployment, library).of({100, 2000}).ms, 11 * 0.75 + 8.5, 1e-9);
}

TEST(PrefillTimes, OutsideOfWhatWasMeasuredEndTheRunUnlessAllowed) {
  RequestTrace trace;
  trace.requests.resize(1);
  trace.requests[0].prompt = 401;
  trace.requests[0].output = 1;
  ServiceOptions options;
  try {
    serve(trace, small_deployment(), with_prefill(), options);
    ADD_FAILURE() << "nothing is refused";
  } catch (const InputError& error) {
    EXPECT_THAT(
        error.what(),
        HasSubstr("request 0: a prompt of 401 tokens, of which at most 0 can be cached, is outside of what"));
  }
  options.allow_extrapolation = true;
  EXPECT_GT(serve(trace, small_deployment(), with_prefill(), options)
                .evidence_s[static_cast<std::size_t>(Evidence::extrapolated)],
            0);
  trace.requests[0].prompt = 200;  // 20,000 pairs
  options.allow_extrapolation = false;
  const ServiceResult served = serve(trace, small_deployment(), with_prefill(), options);
  EXPECT_NEAR(served.served[0].ttft_ms(), 14 + 24, 1e-6);
  EXPECT_GT(served.worst_error, 0.1);
}

// Five prompts wait while one is computed; the library has measured four together, 400 tokens and 20,000
// pairs.
TEST(PrefillTimes, BoundTheBatchesThatAreFormed) {
  RequestTrace trace;
  trace.requests.resize(6);
  for (Request& request : trace.requests) {
    request.arrival = 1_ms;
    request.prompt = 100;
    request.output = 1;
  }
  trace.requests[0].arrival = Time{};
  Deployment deployment = small_deployment();
  deployment.prefill.instances = 1;
  ServiceOptions options;
  const ServiceResult served = serve(trace, deployment, with_prefill(), options);
  EXPECT_EQ(served.batches, 3);
  EXPECT_EQ(served.cut_batches, 1);
  EXPECT_EQ(served.served[1].prefill_start, served.served[4].prefill_start);
  EXPECT_EQ(served.served[5].prefill_start, served.served[4].first_token);
  EXPECT_EQ(served.prompt_tokens, 600);
  options.allow_extrapolation = true;
  EXPECT_EQ(serve(trace, deployment, with_prefill(), options).batches, 2);
}

// What others have brought into the cache may be all but the last token; nobody has brought more.
TEST(PrefillTimes, TakePromptsThatTheCacheMakesShortEnough) {
  RequestTrace trace;
  trace.block_tokens = 100;
  trace.keys = {1, 2, 1, 2};
  trace.requests.resize(2);
  trace.requests[0].prompt = 200;
  trace.requests[0].output = trace.requests[1].output = 1;
  trace.requests[0].blocks = 2;
  trace.requests[1].prompt = 210;  // 22,050 pairs; behind 200 tokens, 2,050
  trace.requests[1].first_block = 2;
  trace.requests[1].blocks = 2;
  trace.requests[1].arrival = 1_s;
  Deployment deployment = small_deployment();
  deployment.cache.on = true;
  const auto refusal = [&] {
    try {
      check_service(trace, deployment, with_prefill(), {});
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("nothing is refused");
  };
  EXPECT_EQ(refusal(), "nothing is refused");
  trace.keys[2] = 9;  // another beginning: nothing of it is known
  EXPECT_THAT(refusal(), HasSubstr("request 1: a prompt of 210 tokens, of which at most 0 can be cached"));
}

}  // namespace
}  // namespace cm384::service::prefill_times_test
