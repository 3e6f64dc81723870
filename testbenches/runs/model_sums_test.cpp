// What the operators of a layer multiply, weigh and read of the cache adds up, layer by layer and over ranks,
// to what is known of each model. The numbers are worked by hand from public configurations; nothing of
// hw/models computes them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <fstream>
#include <string_view>

#include "testbenches/hw/refusal.h"
#include "testbenches/workloads/operators/die_rig.h"
#include "workloads/layer/decode.h"
#include "workloads/layer/layer_program.h"
#include "workloads/layer/step_deployment.h"

namespace cm384::testing::model_sums_test {
namespace {

using operators::Work;
using studies::LayerProgram;
using studies::LayerSetting;
using studies::LayerSpot;
using studies::LayerStep;
using studies::Stages;
using Whole = std::int64_t;

// A layer's matrices in elements, FLOPs against a cached token, bytes of a cached token; and of the whole
// model what a token passes.
struct Known {
  const char* model;
  int ranks;
  Whole attention, dense, expert, gate;  // 0: it has none
  Whole token_flops, token_bytes;        // of a layer
  Whole active, head;                    // of the model; the head is in it
  int dense_layers, moe_layers, chosen, shared;
  Whole kv_bytes, sliding_bytes;  // of a token; of a request, as long as a window is
  Whole up;                       // of attention: what stays BF16, from the latents to each head
  // Of an indexer: elements, FLOPs against a cached token, and layers that have one.
  Whole index = 0, index_flops = 0;
  int choosing = 0;
};
constexpr std::array kKnown{
    Known{"deepseek-r1", 16, 187'105'280, 396'361'728, 44'040'192, 1'835'008, 278'528, 1'152, 36'624'596'992,
          926'679'040, 3, 58, 8, 1, 70'272, 0, 16'777'216},
    Known{"deepseek-v3.2", 16,          187'105'280, 396'361'728, 44'040'192, 1'835'008, 278'528, 1'152,
          37'476'106'240,  926'679'040, 3,           58,          8,          1,         70'272,  0,
          16'777'216,      13'959'168,  16'384,      61},
    Known{"glm-5",        16,          165'019'648, 226'492'416, 37'748'736, 1'572'864, 139'264, 1'152,
          40'831'942'656, 951'582'720, 3,           75,          8,          1,         89'856,  0,
          14'680'064,     9'371'648,   8'192,       78},
    Known{"glm-5.2",      16,          165'019'648, 226'492'416, 37'748'736, 1'572'864, 139'264, 1'152,
          40'297'758'720, 951'582'720, 3,           75,          8,          1,         89'856,  0,
          14'680'064,     9'371'648,   8'192,       21},
    Known{"kimi-k2", 16, 101'122'048, 396'361'728, 44'040'192, 2'752'512, 139'264, 1'152, 31'686'066'176,
          1'174'405'120, 1, 60, 8, 1, 70'272, 0, 8'388'608},
    Known{"glm-4.5", 16, 136'314'880, 188'743'680, 23'592'960, 819'200, 49'152, 4'096, 32'854'016'000,
          775'946'240, 3, 89, 8, 1, 376'832, 0, 0},
    Known{"qwen3-235b-a22b", 16, 71'303'168, 0, 18'874'368, 524'288, 32'768, 2'048, 21'567'635'456,
          622'329'856, 0, 94, 8, 0, 192'512, 0, 0},
    Known{"qwen3-32b", 8, 94'371'840, 393'216'000, 0, 0, 32'768, 4'096, 31'983'534'080, 777'912'320, 64, 0, 0,
          0, 262'144, 0, 0},
    Known{"llama-3.3-70b", 8, 150'994'944, 704'643'072, 0, 0, 32'768, 4'096, 69'501'714'432, 1'050'673'152,
          80, 0, 0, 0, 327'680, 0, 0},
    Known{"gpt-oss-120b", 16, 26'542'080, 0, 24'883'200, 368'640, 16'384, 2'048, 5'131'100'160, 579'133'440,
          0, 36, 4, 0, 36'864, 4'718'592, 0},
};

class Silent final : public studies::Progress {
  void update(double, Time, std::uint64_t) override {}
};

constexpr int kBatch = 8, kKv = 300, kLongKv = 3000, kChosen = 2048;

struct Layer {
  LayerSetting setting;
  LayerProgram program;
};

// One microbatch of so small a batch; all products BF16, so that an element of a weight has two bytes.
Layer layer_of(const Known& known, bool dense, const char* weights = "int8") {
  static const volatile std::sig_atomic_t never = 0;
  const hw::Machine machine = hw::load_machine(std::string(hw::kDefaultMachine));
  Silent silent;
  studies::DecodeOptions options;
  options.layer.model = known.model;
  options.follow({});
  EXPECT_EQ(options.dense_layers, known.dense_layers);
  EXPECT_EQ(options.moe_layers, known.moe_layers);
  studies::LayerOptions& o = options.layer;
  o.ranks = known.ranks;
  o.batch = kBatch;
  o.kv = known.index > 0 ? kLongKv : kKv;
  o.microbatches = "1";
  o.layers = 2;
  o.int8 = false;
  o.networks = weights;
  o.window = 0;
  o.detail = 1;
  o.tensor = o.sharing();
  if (dense) o.experts = 0;
  const LayerSetting setting = layer_settings(studies::StudyContext{machine, 1, silent, never}, o).front();
  return {setting, make_layer_program(setting, 1)};
}

// Work of the operators of a step on a rank, by their order.
std::vector<Work> works_of(const LayerStep& step, const LayerSpot& at) {
  operators::DieRig rig;
  host::DeviceMemory memory(rig.runtime, 0);
  const Stages stages = step.make(at);
  for (const auto& stage : stages.placed) stage->place(rig.site(memory, 0, 24));
  std::vector<Work> works;
  for (const operators::KernelOperator* stage : stages.run) works.push_back(stage->work());
  return works;
}

const LayerStep& step_of(const LayerProgram& program, const std::string& kernel) {
  for (const LayerStep& step : program.steps) {
    if (std::ranges::find(step.names, kernel) != step.names.end()) return step;
  }
  throw std::out_of_range(kernel);
}

class ModelSums : public ::testing::TestWithParam<Known> {};

// FLOPs of a token in the attention's products and in a dense network.
struct Dense {
  double attention = 0, network = 0;
};

Dense check_attention(const Known& known, const Layer& layer) {
  const std::vector<Work> works = works_of(step_of(layer.program, "attention"), {0, 0});
  const double sharing = layer.setting.tensor, requests = kBatch / 2 * sharing;
  const double queries = layer.setting.attention.queries, tokens = requests * queries;
  const Work &prolog = works.front(), &output = works.back(), &attention = works[works.size() - 2];
  double weights = prolog.weights + output.weights, products = prolog.operations + output.operations,
         seen = 0;
  if (known.index > 0) {
    weights += works[1].weights;
    products += works[1].operations;
  }
  const double elements = static_cast<double>(known.attention + known.index);
  EXPECT_EQ(sharing * weights, 2.0 * elements);
  products *= sharing / tokens;
  EXPECT_EQ(products, 2.0 * elements);
  for (double query = 0; query < queries; ++query)
    seen += requests * ((known.index > 0 ? kLongKv : kKv) + query);
  const auto token_flops = static_cast<double>(known.token_flops),
             token_bytes = static_cast<double>(known.token_bytes);
  if (known.index == 0) {
    EXPECT_EQ(sharing * attention.operations, token_flops * seen);
    EXPECT_EQ(sharing * attention.cache, token_bytes * requests * (kKv + queries - 1));
    return {products, 0};
  }
  // Scores of all cached tokens, each key once; attention over those that each query has chosen.
  EXPECT_EQ(works[2].operations, static_cast<double>(known.index_flops) * seen);
  EXPECT_EQ(works[2].cache, 128.0 * requests * (kLongKv + queries - 1));
  EXPECT_EQ(attention.operations, token_flops * tokens * kChosen);
  EXPECT_EQ(attention.cache, token_bytes * tokens * kChosen);
  return {products, 0};
}

Dense check_dense(const Known& known) {
  const Layer layer = layer_of(known, true);
  Dense made = check_attention(known, layer);
  const double sharing = layer.setting.tensor, tokens = layer.setting.moe.batch * sharing;
  double weights = 0;
  for (const Work& work : works_of(step_of(layer.program, "network"), {0, 0})) {
    weights += work.weights;
    made.network += sharing * (work.weights > 0 ? work.operations : 0) / tokens;
  }
  EXPECT_EQ(sharing * weights, static_cast<double>(known.dense));
  EXPECT_EQ(made.network, 2.0 * static_cast<double>(known.dense));
  return made;
}

// FLOPs of a token in the gate and in its experts.
double check_experts(const Known& known, const Layer& layer) {
  const Work gate = works_of(step_of(layer.program, "gate"), {0, 0})[1];
  const double own = layer.setting.moe.batch, all = own * known.ranks;
  EXPECT_EQ(gate.weights, 2.0 * static_cast<double>(known.gate));
  EXPECT_EQ(gate.operations / own, 2.0 * static_cast<double>(known.gate));
  double weights = 0, rows = 0;
  const LayerStep& experts = step_of(layer.program, "experts");
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(known.ranks); ++rank) {
    const Work work = works_of(experts, {0, rank})[0];
    const double routed = layer.program.rows[0][rank];
    weights += work.weights;
    rows += routed;
    // What is replayed has rows in steps of 32.
    EXPECT_NEAR(work.operations, routed * 2.0 * static_cast<double>(known.expert),
                32.0 * static_cast<double>(known.expert));
  }
  EXPECT_EQ(rows, all * (known.chosen + known.shared));
  const double copies = weights / static_cast<double>(known.expert);
  // Slots of ranks that are left over have further copies, fewer than there are ranks.
  const int stated = layer.setting.moe.experts + layer.setting.moe.shared_copies;
  EXPECT_GE(copies, stated);
  EXPECT_LT(copies, stated + known.ranks);
  return 2.0 * static_cast<double>(known.gate) + rows / all * 2.0 * static_cast<double>(known.expert);
}

TEST_P(ModelSums, OfOperatorsAreTheModels) {
  const Known& known = GetParam();
  double flops = 2.0 * static_cast<double>(known.head);
  if (known.dense_layers > 0) {
    const Dense dense = check_dense(known);
    flops += known.dense_layers * (dense.attention + dense.network);
  }
  if (known.moe_layers > 0) {
    const Layer layer = layer_of(known, false);
    const Dense attention = check_attention(known, layer);
    flops += known.moe_layers * (attention.attention + check_experts(known, layer));
  }
  // Layers without an indexer of their own.
  if (known.index > 0)
    flops -=
        (known.dense_layers + known.moe_layers - known.choosing) * 2.0 * static_cast<double>(known.index);
  EXPECT_EQ(flops, 2.0 * static_cast<double>(known.active));
}

// The same multiplications of twice the bytes, at the rate of BF16; with weights of 4 bits of half of them.
TEST_P(ModelSums, OfNetworksInBf16WeighTwiceAsMuch) {
  const Known& known = GetParam();
  const bool dense = known.moe_layers == 0;
  const auto networks = [&](const char* weights) {
    Work sum;
    for (const Work& work :
         works_of(step_of(layer_of(known, dense, weights).program, dense ? "network" : "experts"), {0, 1})) {
      if (work.weights == 0) continue;
      EXPECT_EQ(work.int8, std::string_view(weights) != "bf16");
      sum.operations += work.operations;
      sum.weights += work.weights;
    }
    return sum;
  };
  const Work int8 = networks("int8"), bf16 = networks("bf16"), int4 = networks("w4a8");
  EXPECT_GT(int8.weights, 0);
  EXPECT_EQ(bf16.operations, int8.operations);
  EXPECT_EQ(bf16.weights, 2 * int8.weights);
  EXPECT_EQ(int4.operations, int8.operations);
  EXPECT_EQ(2 * int4.weights, int8.weights);
  // BF16 rows are not quantised before a dense network.
  const auto quantises = [&](const char* weights) {
    const Layer layer = layer_of(known, true, weights);
    return std::ranges::any_of(layer.program.steps, [](const LayerStep& step) {
      return std::ranges::find(step.names, "quantise") != step.names.end();
    });
  };
  if (!dense && known.dense_layers == 0) return;
  EXPECT_TRUE(quantises("int8"));
  EXPECT_TRUE(quantises("w4a8"));
  EXPECT_FALSE(quantises("bf16"));
}

// A die's weights, and the cache of a request: products and experts INT8, what makes heads of latents and the
// head BF16. All of a rank's slots have an expert.
TEST_P(ModelSums, OfADieAreTheModels) {
  const Known& known = GetParam();
  studies::DecodeOptions options;
  options.layer.model = known.model;
  options.follow({});
  options.layer.ranks = known.ranks;
  options.layer.kv = 5000;
  const int drafts = options.layer.mtp, copies = known.shared == 0 ? 0 : 1;
  const double sharing = known.moe_layers == 0 ? known.ranks : 1;
  const studies::DecodeMemory memory = memory_of(options, copies, 7 * 5000, 7 * 128);
  const auto experts = static_cast<Whole>(options.layer.experts);
  // The shared expert has ranks of its own.
  const Whole slots = (experts + known.ranks - copies - 1) / (known.ranks - copies);
  const auto whole = [](Whole elements) { return static_cast<double>(elements); };
  const double weights =
      (known.dense_layers + known.moe_layers + drafts) * whole(known.attention + known.up) / sharing +
      known.dense_layers * whole(known.dense) / sharing +
      (known.moe_layers > 0 ? known.moe_layers + drafts : 0) * whole(slots * known.expert) +
      (known.choosing > 0 ? known.choosing + drafts : 0) * whole(known.index) + 2 * whole(known.head) +
      2 * whole(known.head) / sharing;
  EXPECT_NEAR(memory.weights, weights, 1e-9 * weights);
  // A head that is the embedding weighs nothing of its own.
  options.tied_heads = true;
  EXPECT_NEAR(memory_of(options, copies, 7 * 5000, 7 * 128).weights,
              weights - 2 * whole(known.head) / sharing, 1e-9 * weights);
  options.tied_heads = false;
  // Weights of 4 bits are those of networks and experts.
  options.layer.networks = "w4a8";
  const double networks_of_die =
      known.dense_layers * whole(known.dense) / sharing +
      (known.moe_layers > 0 ? known.moe_layers + drafts : 0) * whole(slots * known.expert);
  EXPECT_NEAR(memory_of(options, copies, 7 * 5000, 7 * 128).weights, weights - networks_of_die / 2,
              1e-9 * weights);
  // What was BF16 stays, all else weighs twice as much.
  options.layer.int8 = false;
  options.layer.networks = "bf16";
  const double stays = (known.dense_layers + known.moe_layers + drafts) * whole(2 * known.up) / sharing +
                       2 * whole(known.head) + 2 * whole(known.head) / sharing;
  EXPECT_NEAR(memory_of(options, copies, 7 * 5000, 7 * 128).weights, 2 * weights - stays, 1e-9 * weights);
  // A draft layer is one more, with a cache of its own.
  const double cached = whole(known.kv_bytes + drafts * known.token_bytes) +
                        (known.choosing > 0 ? (known.choosing + drafts) * 132.0 : 0);
  EXPECT_EQ(memory.request, cached * 5000 + whole(known.sliding_bytes));
  EXPECT_EQ(memory.cache, 7 * (cached * 5000 + whole(known.sliding_bytes)) / sharing);
}

// A layer that takes the choice of another has no indexer.
TEST(ModelSparse, ALayerThatSharesAChoiceMakesNone) {
  const auto known = std::ranges::find(kKnown, std::string_view("glm-5.2"), &Known::model);
  LayerSetting setting = layer_of(*known, false).setting;
  EXPECT_THAT(attention_names(setting.attention),
              ::testing::ElementsAre("prolog", "index_prolog", "scores", "choice", "attention", "output"));
  EXPECT_EQ(setting.attention.token_bytes(), 1152u + 132);
  setting.attention.index_heads = 0;
  const LayerProgram program = make_layer_program(setting, 1);
  const std::vector<Work> works = works_of(step_of(program, "attention"), {0, 0});
  ASSERT_EQ(works.size(), 3u);
  EXPECT_EQ(works[0].weights + works[2].weights, 2.0 * static_cast<double>(known->attention));
  EXPECT_EQ(setting.attention.token_bytes(), 1152u);
  studies::DecodeOptions options;
  options.layer.model = "glm-5.2";
  options.follow({});
  EXPECT_EQ(options.sharing_layers, 57);
}

// What a model's gate chooses: experts, of groups of so many, of so many groups.
TEST(ModelGates, AreTheModels) {
  struct Gate {
    const char* model;
    std::uint32_t chosen, group, groups;
    bool softmax;
  };
  for (const Gate& gate : {Gate{"deepseek-r1", 8, 32, 4, false}, Gate{"kimi-k2", 8, 0, 0, false},
                           Gate{"glm-4.5", 8, 0, 0, false}, Gate{"qwen3-235b-a22b", 8, 0, 0, true},
                           Gate{"gpt-oss-120b", 4, 0, 0, true}}) {
    const auto known = std::ranges::find(kKnown, std::string_view(gate.model), &Known::model);
    const LayerSetting setting = layer_of(*known, false).setting;
    EXPECT_EQ(static_cast<std::uint32_t>(setting.moe.top_k), gate.chosen) << gate.model;
    EXPECT_EQ(setting.expert_group, gate.group) << gate.model;
    if (gate.group > 0) {
      EXPECT_EQ(setting.token_groups, gate.groups) << gate.model;
    }
    EXPECT_EQ(setting.softmax_gate, gate.softmax) << gate.model;
  }
}

// The published deployment is what the options say where nobody says otherwise.
TEST(StepDeployment, ThePublishedOneIsTheDefault) {
  studies::DecodeOptions options;
  const auto parameters = hw::list_parameters(options);
  const auto values = studies::load_step_deployment("cloudmatrix384-ep320");
  EXPECT_GE(values.size(), 10u);
  for (const auto& [name, value] : values) {
    if (name == "shared-copies") {
      EXPECT_EQ(value, std::to_string(studies::default_shared_copies(options.layer.ranks)));
    } else if (name.ends_with("-tp")) {
      EXPECT_EQ(value, "1");
    } else {
      const auto found = std::ranges::find(parameters, name, &hw::Parameter::key);
      ASSERT_NE(found, parameters.end()) << name;
      EXPECT_EQ(value, hw::value_text(*found)) << name;
    }
  }
}

// Both kinds of values, and the command line's before them.
TEST(StepDeployment, ComesBeforeTheModelAndBehindTheCommandLine) {
  studies::DecodeOptions options;
  options.layer.model = "glm-4.5";
  options.layer.deployment = "qwen3-235b-a3-32";
  options.layer.ranks = 64;
  options.follow({"ranks"});
  EXPECT_EQ(options.layer.ranks, 64);
  EXPECT_EQ(options.layer.mtp, 0);
  EXPECT_EQ(options.layer.sharing(), 4);
  EXPECT_EQ(options.layer.heads, 96);
  EXPECT_EQ(options.layer.networks, "bf16");
  EXPECT_FALSE(options.layer.int8);
}

// What is assumed of those that come with cm384 may be otherwise, with a reason: they are not read else.
TEST(StepDeployment, SaysWhatNobodyPublished) {
  for (const std::string& name : studies::step_deployment_names())
    EXPECT_FALSE(studies::alternatives_of_step_deployment(name).empty()) << name;
  std::vector<std::string> open;
  for (const auto& one : studies::alternatives_of_step_deployment("cloudmatrix384-ep320")) {
    open.push_back(one.option);
    EXPECT_GE(one.values.size(), 2u);
  }
  EXPECT_THAT(open, ::testing::ElementsAre("launch", "balance", "variant", "head-tp"));
}

TEST(StepDeployment, AlternativesHaveTheValueAndAReason) {
  const std::string path = ::testing::TempDir() + "alternatives_d.toml";
  const auto said = [&](const std::string& launch) {
    std::ofstream(path) << "launch = { value = \"cpu\", from = \"assumed\", source = \"-\"" << launch
                        << " }\n";
    return refusal([&] { studies::alternatives_of_step_deployment(path); });
  };
  EXPECT_EQ(said(""), "(accepted)");
  EXPECT_EQ(said(", values = [\"cpu\", \"pipelined\"], why = \"-\""), "(accepted)");
  EXPECT_THAT(said(", values = [\"cpu\", \"pipelined\"]"),
              ::testing::HasSubstr("d.toml:1: launch: allowed: `values`"));
  EXPECT_THAT(said(", values = [\"cpu\"], why = \"-\""), ::testing::HasSubstr("two or more"));
  EXPECT_THAT(said(", values = [\"a\", \"b\"], why = \"-\""),
              ::testing::HasSubstr("has not the value itself, cpu"));
}

TEST(StepDeployment, RefusesWhatItIsNot) {
  EXPECT_THAT(refusal([] { studies::load_step_deployment("cloudmatrix384-ep32"); }),
              ::testing::AllOf(::testing::HasSubstr("no such deployment"),
                               ::testing::HasSubstr("cloudmatrix384-ep320")));
}

INSTANTIATE_TEST_SUITE_P(Shipped, ModelSums, ::testing::ValuesIn(kKnown), [](const auto& of) {
  std::string name = of.param.model;
  std::erase_if(name, [](char c) { return c == '-' || c == '.'; });
  return name;
});

}  // namespace
}  // namespace cm384::testing::model_sums_test
