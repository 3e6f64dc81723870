// Attention over prompts of any lengths: each prompt's rows within the bounds of the reference, the same
// times without values; for equal prompts the times of the kernel that is for these alone; for unequal ones
// the blocks of keys that a count by hand says.
#include "workloads/operators/attention/ragged.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testbenches/hw/refusal.h"
#include "testbenches/workloads/operators/die_rig.h"
#include "workloads/operators/attention/attention.h"

namespace cm384::operators::ragged_test {
namespace {

RaggedSetting setting_of(std::vector<RaggedPrompt> prompts, std::uint32_t heads, std::uint32_t kv_heads = 0,
                         std::uint32_t width = 128) {
  return {.seed = 1, .prompts = std::move(prompts), .heads = heads, .kv_heads = kv_heads, .width = width};
}

template <class Attention>
double time_of(Attention&& attention, int groups) {
  DieRig rig;
  host::DeviceMemory memory(rig.runtime, 0);
  attention.place(rig.site(memory, 0, groups));
  attention.enqueue(host::Runtime::default_stream(0));
  EXPECT_TRUE(rig.runtime.wait());
  return kernel_time(attention).us();
}

class RaggedPrompts : public ::testing::TestWithParam<RaggedSetting> {};

TEST_P(RaggedPrompts, AreWithinTheirBounds) {
  Time times[2];
  for (const bool full : {false, true}) {
    DieRig rig;
    host::DeviceMemory memory(rig.runtime, 0);
    RaggedAttention attention(GetParam());
    attention.place(rig.site(memory, 0, 3, full));
    attention.enqueue(host::Runtime::default_stream(0));
    ASSERT_TRUE(rig.runtime.wait());
    times[full] = kernel_time(attention);
    if (full) {
      EXPECT_EQ(attention.check(), "");
    }
  }
  EXPECT_EQ(times[0], times[1]);
}

// The shortest prompt between longer ones, last tiles that are shorter, cached tokens of some; heads of MLA,
// of groups of one and of more, both widths; fewer tasks than blocks.
INSTANTIATE_TEST_SUITE_P(Shapes, RaggedPrompts,
                         ::testing::Values(setting_of({{272, 0}, {16, 0}, {400, 128}}, 2),
                                           setting_of({{16, 0}}, 1),
                                           setting_of({{144, 128}, {128, 0}, {256, 0}}, 4),
                                           setting_of({{48, 0}, {272, 256}, {144, 0}}, 8, 2),
                                           setting_of({{288, 0}, {16, 0}}, 4, 4, 64),
                                           setting_of({{160, 0}, {656, 512}}, 4, 1, 64)));

RaggedSetting with_sinks(RaggedSetting setting) {
  setting.sinks = true;
  return setting;
}
INSTANTIATE_TEST_SUITE_P(Sinks, RaggedPrompts,
                         ::testing::Values(with_sinks(setting_of({{48, 0}, {272, 256}, {144, 0}}, 8, 2)),
                                           with_sinks(setting_of({{160, 0}, {656, 512}}, 4, 1, 64))));

// The same tasks in the same order; where a task is comes out of a table here, which a core reads first.
TEST(RaggedAttention, OfEqualPromptsTakesAsLongAsTheKernelForThese) {
  const double ragged = time_of(RaggedAttention(setting_of({{512, 128}, {512, 128}, {512, 128}}, 4)), 3);
  const double even = time_of(FlashAttention({.sequences = 3, .heads = 4, .length = 512, .cached = 128}), 3);
  EXPECT_NEAR(ragged / even, 1, 0.05);
  // The last tile of a long prompt.
  const double tile = time_of(RaggedAttention(setting_of({{1024, 896}}, 4)), 1);
  EXPECT_NEAR(tile / time_of(FlashAttention({.heads = 4, .length = 1024, .cached = 896}), 1), 1, 0.05);
}

// Tiles of 16 and of 32 blocks of keys on one group: 16 more blocks take the same time each way. In order of
// length they are dealt out evenly: half of the time on two groups.
TEST(RaggedAttention, TakesTheBlocksOfKeysThatItsPromptsHave) {
  const auto us = [](std::vector<RaggedPrompt> prompts, int groups) {
    return time_of(RaggedAttention(setting_of(std::move(prompts), 4)), groups);
  };
  const double of_16 = us({{2048, 1920}}, 1), of_32 = us({{4096, 3968}}, 1);
  EXPECT_NEAR((us({{4096, 3968}, {2048, 1920}}, 1) - of_32) / (of_32 - of_16), 1, 0.05);
  EXPECT_NEAR(us({{1024, 0}}, 2) / us({{1024, 0}}, 1), 0.5, 0.05);
  // Whatever their order.
  EXPECT_NEAR(us({{128, 0}, {1024, 0}, {512, 0}}, 4) / us({{512, 0}, {128, 0}, {1024, 0}}, 4), 1, 0.02);
}

TEST(RaggedAttention, CountsTheWorkOfEachPrompt) {
  const Work work = RaggedAttention(setting_of({{256, 128}, {16, 0}}, 3)).work();
  EXPECT_EQ(work.operations, 2.0 * 320 * 3 * (256 * 257 / 2 - 128 * 129 / 2 + 136));
  EXPECT_EQ(work.cache, 2.0 * 320 * 3 * (256 + 16));
}

TEST(RaggedAttention, IsNamedByAllOfItsLengths) {
  EXPECT_EQ(RaggedAttention(setting_of({{256, 128}, {16, 0}}, 3)).size(),
            "ragged attention 3 heads, 0 KV heads of 128, prompts 128+128,0+16");
}

TEST(RaggedAttention, RefusesWhatItsKernelIsNotFor) {
  const auto told = [](std::vector<RaggedPrompt> prompts, std::uint32_t kv_heads, std::uint32_t width) {
    return refusal([&] { RaggedAttention(setting_of(std::move(prompts), 4, kv_heads, width)); });
  };
  EXPECT_THAT(told({}, 0, 128), ::testing::HasSubstr("no prompts"));
  EXPECT_THAT(told({{16, 0}, {17, 0}}, 0, 128), ::testing::HasSubstr("multiples of 16"));
  EXPECT_THAT(told({{144, 16}}, 0, 128), ::testing::HasSubstr("multiples of 128"));
  EXPECT_THAT(told({{128, 128}}, 0, 128), ::testing::HasSubstr("not all"));
  EXPECT_THAT(told({{16, 0}}, 3, 128), ::testing::HasSubstr("a divisor of 4 heads"));
  EXPECT_THAT(told({{16, 0}}, 2, 96), ::testing::HasSubstr("64 or 128"));
}

}  // namespace
}  // namespace cm384::operators::ragged_test
