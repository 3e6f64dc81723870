// How exact a decode layer is on drawn tokens, each kernel on what the one before left, against closed forms
// of the noise that rounding makes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/error.h"
#include "testbenches/runs/noise_forms.h"
#include "workloads/layer/layer_values.h"

namespace cm384::testing::layer_accuracy_test {
namespace {

using reference::LayerAccuracy;
using reference::StageAccuracy;
using studies::LayerSetting;

class Silence final : public studies::Progress {
  void update(double, Time, std::uint64_t) override {}
};

LayerSetting small_layer() {
  LayerSetting setting;
  setting.moe.ranks = 8;
  setting.moe.batch = 6;
  setting.moe.experts = 64;
  setting.moe.top_k = 8;
  setting.moe.hidden = 512;
  setting.moe.routing = "uniform";
  setting.moe.shared_copies = 1;
  setting.moe.cores = 16;
  setting.attention.queries = 2;
  setting.attention.heads = 16;
  setting.attention.hidden = 512;
  setting.attention.q_lora = 256;
  setting.attention.int8 = true;
  setting.width = 128;
  setting.cores = {studies::CoreShare{0, 8}, studies::CoreShare{8, 4}};
  setting.lengths = {{{20, 129, 64}}};
  setting.lengths_of.assign(8, 0);
  return setting;
}

LayerAccuracy measure(const LayerSetting& setting, std::string_view draw) {
  static const volatile std::sig_atomic_t never = 0;
  const hw::Machine machine = hw::load_machine(std::string(hw::kDefaultMachine), {});
  Silence silence;
  studies::SimulatorCounts counts;
  const auto found = studies::measure_exactness(studies::StudyContext{machine, 1, silence, never}, setting,
                                                reference::parse_draw(draw), counts);
  EXPECT_EQ(found->first_difference, "");
  return found->accuracy;
}

const StageAccuracy& stage(const LayerAccuracy& accuracy, std::string_view name) {
  return *std::ranges::find(accuracy.stages, name, &StageAccuracy::name);
}
double own(const LayerAccuracy& accuracy, std::string_view name) {
  return *stage(accuracy, name).own->snr_db();
}
double all(const LayerAccuracy& accuracy, std::string_view name) {
  return *stage(accuracy, name).exact.snr_db();
}

// Of normal values rounded to BF16: from 2^e on steps of 2^(e - 7), whose squares are a twelfth of that.
double of_bf16_rounding() {
  double squares = 0;
  for (int e = -30; e < 4; ++e) {
    const auto below = [](int power) { return std::erf(std::exp2(power) / std::sqrt(2.0)); };
    squares += std::exp2(2 * (e - 7)) / 12 * (below(e + 1) - below(e));
  }
  return -10 * std::log10(squares);
}
// So many such roundings.
double of_roundings(double count) {
  return of_bf16_rounding() - 10 * std::log10(count);
}

const LayerAccuracy& normal_tokens() {
  static const LayerAccuracy measured = measure(small_layer(), "normal");
  return measured;
}

TEST(LayerAccuracy, EachOperatorAddsTheNoiseOfItsRoundings) {
  const LayerAccuracy& normal = normal_tokens();
  EXPECT_NEAR(own(normal, "norm"), of_bf16_rounding(), 0.5);
  EXPECT_NEAR(own(normal, "logits"), of_bf16_rounding(), 0.5);  // of the weights
  EXPECT_NEAR(own(normal, "combine"), of_bf16_rounding(), 0.5);
  EXPECT_NEAR(own(normal, "dispatch"), noise_of_crest(*stage(normal, "dispatch").crest), 0.5);
  // Two products in INT8; the latent between them is shorter than a token, its crest factor smaller.
  const StageAccuracy &prolog = stage(normal, "prolog"), &output = stage(normal, "output");
  const double first = added_noises({noise_of_crest(*prolog.crest), noise_of_crest(*prolog.weights_crest)});
  EXPECT_NEAR(own(normal, "prolog"), added_noises({first, first}), 1);
  EXPECT_NEAR(own(normal, "cache"), first, 1);
  EXPECT_NEAR(own(normal, "output"),
              added_noises({noise_of_crest(*output.crest), noise_of_crest(*output.weights_crest)}), 1);
  // Of probabilities and results, in BF16.
  EXPECT_GT(own(normal, "attention"), of_roundings(4));
  EXPECT_GT(own(normal, "gate"), 100);
}

TEST(LayerAccuracy, NoiseAddsUpAlongTheLayer) {
  const LayerAccuracy& normal = normal_tokens();
  for (const StageAccuracy& one : normal.stages) {
    if (one.own) {
      EXPECT_LT(*one.exact.snr_db(), *one.own->snr_db() + 0.1) << one.name;
    }
    EXPECT_GT(*one.of_bf16.snr_db(), *one.exact.snr_db()) << one.name;
  }
  // The residual sum is nearly the tokens, which are as they were.
  EXPECT_GT(all(normal, "norm"), all(normal, "output"));
  EXPECT_NEAR(all(normal, "dispatch"), added_noises({all(normal, "norm"), own(normal, "dispatch")}), 0.5);
  EXPECT_LT(all(normal, "experts"), all(normal, "dispatch"));
  // Other experts than those of double precision are an error of their own.
  EXPECT_LT(all(normal, "layer"), all(normal, "combine"));
  EXPECT_LT(all(normal, "update"), all(normal, "layer"));
  EXPECT_GT(normal.rerouted, 0);
  EXPECT_LE(normal.bf16_rerouted, normal.rerouted);
}

TEST(LayerAccuracy, OutliersCostWhatTheirCrestFactorSays) {
  const LayerAccuracy &normal = normal_tokens(), steep = measure(small_layer(), "outliers:3:30");
  const auto loss = [&](std::string_view name) { return own(normal, name) - own(steep, name); };
  EXPECT_NEAR(loss("dispatch"),
              20 * std::log10(*stage(steep, "dispatch").crest / *stage(normal, "dispatch").crest), 0.7);
  EXPECT_GT(loss("cache"), 3);
  EXPECT_LT(all(steep, "update"), all(normal, "update"));
}

TEST(LayerAccuracy, ProjectionsInBf16HaveItsNoiseAlone) {
  LayerSetting setting = small_layer();
  setting.attention.int8 = false;
  const LayerAccuracy found = measure(setting, "normal");
  // Three products: what they read, their weights, what they leave, and latents as they are normed.
  EXPECT_NEAR(own(found, "prolog"), of_roundings(8), 0.7);
  EXPECT_NEAR(own(found, "output"), of_roundings(4), 0.7);  // two products
  EXPECT_FALSE(stage(found, "output").crest.has_value());
}

TEST(LayerAccuracy, ExpertsAreChosenByGroupsWhereTheseLimit) {
  const std::vector<double> logits{5, 0, 3, 2.9, 4, -9, 1, 1};
  reference::GateCase gate{.tokens = 1, .experts = 8, .top_groups = 2};
  gate.chosen = 3;
  gate.group = 2;
  EXPECT_EQ(reference::choose_experts(gate, logits), (std::vector<std::int32_t>{0, 2, 3}));
  gate.group = 0;
  EXPECT_EQ(reference::choose_experts(gate, logits), (std::vector<std::int32_t>{0, 4, 2}));
}

TEST(LayerAccuracy, RefusesWhatItHasNoValuesOf) {
  const auto refused = [](auto&& change) {
    LayerSetting setting = small_layer();
    change(setting);
    EXPECT_THROW(studies::check_values(setting), InputError);
  };
  EXPECT_NO_THROW(studies::check_values(small_layer()));
  refused([](LayerSetting& s) { s.attention.kv_heads = 4; });
  refused([](LayerSetting& s) { s.attention.chosen = 64; });
  refused([](LayerSetting& s) { s.dense_width = 512; });
  refused([](LayerSetting& s) { s.tensor = 2; });
  refused([](LayerSetting& s) { s.int4_networks = true; });
  refused([](LayerSetting& s) { s.moe.top_k = 6; });
  refused([](LayerSetting& s) { s.width = 60'000; });
}

}  // namespace
}  // namespace cm384::testing::layer_accuracy_test
