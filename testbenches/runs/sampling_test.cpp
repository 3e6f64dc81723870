// Words chosen by top-k, top-p and a draw against sums in double precision, with equal shares, in both
// payload modes; by one core and by several, of any width.
#include "workloads/operators/sampling/sampling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testbenches/runs/machine_run.h"

namespace cm384::testing::sampling_test {
namespace {

using reference::SampleCase;
using studies::OpReading;
using studies::OpSetting;
using ::testing::HasSubstr;

struct Case {
  SampleCase sample;
  int groups;
  std::size_t blocks;
};

class Sampling : public ::testing::TestWithParam<Case> {};

TEST_P(Sampling, IsTheReferences) {
  const Case& c = GetParam();
  const auto run = [&c](bool full) {
    const OpSetting setting{.groups = c.groups, .graph = true, .iterations = 2, .warmup = 0, .full = full};
    return run_operator(setting, [&c] { return std::make_unique<operators::Sampling>(c.sample); });
  };
  const OpReading full = run(true), control = run(false);
  EXPECT_TRUE(full.correct && *full.correct) << full.first_difference;
  EXPECT_EQ(full.blocks, c.blocks);
  EXPECT_EQ(full.task_us, control.task_us);
  EXPECT_EQ(full.hbm_bytes, control.hbm_bytes);
}

// {rows, words, largest, share}, groups of two cores, blocks.
INSTANTIATE_TEST_SUITE_P(All, Sampling,
                         ::testing::Values(Case{{1, 1, 1, 0.5}, 1, 1}, Case{{1, 63, 256, 1.0}, 1, 1},
                                           Case{{3, 1337, 50, 0.95}, 1, 2}, Case{{60, 5000, 7, 0.9}, 4, 8},
                                           Case{{40, 9000, 50, 1.0}, 8, 16},
                                           Case{{2, 12345, 255, 0.8}, 24, 24},
                                           Case{{1, 60001, 256, 1.0}, 24, 48},
                                           Case{{20, 20000, 1, 0.0}, 24, 40}));

std::string differs(const SampleCase& sample, std::int32_t word, float chosen,
                    const reference::SampleInputs& inputs) {
  return compare_sample(sample, inputs, std::vector{word}, std::vector{chosen});
}

// Four words of 0.4, 0.3, 0.2 and 0.1, counted by hand.
TEST(SamplingReference, IsTheHandCount) {
  const std::vector<float> shares{0.1f, 0.4f, 0.2f, 0.3f};
  const SampleCase all{1, 4, 4, 1.0}, three{1, 4, 3, 1.0}, most{1, 4, 4, 0.65}, one{1, 4, 1, 1.0};
  EXPECT_EQ(differs(all, 1, 0.4f, {shares, {0.39f}}), "");
  EXPECT_EQ(differs(all, 3, 0.3f, {shares, {0.41f}}), "");
  EXPECT_EQ(differs(all, 0, 0.1f, {shares, {0.95f}}), "");
  EXPECT_EQ(differs(three, 2, 0.2f / 0.9f, {shares, {0.95f}}), "");  // three of them sum up to 0.9
  EXPECT_EQ(differs(most, 3, 0.3f / 0.7f, {shares, {0.95f}}), "");   // two reach 0.65
  EXPECT_EQ(differs(one, 1, 1.0f, {shares, {0.95f}}), "");
  EXPECT_THAT(differs(all, 1, 0.4f, {shares, {0.41f}}), HasSubstr("word 1 instead of 3"));
  EXPECT_THAT(differs(most, 2, 0.2f, {shares, {0.95f}}), HasSubstr("word 2 instead of 3"));
  EXPECT_THAT(differs(all, 3, 0.31f, {shares, {0.41f}}), HasSubstr("share"));
}

// Of equal ones those that stand first.
TEST(SamplingReference, BreaksTies) {
  const std::vector<float> shares{0.2f, 0.2f, 0.4f, 0.2f};
  const SampleCase two{1, 4, 2, 1.0};
  EXPECT_EQ(differs(two, 0, 0.2f / 0.6f, {shares, {0.9f}}), "");
  EXPECT_THAT(differs(two, 1, 0.2f / 0.6f, {shares, {0.9f}}), HasSubstr("word 1 instead of 0"));
}

}  // namespace
}  // namespace cm384::testing::sampling_test
