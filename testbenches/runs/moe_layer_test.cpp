// A mixture-of-experts layer: dispatch, the experts' networks, combine, as firmware. In payload mode full the
// sums at the sources equal the host's bit for bit, from the tokens on.
#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "testbenches/runs/machine_run.h"
#include "testbenches/runs/noise_forms.h"
#include "workloads/operators/reference/expert_networks.h"

namespace cm384::testing::moe_layer_test {
namespace {

using studies::MoeCase;
using studies::MoeReading;

MoeCase layer(int ranks, int batch, int hidden, int width, int expert_cores) {
  MoeCase setting;
  static_cast<studies::CombineCase&>(setting) = small_combine(ranks, batch, hidden, 16);
  setting.expert_network = true;
  setting.expert_width = width;
  setting.expert_cores = expert_cores;
  return setting;
}

void expect_right_at_the_same_times(MoeCase setting, const std::string& what) {
  setting.full = true;
  setting.check_hazards = "on";
  const MoeReading full = run_moe(setting);
  EXPECT_TRUE(full.correct && *full.correct) << what << ": " << full.first_difference;
  setting.full = false;
  const MoeReading control = run_moe(setting);
  EXPECT_FALSE(control.correct.has_value());
  EXPECT_FALSE(full.ends.empty());
  EXPECT_TRUE(full.ends == control.ends) << what;
}

// Zipf leaves experts without a token and some with one; the second round has to write everything again.
TEST(MoeLayer, EqualsTheReferenceWithEveryRouting) {
  for (const std::string& routing :
       {std::string("uniform"), std::string("zipf:1.2"), "trace:" + sample_trace()}) {
    MoeCase setting = layer(8, 6, 320, 128, 4);
    setting.routing = routing;
    setting.iterations = 2;
    expect_right_at_the_same_times(setting, routing);
  }
}

// Experts of several copies, experts that do not divide over the ranks, a shared expert on ranks of its own,
// one token per rank, one group of cores.
TEST(MoeLayer, EqualsTheReferenceAtOddShapes) {
  for (const auto& [ranks, experts, shared, batch, cores] :
       {std::tuple{9, 4, 0, 3, 1}, std::tuple{3, 17, 0, 1, 24}, std::tuple{7, 10, 2, 5, 2}}) {
    MoeCase setting = layer(ranks, batch, 192, 64, cores);
    setting.top_k = 3;
    setting.experts = experts;
    setting.shared_copies = shared;
    expect_right_at_the_same_times(setting, std::to_string(ranks) + " ranks");
  }
}

// Experts' networks on three ranks of eight, which have no tokens; the others wait for them.
TEST(MoeLayer, EqualsTheReferenceWhereSomeRanksHoldAllExperts) {
  MoeCase setting = layer(8, 6, 320, 128, 4);
  setting.experts = 12;
  setting.expert_ranks = 3;
  setting.shared_copies = 1;
  setting.iterations = 2;
  expect_right_at_the_same_times(setting, "three of eight");
  setting.expert_network = false;
  setting.expert_time = 100_us;
  const double with = run_moe(setting).latency_us.max;
  setting.expert_time = 300_us;
  EXPECT_NEAR(run_moe(setting).latency_us.max, with + 200, 5);
}

// Eight dies: the round trip through INT8 has the noise of the tokens' crest factor; the experts add that of
// their weights and of the rows between; combine averages what the experts of a token add on their own.
TEST(MoeLayer, NoiseAddsUpFromDispatchToCombine) {
  double before = 0;
  for (const char* draw : {"normal", "outliers:3:30"}) {
    MoeCase setting = layer(8, 6, 512, 128, 4);
    setting.experts = 16;
    setting.full = true;
    setting.no_shared_output = true;
    setting.drawn = reference::parse_draw(draw);
    const MoeReading reading = run_moe(setting);
    EXPECT_TRUE(reading.correct && *reading.correct) << reading.first_difference;
    ASSERT_EQ(reading.accuracy.size(), 3u);
    const double sent = *reading.accuracy[0].exact.snr_db(), made = *reading.accuracy[1].exact.snr_db(),
                 combined = *reading.accuracy[2].exact.snr_db();
    EXPECT_NEAR(sent, noise_of_crest(*reading.accuracy[0].crest), 0.5);
    EXPECT_LT(made,
              added_noises({sent, 40}));  // weights of the second product: a crest factor of 3.3 or more
    // A factor of silu(gate) x up has the noise of its product, a rest that of rows with a crest factor of 9.
    EXPECT_GT(made, added_noises({sent - 5, 37, 34, 42}));
    EXPECT_NEAR(combined, made, 1.5);
    EXPECT_GT(*reading.accuracy[2].of_bf16.snr_db(), 44);
    EXPECT_GT(*reading.rerouted, before);
    before = *reading.rerouted;
    EXPECT_LT(before, 0.9);
  }
}

// The launch of the published deployment: 8 AIC and 16 AIV for the experts beside those of attention.
TEST(MoeLayer, EqualsTheReferenceOn64Ranks) {
  MoeCase setting = layer(64, 2, 256, 64, 8);
  expect_right_at_the_same_times(setting, "64 ranks");
}

// The comparison is with these experts' outputs: no other rows pass it.
TEST(MoeLayer, NetworksDifferFromExpertToExpert) {
  const auto one = reference::make_network_weights(1, 3, 64, 64),
             other = reference::make_network_weights(1, 4, 64, 64);
  EXPECT_NE(one.gate_up, other.gate_up);
  EXPECT_NE(one.down_scales, other.down_scales);
  EXPECT_EQ(one.down, reference::make_network_weights(1, 3, 64, 64).down);
}

TEST(MoeLayer, ExpertsTakeTheTimeOfTheirWidth) {
  MoeCase setting;
  static_cast<studies::CombineCase&>(setting) = small_combine(4, 8, 512, 16);
  const MoeReading without = run_moe(setting);
  setting.expert_network = true;
  setting.expert_width = 128;
  setting.expert_cores = 4;
  const MoeReading with = run_moe(setting);
  ASSERT_EQ(with.phases.size(), 3u);
  EXPECT_EQ(without.phases[1].mean_us, 0.0);
  EXPECT_GT(with.phases[1].mean_us, 12.0);  // launch and teardown alone
  setting.expert_width = 1024;
  EXPECT_GT(run_moe(setting).phases[1].mean_us, with.phases[1].mean_us);
}

}  // namespace
}  // namespace cm384::testing::moe_layer_test
