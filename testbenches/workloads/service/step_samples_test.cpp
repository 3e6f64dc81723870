// Steps and batches of prompts that are drawn for an audit, and what a layer of a step takes by the library.
#include "workloads/service/step_samples.h"

#include <gmock/gmock.h>

#include "base/text/error.h"
#include "testbenches/workloads/service/small_service.h"
#include "workloads/service/simulation.h"

namespace cm384::service::step_samples_test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(StepSamples, AreDrawnEvenlyFromAllSteps) {
  const DecodeInstance decode(small_deployment().decode, 1, 0);
  std::vector<int> drawn(20);
  constexpr int kRuns = 4000;
  for (int seed = 0; seed < kRuns; ++seed) {
    StepSamples samples(5, static_cast<std::uint64_t>(seed));
    for (int step = 0; step < 20; ++step) samples.see({}, 0, decode, {8, 128});
    std::int64_t last = -1;
    const std::vector<StepSample> kept = samples.release();
    ASSERT_THAT(kept, SizeIs(5));
    for (const StepSample& sample : kept) {
      EXPECT_GT(sample.number, last);
      last = sample.number;
      ++drawn[static_cast<std::size_t>(sample.number)];
    }
  }
  // Each with chance 1/4: 1,000 times, standard deviation 27.
  for (const int times : drawn) EXPECT_NEAR(times, kRuns / 4, 5 * 27);
}

TEST(StepSamples, AreAllStepsWhereThereAreNoMore) {
  const DecodeInstance decode(small_deployment().decode, 1, 0);
  StepSamples samples(5, 1), none(0, 1);
  for (int step = 0; step < 3; ++step) {
    samples.see(Time{step}, 2, decode, {8 * step, 128});
    none.see({}, 0, decode, {8, 128});
  }
  const std::vector<StepSample> kept = samples.release();
  ASSERT_THAT(kept, SizeIs(3));
  EXPECT_EQ(kept[2].number, 2);
  EXPECT_EQ(kept[2].at, Time{2});
  EXPECT_EQ(kept[2].instance, 2);
  EXPECT_EQ(kept[2].load.batch, 16);
  EXPECT_THAT(none.release(), IsEmpty());
}

TEST(StepSamples, KnowTheTokensOfEachRequestOnItsDie) {
  DecodeInstance decode(small_deployment().decode, 1, 0);
  // 100 tokens and 10 more in 5 steps; 300 and 4 more in 4.
  decode.join({0, 1, 100, 10, 5});
  decode.join({1, 1, 300, 4, 4});
  decode.join({2, 3, 50, 1, 1});
  decode.begin_step();
  ASSERT_TRUE(decode.stepping());
  const auto first = decode.lengths();
  ASSERT_THAT(first, SizeIs(4));
  EXPECT_THAT(first[0], IsEmpty());
  EXPECT_THAT(first[1], ::testing::UnorderedElementsAre(100, 300));
  EXPECT_THAT(first[3], ElementsAre(50));
  decode.end_step();
  decode.begin_step();
  ASSERT_TRUE(decode.stepping());
  EXPECT_THAT(decode.lengths()[1], ::testing::UnorderedElementsAre(102, 301));
  EXPECT_THAT(decode.lengths()[3], IsEmpty());
}

TEST(StepSamples, AreOfTheServicesSteps) {
  RequestTrace trace;
  trace.requests.resize(1);
  trace.requests[0].prompt = 500;
  trace.requests[0].output = 9;
  Deployment deployment = small_deployment();
  deployment.decode.acceptance = 1;  // eight tokens in four steps
  ServiceOptions options;
  options.step_samples = 10;
  const ServiceResult result = serve(trace, deployment, small_library(), options);
  ASSERT_THAT(result.steps_drawn, SizeIs(4));
  for (int step = 0; step < 4; ++step) {
    const StepSample& sample = result.steps_drawn[static_cast<std::size_t>(step)];
    EXPECT_EQ(sample.number, step);
    EXPECT_EQ(sample.load.batch, 8);
    EXPECT_EQ(sample.lengths[static_cast<std::size_t>(result.served[0].die)].front(), 500 + 2 * step);
  }
}

// Prompts of 700 and 500 tokens in chunks of 400, batches of 600: 400 of the first, which is alone; its last
// 300 and 300 of the second; the last 200 of that.
TEST(BatchSamples, AreOfTheServicesBatches) {
  RequestTrace trace;
  trace.requests.resize(2);
  trace.requests[0].prompt = 700;
  trace.requests[1].prompt = 500;
  trace.requests[0].output = trace.requests[1].output = 1;
  Deployment deployment = small_deployment();
  deployment.prefill.instances = 1;
  deployment.prefill.batch_tokens = 600;
  deployment.prefill.chunk = 400;
  ServiceOptions options;
  options.batch_samples = 10;
  const ServiceResult result = serve(trace, deployment, small_library(), options);
  ASSERT_EQ(result.batches, 3);
  ASSERT_THAT(result.batches_drawn, SizeIs(3));
  const auto prompts = [&](int batch) {
    std::vector<std::pair<int, int>> made;
    for (const auto& prompt : result.batches_drawn[static_cast<std::size_t>(batch)].prompts)
      made.emplace_back(prompt.fresh, prompt.before);
    return made;
  };
  EXPECT_THAT(prompts(0), ElementsAre(std::pair{400, 0}));
  EXPECT_THAT(prompts(1), ElementsAre(std::pair{300, 400}, std::pair{300, 0}));
  EXPECT_THAT(prompts(2), ElementsAre(std::pair{200, 300}));
  EXPECT_EQ(result.batches_drawn[1].number, 1);
  EXPECT_GT(result.batches_drawn[1].at, Time{});
  options.batch_samples = 0;
  EXPECT_THAT(serve(trace, deployment, small_library(), options).batches_drawn, IsEmpty());
}

TEST(DecodeSteps, KnowTheirLayerWhereTheLibraryDoes) {
  EXPECT_THROW((void)DecodeSteps(small_library(), 4, 1).layer_us(8, 1024), InputError);
  Library library("small");
  for (const auto& [batch, us] : {std::pair{8, 270.0}, {16, 280.0}, {32, 320.0}}) {
    DecodePoint point{4, batch, 1024, 1, 2, 10, 3, 10, 100, 130, "run decode", "0"};
    point.layer_us = us;
    library.add(point);
  }
  const Library attention = small_library();
  for (const AttentionPoint& point : attention.attention()) library.add(point);
  const DecodeSteps steps(library, 4, 1);
  EXPECT_DOUBLE_EQ(steps.layer_us(8, 1024), 270);
  EXPECT_DOUBLE_EQ(steps.layer_us(32, 1024), 320);
  // Halves of 100 and 130 us become 160 and 130: 30 more in each of two microbatches (library_test).
  EXPECT_DOUBLE_EQ(steps.layer_us(8, 4096), 270 + 2 * 30);
  EXPECT_DOUBLE_EQ(steps.layer_us(8, 128), 270);
  // A step is its layers and what stands alone.
  EXPECT_NEAR(steps.at(8, 4096).ms - steps.at(8, 1024).ms,
              (10 * (steps.layer_us(8, 4096) - steps.layer_us(8, 1024)) + 3 * 2 * 60) * 1e-3, 1e-9);
}

}  // namespace
}  // namespace cm384::service::step_samples_test
