// A decode layer of which most dies last as long as others took, beside the same layer with a replay on every
// die.
#include <gtest/gtest.h>

#include <csignal>
#include <string>

#include "workloads/layer/layer_run.h"

namespace cm384::testing::layer_followers_test {
namespace {

using studies::LayerReading;
using studies::LayerSetting;
using studies::SimulatorCounts;

class Silence final : public studies::Progress {
  void update(double, Time, std::uint64_t) override {}
};

constexpr int kRanks = 24;

LayerSetting small_layer() {
  LayerSetting setting;
  setting.layers = 2;
  setting.moe.ranks = kRanks;
  setting.moe.batch = 8;
  setting.moe.experts = 96;
  setting.moe.top_k = 8;
  setting.moe.hidden = 1024;
  setting.moe.routing = "uniform";
  setting.moe.shared_copies = 2;
  setting.moe.cores = 16;
  setting.attention.queries = 2;
  setting.attention.heads = 32;
  setting.attention.hidden = 1024;
  setting.attention.q_lora = 256;
  setting.attention.int8 = true;
  setting.width = 256;
  setting.cores = {studies::CoreShare{0, 16}, studies::CoreShare{16, 8}};
  setting.lengths = {{{512, 512, 512, 512}, {512, 512, 512, 512}}};
  setting.lengths_of.assign(kRanks, 0);
  return setting;
}

LayerReading measure(const LayerSetting& setting, SimulatorCounts& counts, unsigned threads = 1) {
  static const volatile std::sig_atomic_t never = 0;
  const hw::Machine machine = hw::load_machine(std::string(hw::kDefaultMachine), {});
  Silence silence;
  studies::StudyContext context{machine, 1, silence, never};
  context.threads = threads;
  return studies::measure_layer(context, setting, counts);
}

TEST(LayerFollowers, GiveTheLayerThatReplaysGive) {
  LayerSetting setting = small_layer();
  SimulatorCounts all_counts, few_counts;
  const LayerReading all = measure(setting, all_counts);
  setting.replay = 4;
  const LayerReading few = measure(setting, few_counts);
  EXPECT_EQ(all.followers, 0);
  EXPECT_GE(few.followers, kRanks - 1 - 4 - 3);  // one is in detail, some have unlike work
  EXPECT_LE(few.followers, kRanks - 1 - 4);
  EXPECT_NEAR(few.layer_us.mean / all.layer_us.mean, 1, 0.01);
  ASSERT_EQ(few.stages.size(), all.stages.size());
  for (std::size_t n = 0; n < all.stages.size(); ++n) {
    if (!all.stages[n].replays) continue;
    // Of experts ranks differ by a fifth, in 20 us.
    EXPECT_NEAR(few.stages[n].task_us.mean / all.stages[n].task_us.mean, 1, 0.025) << all.stages[n].name;
    EXPECT_NEAR(few.stages[n].task_us.max / all.stages[n].task_us.max, 1, 0.05) << all.stages[n].name;
  }
  EXPECT_LT(few.late_us.mean, 0.01 * all.layer_us.mean);
  // What they do not move.
  EXPECT_LT(few_counts.memory_requests, all_counts.memory_requests / 2);
}

// Of ranks with one expert, the shared one, and of those with five.
TEST(LayerFollowers, HaveOneOfTheirKindToFollow) {
  LayerSetting setting = small_layer();
  setting.replay = 1;
  SimulatorCounts counts;
  EXPECT_LT(measure(setting, counts).followers, kRanks - 1 - 1);
}

TEST(LayerFollowers, AreTheSameWithAnyNumberOfThreads) {
  LayerSetting setting = small_layer();
  setting.replay = 4;
  SimulatorCounts counts;
  const LayerReading one = measure(setting, counts, 1), two = measure(setting, counts, 2);
  ASSERT_GT(one.followers, 0);
  EXPECT_EQ(one.layer_us.mean, two.layer_us.mean);
  EXPECT_EQ(one.late_us.mean, two.late_us.mean);
  for (std::size_t n = 0; n < one.stages.size(); ++n)
    EXPECT_EQ(one.stages[n].task_us.mean, two.stages[n].task_us.mean) << one.stages[n].name;
}

}  // namespace
}  // namespace cm384::testing::layer_followers_test
