// Attention over grouped keys and values: every stage within the bounds of a reference in double precision,
// alone and on what the stage before left; the same times without values; grade replay near firmware; what
// does not suit the kernels is refused.
#include "workloads/operators/gqa/gqa.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testbenches/hw/refusal.h"
#include "testbenches/workloads/operators/die_rig.h"
#include "workloads/operators/attention/attention.h"

namespace cm384::operators::gqa_test {
namespace {

GqaSetting gqa_of(std::vector<std::uint32_t> kv_lens, std::uint32_t queries, std::uint32_t heads,
                  std::uint32_t kv_heads, std::uint32_t width, std::uint32_t window = 0, bool int8 = false) {
  GqaSetting setting;
  setting.kv_lens = std::move(kv_lens);
  setting.queries = queries;
  setting.heads = heads;
  setting.kv_heads = kv_heads;
  setting.width = width;
  setting.window = window;
  setting.hidden = 192;
  setting.int8 = int8;
  return setting;
}

GqaSetting with(GqaSetting setting, bool norms, bool sinks) {
  setting.norms = norms;
  setting.sinks = sinks;
  return setting;
}

struct Times {
  Time attention, prolog, output;
  friend bool operator==(const Times&, const Times&) = default;
};

// Prolog, attention and output one after another on `count` groups.
Times run_layer(const GqaSetting& setting, int count, bool full) {
  DieRig rig;
  host::DeviceMemory memory(rig.runtime, 0);
  GqaAttention attention(setting, 1);
  GqaProlog prolog(setting, 1, attention);
  GqaOutput output(setting, 1, attention);
  attention.follows_prolog();
  attention.place(rig.site(memory, 0, count, full));
  prolog.place(rig.site(memory, 0, count, full));
  output.place(rig.site(memory, 0, count, full));
  for (KernelOperator* stage : std::initializer_list<KernelOperator*>{&prolog, &attention, &output}) {
    stage->enqueue(host::Runtime::default_stream(0));
    EXPECT_TRUE(rig.runtime.wait());
    if (full) {
      EXPECT_EQ(stage->check(), "") << stage->size();
    }
  }
  return {kernel_time(attention), kernel_time(prolog), kernel_time(output)};
}

class GqaLayer : public ::testing::TestWithParam<GqaSetting> {};

TEST_P(GqaLayer, IsWithinItsBoundsStageAfterStage) {
  EXPECT_EQ(run_layer(GetParam(), 3, true), run_layer(GetParam(), 3, false));
}

// One token; tokens that begin a page and that end one; groups of 1, 4, 8, 12, 16 and 24 heads; both widths;
// a window shorter and longer than the sequences, which begins within a page; further queries; few sequences
// on many groups, which are split; more than one KV head in a tile; INT8.
INSTANTIATE_TEST_SUITE_P(
    Shapes, GqaLayer,
    ::testing::Values(gqa_of({1}, 1, 16, 1, 128), gqa_of({128, 129, 1, 300, 77}, 1, 8, 1, 128),
                      gqa_of({128, 40, 127}, 2, 16, 4, 128), gqa_of({700, 40}, 1, 32, 2, 128),
                      gqa_of({300, 129}, 1, 24, 2, 128), gqa_of({200, 513, 64}, 1, 64, 8, 64),
                      gqa_of({200, 513, 64}, 1, 64, 8, 64, 128), gqa_of({1000, 130}, 2, 16, 2, 128, 100),
                      gqa_of({260}, 1, 48, 2, 128), gqa_of({33, 257}, 1, 6, 6, 128),
                      gqa_of({2000}, 1, 8, 1, 64), gqa_of({128, 40, 127}, 2, 16, 4, 128, 0, true),
                      gqa_of({300}, 1, 96, 8, 128, 0, true), gqa_of({500, 64, 3}, 1, 64, 8, 64, 128, true),
                      gqa_of({20}, 1, 32, 32, 128)));

// Norms of heads of both widths, of one head and of as many as a vector core holds; sinks of heads with
// padding between them, in several tiles, in the first of several parts, in a window; both.
INSTANTIATE_TEST_SUITE_P(NormsAndSinks, GqaLayer,
                         ::testing::Values(with(gqa_of({128, 40, 127}, 2, 16, 4, 128), true, false),
                                           with(gqa_of({200, 513, 64}, 1, 64, 8, 64), true, false),
                                           with(gqa_of({20}, 1, 32, 32, 128), true, false),
                                           with(gqa_of({300}, 1, 33, 1, 128, 0, true), true, false),
                                           with(gqa_of({128, 129, 1, 300, 77}, 1, 8, 1, 128), false, true),
                                           with(gqa_of({2000}, 1, 8, 1, 64), false, true),
                                           with(gqa_of({500, 64, 3}, 2, 64, 8, 64, 128), false, true),
                                           with(gqa_of({260}, 1, 48, 2, 128), false, true),
                                           with(gqa_of({700, 40}, 1, 64, 16, 128, 0, true), true, true)));

// What they add: a share of the projection, and hardly anything of attention; nothing of what has none.
TEST(GqaLayer, NormsAndSinksTakeLittle) {
  const GqaSetting plain = gqa_of(std::vector<std::uint32_t>(24, 1024), 1, 64, 4, 128);
  const Times without = run_layer(plain, 24, false), both = run_layer(with(plain, true, true), 24, false);
  EXPECT_GT(both.prolog, without.prolog);
  EXPECT_LT(both.prolog.us(), 1.3 * without.prolog.us());
  EXPECT_GT(both.attention, without.attention);
  EXPECT_LT(both.attention.us(), 1.03 * without.attention.us());
}

// Alone, on values of its own.
TEST(GqaAttention, IsRightAlone) {
  DieRig rig;
  host::DeviceMemory memory(rig.runtime, 0);
  GqaAttention attention(gqa_of(std::vector<std::uint32_t>(20, 260), 1, 32, 4, 128), 3);
  attention.place(rig.site(memory, 0, 8, true));
  attention.enqueue(host::Runtime::default_stream(0));
  ASSERT_TRUE(rig.runtime.wait());
  EXPECT_EQ(attention.check(), "");
}

// A window of 128 tokens takes what 128 cached tokens take, and a page more where it begins within one.
TEST(GqaAttention, ReadsItsWindowAlone) {
  const auto read = [](std::uint32_t tokens, std::uint32_t window) {
    DieRig rig;
    host::DeviceMemory memory(rig.runtime, 0);
    GqaAttention attention(gqa_of(std::vector<std::uint32_t>(24, tokens), 1, 16, 2, 64, window), 1);
    attention.place(rig.site(memory, 0, 24));
    attention.enqueue(host::Runtime::default_stream(0));
    rig.runtime.wait();
    return rig.machine.die(0).memory().statistics().read_bytes;
  };
  // The page table is longer; a page of one sequence is 64 KiB.
  EXPECT_LT(read(1024, 128), read(128, 0) + 65536);
  EXPECT_LT(read(128, 4096), read(128, 0) + 65536);
  EXPECT_GT(read(1024, 0), read(128, 0) + 24 * 7 * 65536);
}

// Near the rate of memory: 48 sequences of 4,096 tokens, 4 KV heads.
TEST(GqaAttention, IsBoundByMemory) {
  DieRig rig;
  host::DeviceMemory memory(rig.runtime, 0);
  GqaAttention attention(gqa_of(std::vector<std::uint32_t>(48, 4096), 1, 64, 4, 128), 1);
  attention.place(rig.site(memory, 0, 24));
  attention.enqueue(host::Runtime::default_stream(0));
  rig.runtime.wait();
  const double share = duration_of(attention.work(), 24, rig.parameters).us() / kernel_time(attention).us();
  EXPECT_GT(share, 0.75) << kernel_time(attention).us() << " us";
  EXPECT_LT(share, 1.0);
}

TEST(GqaAttention, WorkIsWhatItsShapeSays) {
  const Work work = GqaAttention(gqa_of({100, 300}, 2, 16, 4, 64, 128), 1).work();
  EXPECT_EQ(work.operations, 4.0 * (100 + 101 + 128 + 128) * 16 * 64);
  EXPECT_EQ(work.cache, (101 + 129) * 4.0 * 64 * 4);
}

reference::AttentionCase prompt_of(std::uint32_t heads, std::uint32_t kv_heads, std::uint32_t width,
                                   std::uint32_t length, std::uint32_t cached, std::uint32_t window,
                                   bool causal = true) {
  return {.seed = 1,
          .sequences = 2,
          .heads = heads,
          .length = length,
          .cached = cached,
          .kv_heads = kv_heads,
          .width = width,
          .window = window,
          .causal = causal};
}

class GroupedPrompt : public ::testing::TestWithParam<reference::AttentionCase> {};

TEST_P(GroupedPrompt, IsWithinItsBounds) {
  for (const std::uint32_t keys : {128U, 256U, 512U}) {
    Time times[2];
    for (const bool full : {false, true}) {
      DieRig rig;
      host::DeviceMemory memory(rig.runtime, 0);
      FlashAttention attention(GetParam(), keys);
      attention.place(rig.site(memory, 0, 3, full));
      attention.enqueue(host::Runtime::default_stream(0));
      ASSERT_TRUE(rig.runtime.wait());
      times[full] = kernel_time(attention);
      if (full) {
        EXPECT_EQ(attention.check(), "") << keys << " keys";
      }
    }
    EXPECT_EQ(times[0], times[1]) << keys << " keys";
  }
}

// Groups of one, four and sixteen; both widths; cached tokens; windows of one, two and more tiles than there
// are, whose first block a row may not see at all; without a mask, last tiles that are shorter.
INSTANTIATE_TEST_SUITE_P(Shapes, GroupedPrompt,
                         ::testing::Values(prompt_of(2, 2, 128, 272, 0, 0), prompt_of(8, 2, 128, 400, 128, 0),
                                           prompt_of(16, 1, 64, 144, 0, 0), prompt_of(4, 1, 64, 656, 0, 128),
                                           prompt_of(4, 2, 128, 656, 256, 256),
                                           prompt_of(2, 1, 128, 1168, 0, 640),
                                           prompt_of(1, 1, 64, 1296, 0, 0), prompt_of(2, 1, 64, 272, 0, 4096),
                                           prompt_of(2, 1, 64, 272, 0, 0, false),
                                           prompt_of(4, 2, 128, 400, 256, 0, false),
                                           prompt_of(1, 1, 128, 48, 0, 0, false)));

reference::AttentionCase with_sinks(reference::AttentionCase prompt) {
  prompt.sinks = true;
  return prompt;
}
INSTANTIATE_TEST_SUITE_P(Sinks, GroupedPrompt,
                         ::testing::Values(with_sinks(prompt_of(8, 2, 128, 400, 128, 0)),
                                           with_sinks(prompt_of(16, 1, 64, 144, 0, 0)),
                                           with_sinks(prompt_of(4, 1, 64, 656, 0, 128))));

TEST(GroupedPrompt, HasSinksWithGroupedHeadsAndAMaskAlone) {
  EXPECT_THAT(refusal([] { FlashAttention(with_sinks(prompt_of(4, 0, 128, 256, 0, 0))); }),
              ::testing::HasSubstr("sinks: allowed: with grouped heads"));
  EXPECT_THAT(refusal([] { FlashAttention(with_sinks(prompt_of(4, 1, 64, 256, 0, 0, false))); }),
              ::testing::HasSubstr("sinks: allowed: with grouped heads"));
}

TEST(GroupedPrompt, CountsWhatItsTokensSee) {
  const auto pairs = [](std::uint32_t length, std::uint32_t cached, std::uint32_t window) {
    return FlashAttention(prompt_of(4, 1, 64, length, cached, window)).work().operations / (4 * 64 * 2 * 4);
  };
  EXPECT_EQ(pairs(16, 0, 0), 136);
  EXPECT_EQ(pairs(256, 0, 128), 128 * 129 / 2 + 128 * 128);
  EXPECT_EQ(pairs(256, 128, 128), 128 * 128);
}

TEST(GroupedPrompt, WithoutAMaskCountsAllPairs) {
  const auto work = FlashAttention(prompt_of(4, 1, 64, 256, 128, 0, false)).work();
  EXPECT_EQ(work.operations / (4 * 64 * 2 * 4), 128 * 256);
}

// Eight tiles of eight blocks of keys each, against 36 of them.
TEST(GroupedPrompt, WithoutAMaskTakesAllBlocks) {
  const auto time = [](bool causal) {
    DieRig rig;
    host::DeviceMemory memory(rig.runtime, 0);
    FlashAttention attention(prompt_of(4, 4, 128, 1024, 0, 0, causal), 128);
    attention.place(rig.site(memory, 0, 1));
    attention.enqueue(host::Runtime::default_stream(0));
    rig.runtime.wait();
    return kernel_time(attention).us();
  };
  EXPECT_NEAR(time(false) / time(true), 64.0 / 36, 0.1);
}

TEST(GroupedPrompt, WithoutAMaskHasGroupedHeadsAndNoWindow) {
  EXPECT_THAT(refusal([] { FlashAttention(prompt_of(4, 1, 64, 256, 0, 128, false)); }),
              ::testing::HasSubstr("without a causal mask"));
  EXPECT_THAT(refusal([] { FlashAttention(prompt_of(4, 0, 64, 256, 0, 0, false)); }),
              ::testing::HasSubstr("without a causal mask"));
}

TEST(GqaReplay, IsNearItsFirmware) {
  const GqaSetting setting = with(gqa_of(std::vector<std::uint32_t>(24, 1024), 1, 32, 4, 128), false, true);
  const auto recording = recorded<GqaAttention>(setting, 12);
  const auto time = [&](Grade grade, bool beside) {
    DieRig rig;
    host::DeviceMemory memory(rig.runtime, 0), others(rig.runtime, 0);
    GqaAttention made(setting, 1), other(setting, 2);
    made.place(rig.site(memory, 0, 12));
    made.run_at(grade, recording);
    if (beside) {
      other.place(rig.site(others, 12, 12));
      other.enqueue(rig.runtime.create_stream(0));
    }
    made.enqueue(rig.runtime.create_stream(0));
    rig.runtime.wait();
    return kernel_time(made).us();
  };
  EXPECT_NEAR(time(Grade::replay, false) / time(Grade::firmware, false), 1, 0.03);
  EXPECT_NEAR(time(Grade::replay, true) / time(Grade::firmware, true), 1, 0.03);
}

TEST(Gqa, RefusesWhatItsKernelsAreNotFor) {
  EXPECT_THAT(refusal([] { check_gqa(gqa_of({1}, 1, 16, 4, 96)); }), ::testing::HasSubstr("head-width 96"));
  EXPECT_THAT(refusal([] { check_gqa(gqa_of({1}, 1, 16, 5, 128)); }), ::testing::HasSubstr("kv-heads 5"));
  EXPECT_EQ(refusal([] { check_gqa(gqa_of({1}, 1, 32, 32, 128)); }), "(accepted)");
  EXPECT_THAT(refusal([] { check_gqa(gqa_of({1}, 1, 33, 33, 128)); }), ::testing::HasSubstr("kv-heads 33"));
  EXPECT_THAT(refusal([] { check_gqa(gqa_of({1}, 1, 256, 1, 128)); }), ::testing::HasSubstr("kv-heads 1"));
}

}  // namespace
}  // namespace cm384::operators::gqa_test
