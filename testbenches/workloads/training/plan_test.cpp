// Worked values of plans: operations, bytes held, messages. The numbers are of publications or made by hand.
#include "workloads/training/plan.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "base/text/error.h"
#include "hw/models/model_sizes.h"
#include "workloads/training/layer_work.h"
#include "workloads/training/training_memory.h"

namespace cm384::training::plan_test {
namespace {

using ::testing::HasSubstr;

models::Model model_of(const std::string& text) {
  return models::build_model(models::read_toml(text, "m.toml", false), "m.toml");
}

// With as many heads of keys as of queries, and a network of 8/3 of its width: 32 bytes a token and element,
// the 34 of Korthikanti (2022) without the two masks of dropout, which there is none of.
models::Model even_model() {
  return model_of(
      "hidden = 768\nlayers = 4\nvocabulary = 1024\n[attention]\nheads = 12\nkv_heads = 12\nkey_width = "
      "64\nvalue_width = 64\n[dense]\nwidth = 2048\n");
}

Plan plan_of(int data, int tensor, int pipeline) {
  Plan plan;
  plan.data = data;
  plan.tensor = tensor;
  plan.pipeline = pipeline;
  plan.global_batch = 8 * data;
  return plan;
}

double products_of(const Work& work) {
  double flops = 0;
  for (const Operation& of : work.operations)
    flops += 2.0 * static_cast<double>(of.groups * of.m) * static_cast<double>(of.n * of.k);
  return flops;
}

TEST(TrainingFlops, PublishedPerToken) {
  // DeepSeek-V3, 4,096 tokens: 250 GFLOP a token with a causal mask (arXiv:2505.09343, table 2).
  const models::Model v3 = models::load_model("deepseek-r1");
  const TokenFlops flops = token_flops(v3, 4096);
  EXPECT_DOUBLE_EQ(flops.linear, 6 * 36'624'596'992.0);
  EXPECT_DOUBLE_EQ(flops.causal, 3.0 * 4096 * 128 * (192 + 128) * 61);
  EXPECT_NEAR((flops.linear + flops.causal) / 250e9, 1, 0.01);
  EXPECT_DOUBLE_EQ(flops.full, 2 * flops.causal);
  // A window of 128 of 4,096 tokens: half of what it would be without the first tokens' short ones.
  models::Attention window;
  window.kind = models::AttentionKind::sliding;
  window.window = 128;
  EXPECT_DOUBLE_EQ(causal_tokens(window, 4096), 128 - 128.0 * 128 / (2 * 4096));
  EXPECT_DOUBLE_EQ(causal_tokens(window, 64), 32);
}

TEST(TrainingFlops, ProductsOfAllDiesAreThoseOfTheModel) {
  for (const auto& [name, tensor, expert] :
       {std::tuple("llama-3.3-70b", 8, 1), std::tuple("qwen3-235b-a22b", 4, 16),
        std::tuple("deepseek-r1", 8, 32), std::tuple("glm-4.5", 1, 8), std::tuple("gpt-oss-120b", 2, 4),
        std::tuple("kimi-k2", 4, 4)}) {
    const models::Model model = models::load_model(name);
    Plan plan = plan_of(8, tensor, 2);
    plan.expert = expert;
    plan.micro_batch = 15;
    for (const models::Layer& layer : {model.layers.front(), model.layers.back()}) {
      const double all = tensor * products_of(work_of_layer(model, layer, plan, 1));
      EXPECT_DOUBLE_EQ(all / static_cast<double>(plan.group_tokens()),
                       2.0 * static_cast<double>(models::sizes_of(model, layer).active))
          << name;
    }
    if (model.vocabulary % tensor == 0) {
      EXPECT_DOUBLE_EQ(
          tensor * products_of(work_of_head(model, plan)) / static_cast<double>(plan.group_tokens()),
          static_cast<double>(models::model_sizes(model).head_flops));
    }
  }
}

TEST(TrainingFlops, OneRankMayGetMoreRows) {
  const models::Model model = models::load_model("qwen3-235b-a22b");
  Plan plan = plan_of(8, 1, 1);
  plan.expert = 8;
  const auto routed = [&](double imbalance) {
    for (const Operation& of : work_of_layer(model, model.layers[0], plan, imbalance).operations) {
      if (of.name == "routed experts' down") return of;
    }
    return Operation{};
  };
  EXPECT_EQ(routed(1).groups, 16);
  EXPECT_EQ(routed(1).m, 4096 * 8 * 8 / 128);
  EXPECT_EQ(routed(1.5).m, 4096 * 8 * 8 / 128 * 3 / 2);
}

// Rows of a tensor-parallel group's tokens, of the heads that a die has; none where the model has no norms.
TEST(TrainingWork, NormsOfHeads) {
  const auto norms = [](const char* name, int tensor) {
    const models::Model model = models::load_model(name);
    std::vector<Operation> found;
    for (const Operation& of : work_of_layer(model, model.layers[0], plan_of(1, tensor, 1), 1).operations) {
      if (of.operation == "head-norm") found.push_back(of);
    }
    return found;
  };
  const std::vector<Operation> qwen = norms("qwen3-32b", 4);
  ASSERT_EQ(qwen.size(), 2U);
  EXPECT_EQ(qwen[0].rows, 4096);
  EXPECT_EQ(qwen[0].width, 64 / 4 * 128);
  EXPECT_EQ(qwen[1].width, 8 / 4 * 128);
  EXPECT_EQ(qwen[0].attention.key_width, 128);
  EXPECT_TRUE(qwen[0].again);
  EXPECT_TRUE(norms("llama-3.3-70b", 4).empty());
}

TEST(TrainingFlops, Recomputation) {
  const models::Model v3 = models::load_model("deepseek-r1");
  Plan plan = plan_of(1, 1, 1);
  EXPECT_EQ(recomputed_flops(v3, plan), 0);
  plan.recompute = Recompute::selective;
  EXPECT_DOUBLE_EQ(recomputed_flops(v3, plan), 2.0 * 61 * (37'748'736 + 16'777'216));
  plan.recompute = Recompute::full;
  const TokenFlops once = token_flops(v3, plan.sequence);
  EXPECT_DOUBLE_EQ(recomputed_flops(v3, plan), (once.linear + once.causal) / 3 - 2 * 926'679'040.0);
}

// Tensor-parallel 8, two sequences of 8,192 of width 7,680: 252 MB x 7/8 a rank; 32 expert ranks, 8 of a
// token's experts: 244 MB of 2,048 tokens (docs/training.md).
TEST(TrainingMessages, WorkedValues) {
  const models::Model model = model_of(
      "hidden = 7680\nlayers = 4\nvocabulary = 1024\n[attention]\nheads = 128\nkv_heads = 128\nkey_width = "
      "128\nvalue_width = 128\n[experts]\nrouted = 256\nchosen = 8\nwidth = 2048\n");
  Plan plan = plan_of(4, 8, 2);
  plan.expert = 32;
  plan.micro_batch = 2;
  plan.sequence = 8192;
  std::int64_t gathered = 0, dispatched = 0;
  int gathers = 0, scatters = 0, exchanges = 0;
  for (const Message& of : work_of_layer(model, model.layers[0], plan, 1).messages) {
    gathers += of.kind == Message::Kind::all_gather ? 1 : 0;
    scatters += of.kind == Message::Kind::reduce_scatter ? 1 : 0;
    exchanges += of.kind == Message::Kind::all_to_all ? 1 : 0;
    if (of.among == Message::Among::tensor) gathered = 7 * of.bytes;
    if (of.among == Message::Among::expert) dispatched = 31 * of.bytes;
  }
  EXPECT_EQ(gathered, 2LL * 8192 * 7680 * 2 / 8 * 7);
  EXPECT_NEAR(static_cast<double>(gathered), 220e6, 0.5e6);
  EXPECT_EQ(dispatched, 2048LL * 8 * 7680 * 2 / 32 * 31);
  EXPECT_NEAR(static_cast<double>(dispatched), 244e6, 0.5e6);
  EXPECT_EQ(gathers, 1);
  EXPECT_EQ(scatters, 1);
  EXPECT_EQ(exchanges, 2);
  EXPECT_EQ(boundary_bytes(model, plan), 2048LL * 7680 * 2);
  // A dense layer gathers and scatters twice; context-parallel ranks gather keys and values.
  const models::Model dense = even_model();
  Plan other = plan_of(1, 4, 1);
  EXPECT_EQ(work_of_layer(dense, dense.layers[0], other, 1).messages.size(), 4U);
  other.context = 2;
  const Work work = work_of_layer(dense, dense.layers[0], other, 1);
  ASSERT_EQ(work.messages.size(), 5U);
  EXPECT_EQ(work.messages[1].among, Message::Among::context);
  EXPECT_EQ(work.messages[1].bytes, 2048LL * 3 * 128 * 2);
  other.context = other.tensor = 1;
  EXPECT_TRUE(work_of_layer(dense, dense.layers[0], other, 1).messages.empty());
}

TEST(TrainingMemory, PartsOfAllDiesAreTheModel) {
  for (const auto& [name, tensor, expert] :
       {std::tuple("llama-3.3-70b", 8, 1), std::tuple("deepseek-r1", 8, 32),
        std::tuple("qwen3-235b-a22b", 4, 16)}) {
    const models::Model model = models::load_model(name);
    Plan plan = plan_of(8, tensor, 4);
    plan.expert = expert;
    double all = 0;
    for (const Part& part : spread_layers(plan, static_cast<int>(model.layers.size()))) {
      const HeldParameters held = held_parameters(model, plan, part);
      all += held.sliced * tensor + held.copied + held.experts * expert;
    }
    EXPECT_DOUBLE_EQ(all, static_cast<double>(models::model_sizes(model).parameters)) << name;
  }
}

TEST(TrainingMemory, EighteenBytesAParameterAndWhatSharingTakes) {
  const HeldParameters held{100, 10, 64};
  Plan plan = plan_of(4, 2, 1);
  plan.context = 2;
  plan.expert = 4;
  EXPECT_EQ(replicas_of(plan).sliced, 8);
  EXPECT_EQ(replicas_of(plan).copied, 16);
  EXPECT_EQ(replicas_of(plan).experts, 4);
  const double shared = 100.0 / 8 + 10.0 / 16 + 64.0 / 4;
  plan.zero = 0;
  EXPECT_DOUBLE_EQ(state_of(held, plan).all(), 174 * 18);
  plan.zero = 1;
  EXPECT_DOUBLE_EQ(state_of(held, plan).all(), 174 * 6 + shared * 12);
  plan.zero = 2;
  EXPECT_DOUBLE_EQ(state_of(held, plan).all(), 174 * 2 + shared * 16);
  plan.zero = 3;
  EXPECT_DOUBLE_EQ(state_of(held, plan).all(), shared * 18);
  plan.gradient_bytes = 2;
  EXPECT_DOUBLE_EQ(state_of(held, plan).gradients, shared * 2);
}

TEST(TrainingMemory, KeptOfALayer) {
  const models::Model even = even_model();
  Plan plan = plan_of(1, 1, 1);
  const models::Layer& layer = even.layers[0];
  const double tokens = 4096;
  EXPECT_DOUBLE_EQ(kept_bytes(even, layer, plan, Recompute::none), tokens * 768 * 32);
  // Without outputs of norms and the product of the network's halves.
  EXPECT_DOUBLE_EQ(kept_bytes(even, layer, plan, Recompute::selective),
                   tokens * (768 * 32 - 768 * 4 - 2048 * 2));
  EXPECT_DOUBLE_EQ(kept_bytes(even, layer, plan, Recompute::full), tokens * 768 * 2);
  plan.tensor = 4;
  EXPECT_DOUBLE_EQ(kept_bytes(even, layer, plan, Recompute::none), tokens * 768 * 8);
  plan.recompute = Recompute::full;
  const Part part{0, 3, true, true};
  EXPECT_DOUBLE_EQ(kept_bytes(even, part, plan), 3 * tokens * 768 * 2 / 4);
  EXPECT_DOUBLE_EQ(working_bytes(even, part, plan), tokens * 768 * 8);
  plan.recompute = Recompute::none;
  EXPECT_DOUBLE_EQ(working_bytes(even, part, plan), tokens * 1024 / 4 * 4);
  // Experts: tokens x chosen x (hidden + 3 width) x 2 B more than the attention and the norm.
  const models::Model qwen = models::load_model("qwen3-235b-a22b");
  const double attention = 2 * 4096 + 64 * 128 * 2 + 2 * 4 * 128, norms = 2 * 4096;
  // Queries and keys also as they were before their norms, unless these are computed again.
  const double heads = (64 + 4) * 128;
  EXPECT_DOUBLE_EQ(kept_bytes(qwen, qwen.layers[0], plan_of(1, 1, 1), Recompute::none),
                   tokens * 2 * (attention + heads + norms + 8 * (4096 + 3 * 1536)));
  EXPECT_DOUBLE_EQ(kept_bytes(qwen, qwen.layers[0], plan_of(1, 1, 1), Recompute::selective),
                   tokens * 2 * (attention - 4096 + norms / 2 + 8 * (4096 + 2 * 1536)));
}

TEST(TrainingPlan, LayersAreSpread) {
  Plan plan = plan_of(1, 1, 16);
  const std::vector<Part> parts = spread_layers(plan, 61);
  ASSERT_EQ(parts.size(), 16U);
  EXPECT_EQ(parts[0].layers, 3);
  EXPECT_EQ(parts[1].layers, 4);
  EXPECT_EQ(parts[13].layers, 4);
  EXPECT_EQ(parts[14].layers, 3);
  EXPECT_EQ(parts[15].from + parts[15].layers, 61);
  EXPECT_TRUE(parts[0].embedding && parts[15].head && !parts[0].head && !parts[1].embedding);
}

TEST(TrainingPlan, LevelsOfAGroup) {
  const auto levels = [](int ranks, int stride) { return levels_of(ranks, stride, 768); };
  EXPECT_EQ(levels(8, 1).inside, 8);
  EXPECT_EQ(levels(96, 8).inside, 96);
  EXPECT_EQ(levels(192, 8).inside, 96);
  EXPECT_EQ(levels(192, 8).outside, 2);
  EXPECT_EQ(levels(128, 8).inside, 64);
  EXPECT_EQ(levels(4, 768).outside, 4);
}

TEST(TrainingPlan, WhatDoesNotFitIsRefused) {
  const models::Model qwen = models::load_model("qwen3-32b"), experts = models::load_model("qwen3-235b-a22b");
  const auto message = [&](const models::Model& model, const Plan& plan) -> std::string {
    try {
      check_plan(plan, model, 768, 768);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  const Plan good = plan_of(4, 8, 4);
  EXPECT_EQ(message(qwen, good), "");
  Plan plan = plan_of(32, 8, 4);
  EXPECT_THAT(message(qwen, plan), HasSubstr("1024 dies; allowed: up to the 768"));
  plan = plan_of(1, 1, 65);
  EXPECT_THAT(message(qwen, plan), HasSubstr("65 parts of 64 layers"));
  EXPECT_EQ(message(qwen, plan_of(1, 1, 64)), "");
  plan = plan_of(1, 3, 1);
  EXPECT_THAT(message(qwen, plan), HasSubstr("--tensor 3"));
  plan = good;
  plan.global_batch = 30;
  EXPECT_THAT(message(qwen, plan), HasSubstr("multiples of 4"));
  plan = good;
  plan.expert = 2;
  EXPECT_THAT(message(qwen, plan), HasSubstr("is dense"));
  plan.expert = 64;
  EXPECT_THAT(message(experts, plan), HasSubstr("the dies of a stage"));
  plan.expert = 3;
  EXPECT_THAT(message(experts, plan), HasSubstr("the routed experts"));
  plan.expert = 32;
  EXPECT_EQ(message(experts, plan), "");
  plan = good;
  plan.schedule = Schedule::interleaved;
  EXPECT_THAT(message(qwen, plan), HasSubstr("--chunks"));
  plan.chunks = 2;
  EXPECT_EQ(message(qwen, plan), "");
  plan.global_batch = 24;
  EXPECT_THAT(message(qwen, plan), HasSubstr("6 micro-batches on 4 stages"));
  plan = good;
  plan.chunks = 2;
  EXPECT_THAT(message(qwen, plan), HasSubstr("has an effect only with interleaved"));
  plan = good;
  plan.schedule = Schedule::dualpipe;
  EXPECT_EQ(message(qwen, plan), "");
  plan.global_batch = 24;
  EXPECT_THAT(message(qwen, plan), HasSubstr("two per stage"));
  plan = good;
  plan.sequence = 4095;
  plan.context = 2;
  EXPECT_THAT(message(qwen, plan), HasSubstr("--context 2"));
}

}  // namespace
}  // namespace cm384::training::plan_test
