#include "workloads/training/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>

#include "base/text/error.h"

namespace cm384::training {
namespace {

constexpr std::array<std::string_view, 5> kSchedules{"gpipe", "1f1b", "interleaved", "zero-bubble",
                                                     "dualpipe"};
constexpr std::array<std::string_view, 3> kRecomputes{"none", "selective", "full"};

template <class Enum, std::size_t N>
Enum named(const std::array<std::string_view, N>& names, std::string_view name) {
  const auto* found = std::ranges::find(names, name);
  if (found == names.end()) throw std::logic_error(fmt::format("no {} in a plan", name));
  return static_cast<Enum>(found - names.begin());
}

[[noreturn]] void refuse_plan(const std::string& what) {
  throw InputError("run train: " + what);
}

void check_divides(const char* what, std::int64_t of, const char* option, std::int64_t by) {
  if (of % by != 0)
    refuse_plan(fmt::format("--{} {}: does not divide {}, {}; allowed: a divisor", option, by, what, of));
}

void check_attention(const Plan& plan, const models::Model& model) {
  for (const models::Layer& layer : model.layers) {
    const models::Attention& of = layer.attention;
    if (of.kind == models::AttentionKind::linear)
      refuse_plan(fmt::format("--model {}: has linear attention, which no kernel is here for", model.name));
    if (of.indexer.chosen > 0)
      refuse_plan(
          fmt::format("--model {}: its attention chooses tokens, which no kernel is here for", model.name));
    check_divides("the attention heads", of.heads, "tensor", plan.tensor);
    // Heads of keys and values that are fewer than ranks are copied.
    if (of.kind != models::AttentionKind::latent && of.kv_heads % plan.tensor != 0 &&
        plan.tensor % of.kv_heads != 0)
      refuse_plan(fmt::format("--tensor {}: {} heads of keys and values; allowed: a divisor or a multiple",
                              plan.tensor, of.kv_heads));
    if (layer.dense_width > 0)
      check_divides("the width of dense networks", layer.dense_width, "tensor", plan.tensor);
  }
}

void check_experts(const Plan& plan, const models::Model& model) {
  if (!model.has_experts()) {
    if (plan.expert > 1)
      refuse_plan(fmt::format("--expert {}: {} is dense; allowed: 1", plan.expert, model.name));
    return;
  }
  const models::Experts of = model.experts();
  if (of.zero > 0)
    refuse_plan(fmt::format("--model {}: has experts that return their input, which are not modelled here",
                            model.name));
  check_divides("the routed experts", of.routed, "expert", plan.expert);
  check_divides("the dies of a stage", plan.stage_ranks(), "expert", plan.expert);
}

void check_schedule(const Plan& plan) {
  const int stages = plan.pipeline, batches = plan.micro_batches();
  const auto refuse = [&](const std::string& why) {
    refuse_plan(fmt::format("--schedule {}: {}", name_of(plan.schedule), why));
  };
  if (plan.schedule == Schedule::interleaved) {
    if (plan.chunks < 2 || stages < 2) refuse("allowed: with --chunks and --pipeline of 2 or more");
    if (batches % stages != 0)
      refuse(fmt::format("{} micro-batches on {} stages; allowed: a multiple", batches, stages));
  } else if (plan.chunks != 1) {
    refuse(fmt::format("--chunks {} has an effect only with interleaved", plan.chunks));
  }
  if (plan.schedule == Schedule::dualpipe) {
    if (stages % 2 != 0) refuse(fmt::format("{} stages; allowed: an even number", stages));
    if (batches % 2 != 0 || batches < 2 * stages)
      refuse(fmt::format("{} micro-batches on {} stages; allowed: an even number, at least two per stage",
                         batches, stages));
  }
}

}  // namespace

Schedule schedule_of(std::string_view name) {
  return named<Schedule>(kSchedules, name);
}
std::string_view name_of(Schedule schedule) {
  return kSchedules[static_cast<std::size_t>(schedule)];
}
Recompute recompute_of(std::string_view name) {
  return named<Recompute>(kRecomputes, name);
}
std::string_view name_of(Recompute recompute) {
  return kRecomputes[static_cast<std::size_t>(recompute)];
}

void check_plan(const Plan& plan, const models::Model& model, int dies, int dies_of_supernode) {
  const auto ranks = std::int64_t{plan.data} * plan.tensor * plan.context * plan.pipeline;
  if (ranks > dies)
    refuse_plan(fmt::format(
        "--data {} --tensor {} --context {} --pipeline {}: {} dies; allowed: up to the {} of the machine",
        plan.data, plan.tensor, plan.context, plan.pipeline, ranks, dies));
  const int layers = static_cast<int>(model.layers.size());
  if (plan.parts() > layers)
    refuse_plan(fmt::format("--pipeline {} --chunks {}: {} parts of {} layers; allowed: a layer in each",
                            plan.pipeline, plan.chunks, plan.parts(), layers));
  if (plan.tensor * plan.context > dies_of_supernode)
    refuse_plan(fmt::format("--tensor {} --context {}: allowed: within the {} dies of a supernode",
                            plan.tensor, plan.context, dies_of_supernode));
  check_divides("the sequence", plan.sequence, "context", plan.context);
  check_divides("the tokens of a micro-batch", plan.group_tokens(), "tensor", plan.tensor);
  const std::int64_t round = std::int64_t{plan.data} * plan.micro_batch;
  if (plan.global_batch % round != 0)
    refuse_plan(fmt::format("--global-batch {}: {} sequences in {} replicas of {}; allowed: multiples of {}",
                            plan.global_batch, plan.global_batch, plan.data, plan.micro_batch, round));
  check_attention(plan, model);
  check_experts(plan, model);
  check_schedule(plan);
}

std::vector<Part> spread_layers(const Plan& plan, int layers) {
  const int parts = plan.parts(), each = layers / parts, more = layers % parts;
  std::vector<Part> made;
  int from = 0;
  for (int part = 0; part < parts; ++part) {
    const int own = each + (part >= 1 && part <= more ? 1 : 0);
    made.push_back({from, own, part == 0, part == parts - 1});
    from += own;
  }
  return made;
}

Levels levels_of(int ranks, int stride, int dies_of_supernode) {
  int inside = std::clamp(dies_of_supernode / stride, 1, ranks);
  while (ranks % inside != 0) --inside;
  return {inside, ranks / inside};
}

}  // namespace cm384::training
