// A layer's attention from its input to its output projection: every stage within the stated bounds of a
// double-precision reference, alone and on what the stage before left; the same times in both payload modes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testbenches/runs/machine_run.h"
#include "workloads/operators/reference/mla_projections.h"

namespace cm384::testing::mla_layer_test {
namespace {

using studies::CubeReading;
using studies::MlaReading;
using studies::MlaSetting;
using ::testing::HasSubstr;

MlaSetting layer(std::vector<std::uint32_t> kv_lens, std::uint32_t queries, std::uint32_t heads, int blocks,
                 std::uint32_t hidden, std::uint32_t q_lora, bool int8 = false) {
  MlaSetting setting;
  setting.kv_lens = std::move(kv_lens);
  setting.queries = queries;
  setting.heads = heads;
  setting.blocks = blocks;
  setting.prolog = setting.output = true;
  setting.hidden = hidden;
  setting.q_lora = q_lora;
  setting.int8 = int8;
  return setting;
}

void expect_right_and_as_long(const CubeReading& full, const CubeReading& control, const char* stage) {
  EXPECT_TRUE(full.correct && *full.correct) << stage << ": " << full.first_difference;
  EXPECT_EQ(full.kernel_us, control.kernel_us) << stage;
  EXPECT_EQ(full.task_us, control.task_us) << stage;
  EXPECT_EQ(full.hbm_bytes, control.hbm_bytes) << stage;
  EXPECT_FALSE(control.correct.has_value());
}

class MlaLayer : public ::testing::TestWithParam<MlaSetting> {};

TEST_P(MlaLayer, IsWithinItsBoundsStageAfterStage) {
  MlaSetting setting = GetParam();
  setting.full = true;
  const MlaReading full = run_mla(setting);
  setting.full = false;
  const MlaReading control = run_mla(setting);
  expect_right_and_as_long(full.prolog, control.prolog, "prolog");
  expect_right_and_as_long(full.attention, control.attention, "attention");
  expect_right_and_as_long(full.output, control.output, "output");
}

// One token; more and fewer tokens than vector cores and than rows of a tile; newest tokens that begin a page
// and that end one; two queries whose tokens fall on two pages.
INSTANTIATE_TEST_SUITE_P(
    Ragged, MlaLayer,
    ::testing::Values(layer({1}, 1, 16, 2, 320, 64), layer({128, 129, 1, 300, 77}, 1, 48, 3, 192, 192),
                      layer({128, 40, 127}, 2, 32, 2, 448, 320),
                      layer({126, 40, 127}, 3, 32, 2, 192, 192, true),
                      layer(std::vector<std::uint32_t>(70, 20), 2, 16, 4, 128, 128),
                      layer({1}, 1, 16, 2, 320, 64, true),
                      layer({128, 129, 1, 300, 77}, 1, 48, 3, 192, 192, true),
                      layer(std::vector<std::uint32_t>(40, 9), 2, 128, 4, 128, 128, true)));

TEST(MlaStage, RunsAlone) {
  MlaSetting setting = layer({90, 33}, 1, 16, 2, 256, 128);
  setting.attention = setting.output = false;
  setting.full = true;
  const CubeReading prolog = run_mla(setting).prolog;
  EXPECT_TRUE(prolog.correct && *prolog.correct) << prolog.first_difference;
  setting.prolog = false;
  setting.output = true;
  const MlaReading reading = run_mla(setting);
  EXPECT_TRUE(reading.output.correct && *reading.output.correct) << reading.output.first_difference;
  EXPECT_EQ(reading.prolog.task_us, 0.0);
  EXPECT_EQ(reading.attention.task_us, 0.0);
}

// The published sizes in control: the weights' bytes bound both projections, once from HBM.
TEST(MlaStage, ReadsTheWeightsOnce) {
  MlaSetting setting;
  setting.kv_lens.assign(96, 1024);
  setting.prolog = setting.output = true;
  const MlaReading reading = run_mla(setting);
  const double prolog = 2.0 * (7168 * 2112 + 1536 * 128 * 192 + 128 * 128 * 512);
  const double output = 2.0 * (128 * 512 * 128 + 128 * 128 * 7168);
  EXPECT_GT(reading.prolog.hbm_bytes, prolog);
  EXPECT_LT(reading.prolog.hbm_bytes, 1.5 * prolog);
  EXPECT_GT(reading.output.hbm_bytes, output);
  EXPECT_LT(reading.output.hbm_bytes, 1.2 * output);
  // INT8: half of what is no head's.
  setting.int8 = true;
  const MlaReading half = run_mla(setting);
  EXPECT_NEAR(reading.prolog.hbm_bytes - half.prolog.hbm_bytes, 7168.0 * 2112 + 1536 * 128 * 192, 8e6);
  EXPECT_NEAR(reading.output.hbm_bytes - half.output.hbm_bytes, 128.0 * 128 * 7168, 8e6);
}

// What the bounds are worth: results of other inputs, and of one element that is some steps off, are out of
// them.
TEST(ProjectionReference, TellsWrongValues) {
  const reference::ProjectionCase one{1, 1, 128, 64, 16}, other{2, 1, 128, 64, 16};
  const auto weights = make_output_weights(one);
  const std::vector<std::uint16_t> latents(16 * 512, 0x3f80), zeros(128, 0);  // ones
  EXPECT_THAT(compare_output(one, weights, latents, zeros), HasSubstr("output element 0"));
  const std::vector<std::uint32_t> at{5}, next{6};
  const auto in = make_prolog_inputs(one, at);
  EXPECT_NE(in.rope, make_prolog_inputs(one, next).rope);
  EXPECT_NE(in.down.bf16, make_prolog_inputs(other, at).down.bf16);
  reference::ProjectionCase int8 = one;
  int8.int8 = true;
  EXPECT_THAT(compare_output(int8, make_output_weights(int8), latents, zeros), HasSubstr("output element 0"));
  const std::vector<std::uint16_t> queries(16 * 576, 0), cached(576, 0);
  EXPECT_THAT(compare_prolog(one, in, 0, {queries, cached}), HasSubstr("cached latent element"));
}

}  // namespace
}  // namespace cm384::testing::mla_layer_test
