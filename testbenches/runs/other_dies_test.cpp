// Dies of other sizes: every core works, every number of cores ends, and what a parameter binds follows it in
// closed form.
#include <gmock/gmock.h>

#include <algorithm>

#include "base/text/error.h"
#include "firmware/abi/combine.h"
#include "npu_core/die/die.h"
#include "system/machine/supernode.h"
#include "testbenches/runs/machine_run.h"
#include "workloads/frame/published.h"
#include "workloads/frame/result_json.h"
#include "workloads/layer/layer.h"
#include "workloads/prefill/prefill_options.h"
#include "workloads/studies.h"

namespace cm384::testing::other_dies_test {
namespace {

const Changes kWide{"die.aic=32", "die.aiv=64"};

// Words that say which half of the windows a block uses: all blocks of dispatch, then all of combine, none on
// another or on the entries of the second half.
TEST(OtherDies, StateWordsOfAllBlocksStandApart) {
  EXPECT_LE(CM384_STATUS_HALF_BYTES + CM384_STATUS_COMBINE_OFFSET +
                CM384_STATUS_COMBINE_ENTRIES * CM384_STATUS_ENTRY_BYTES,
            CM384_STATUS_DISPATCH_STATE);
  EXPECT_LE(CM384_STATUS_DISPATCH_STATE + CM384_STATUS_BLOCKS * 512, CM384_STATUS_COMBINE_STATE);
  EXPECT_LE(CM384_STATUS_COMBINE_STATE + CM384_STATUS_BLOCKS * 512, CM384_STATUS_BYTES);
  cm384_combine a{};
  a.ranks = 8;
  a.hidden = 64;
  a.top_k = 8;
  a.batch = CM384_STATUS_COMBINE_ENTRIES / 8;
  EXPECT_TRUE(cm384_combine_fits(&a, 64));
  EXPECT_FALSE(cm384_combine_fits(&a, 65));
  ++a.batch;
  EXPECT_FALSE(cm384_combine_fits(&a, 64)) << "it would write to the state words";
}

// Twice, so that both halves are used: from 51 cores on, dispatch and combine used to take each other's
// words.
TEST(OtherDies, CombineRunsOnAnyNumberOfCores) {
  for (const int cores : {49, 50, 51, 56, 63, 64}) {
    for (const int batch : {3, 33}) {
      studies::CombineCase setting = small_combine(8, batch, 64, cores);
      setting.iterations = 2;
      setting.full = true;
      const studies::CombineReading reading = run_combine(setting, kWide);
      ASSERT_TRUE(reading.combine.correct.has_value()) << cores;
      EXPECT_TRUE(*reading.combine.correct) << cores << ": " << reading.combine.first_difference;
    }
  }
}

TEST(OtherDies, DefaultsAreAllCoresOfTheDie) {
  const hw::Machine wide = hw::load_machine("cloudmatrix384", kWide);
  const auto effective = [&](const char* study, const hw::Machine& machine) {
    const auto found = std::ranges::find(studies::registry(), study, &studies::Study::name);
    studies::StudySettings settings(*found, {});
    settings.settle(machine);
    return studies::to_json(settings.effective());
  };
  for (const char* study : {"gemm", "mla", "ffn", "op"})
    EXPECT_EQ(effective(study, wide)["cores"], 32) << study;
  for (const char* study : {"dispatch", "combine", "moe", "stream", "p2p"})
    EXPECT_EQ(effective(study, wide)["cores"], 64) << study;
  EXPECT_EQ(effective("moe", wide)["expert-cores"], 32);
  for (const char* study : {"layer", "decode"})
    EXPECT_EQ(effective(study, wide)["split"], "21/42,11/22") << study;
  const hw::Machine plain = hw::load_machine("cloudmatrix384");
  EXPECT_EQ(effective("gemm", plain)["cores"], 24);
  EXPECT_EQ(effective("stream", plain)["cores"], 48);
  EXPECT_EQ(effective("decode", plain)["split"], "16/32,8/16");
  // An AIC has two AIVs: of 24 and 40 there are 20 groups.
  EXPECT_EQ(effective("gemm", hw::load_machine("cloudmatrix384", {"die.aiv=40"}))["cores"], 20);
}

// An NPU is what a package holds: two dies, or one.
TEST(OtherDies, RequestsAndTokensAreOfAPackage) {
  const hw::Machine one = hw::load_machine("atlas-800i-a2"), two = hw::load_machine("cloudmatrix384");
  ASSERT_EQ(one.topology.dies_per_package, 1);
  studies::LayerOptions layer;
  layer.batch = 6;
  layer.settle(two);
  EXPECT_EQ(layer.requests_of_die(), 3);
  layer.settle(one);
  EXPECT_EQ(layer.requests_of_die(), 6);
  studies::PrefillOptions prefill;
  prefill.settle(one);
  EXPECT_EQ(prefill.dies_of_npu, 1);
  prefill.settle(two);
  EXPECT_EQ(prefill.dies_of_npu, 2);
}

TEST(OtherDies, RatiosShareTheGroups) {
  const hw::Machine plain = hw::load_machine("cloudmatrix384");
  studies::LayerOptions options;
  options.split = "3:1";
  options.settle(plain);
  EXPECT_EQ(options.split, "18/36,6/12");
  options.split = "1:1000";
  options.settle(plain);
  EXPECT_EQ(options.split, "1/2,23/46") << "each has one at least";
  options.split = "0:1";
  EXPECT_THROW(options.settle(plain), InputError);
}

// A third more cores, three quarters of the time that further rows of a product take, what begins and ends it
// aside: with an L2 that feeds them all.
TEST(OtherDies, AProductUsesAllCubeCores) {
  studies::GemmSetting setting;
  setting.type = CM384_GEMM_BF16;
  setting.n = 512;
  setting.k = 2048;
  const auto time = [&](std::uint32_t tiles, int blocks, Changes changes) {
    setting.group_rows.assign(1, 128 * tiles);
    setting.blocks = blocks;
    changes.emplace_back("l2.slice_bandwidth=400GB/s");
    return run_gemm(setting, changes).kernel_us;
  };
  const auto more = [&](int blocks, const Changes& changes) {
    return time(192, blocks, changes) - time(96, blocks, changes);
  };
  EXPECT_NEAR(more(24, {}) / more(32, kWide), 32.0 / 24, 0.06);
}

// Half, all and twice the bandwidth: rates of a stream are as far apart, what begins and ends it aside.
TEST(OtherDies, StreamsFollowTheBandwidthOfHbm) {
  const auto rate = [](const Changes& changes) {
    const studies::StreamReading whole = run_stream("64x2048", changes, 1),
                                 half = run_stream("64x2048", changes, 0.5);
    return (whole.bandwidth_TBps * whole.kernel_us - half.bandwidth_TBps * half.kernel_us) /
           (whole.kernel_us - half.kernel_us);
  };
  const double half = rate({"hbm.bandwidth=819.2GB/s"}), all = rate({}),
               twice = rate({"hbm.bandwidth=3276.8GB/s"});
  EXPECT_NEAR(all / half, 2, 0.04);
  EXPECT_NEAR(twice / all, 2, 0.04);
  // Lines lie less evenly over stacks that are no power of two.
  const double three = rate({"hbm.stacks=3"}) / all;
  EXPECT_LT(three, 0.76);
  EXPECT_GT(three, 0.75 * 0.95);
}

// Ticks of any rate, counted exactly.
TEST(OtherDies, TheSystemCounterKeepsItsRate) {
  supernode::SupernodeOptions options;
  options.dies = {0};
  for (const auto& [rate, ticks] : {std::pair{"50MHz", 50'000u}, {"2.4GHz", 2'400'000u}, {"7MHz", 7'000u}}) {
    const hw::Machine machine = hw::load_machine("node8", {std::string("die.sys_count=") + rate});
    supernode::Supernode supernode(machine, options);
    EXPECT_EQ(supernode.die(0).sys_count(1_ms), ticks) << rate;
    EXPECT_EQ(supernode.die(0).sys_count(1_ms - 1_ps), ticks - 1) << rate;
    EXPECT_EQ(supernode.die(0).sys_count(Time{}), 0u) << rate;
  }
}

}  // namespace
}  // namespace cm384::testing::other_dies_test
