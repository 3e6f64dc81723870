#include "workloads/training/training_memory.h"

#include <algorithm>

#include "hw/models/model_sizes.h"

namespace cm384::training {
namespace {

using models::Attention;
using models::AttentionKind;
using models::Layer;
using models::Model;
using models::Whole;

constexpr double kBf16Bytes = 2;   // bytes of BF16
constexpr double kOptimiser = 12;  // bytes of a parameter

HeldParameters held_of_layer(const Model& model, const Layer& layer, const Plan& plan) {
  const double tensor = plan.tensor;
  const models::LayerSizes sizes = models::sizes_of(model, layer);
  HeldParameters held;
  for (const models::Matrix& matrix : models::attention_matrices(model, layer.attention)) {
    const auto elements = static_cast<double>(layer.attentions * matrix.elements);
    if (matrix.name == "q_a" || matrix.name == "kv_a") {
      held.copied += elements;
    } else if (matrix.name == "k" || matrix.name == "v") {
      held.sliced += elements / std::min(tensor, static_cast<double>(layer.attention.kv_heads));
    } else {
      held.sliced += elements / tensor;
    }
  }
  held.sliced += static_cast<double>(layer.dense_networks * sizes.dense) / tensor;
  held.copied += static_cast<double>(sizes.gate + sizes.shared);
  held.experts += static_cast<double>(layer.experts.routed * sizes.expert) / plan.expert;
  return held;
}

// Of one token, in elements: of a die's own tokens, and of all tokens of its tensor-parallel group.
struct KeptElements {
  double own = 0, group = 0;
};

KeptElements kept_by_attention(const Model& model, const Attention& of, const Plan& plan, bool again) {
  const double tensor = plan.tensor, hidden = static_cast<double>(model.hidden);
  const double heads = static_cast<double>(of.heads) / tensor;
  const auto key = static_cast<double>(of.key_width), value = static_cast<double>(of.value_width);
  KeptElements kept{.own = again ? hidden : 2 * hidden, .group = heads * value};
  if (of.kind == AttentionKind::latent) {
    const auto latents = static_cast<double>(of.query_latent + of.kv_latent + of.position_width);
    kept.own += again ? latents : 2 * latents;
    if (!again) kept.group += heads * (2 * key + value);
  } else {
    const double kv = std::max(1.0, static_cast<double>(of.kv_heads) / tensor);
    kept.group += heads * key * (of.output_gate ? 2 : 1) + kv * (key + value);
    if (of.head_norms && !again) kept.group += (heads + kv) * key;  // as they were before
  }
  return kept;
}

// Of parameters that replicas hold alike each its share.
double shared_parameters(const HeldParameters& held, const Plan& plan) {
  const Replicas replicas = replicas_of(plan);
  return held.sliced / replicas.sliced + held.copied / replicas.copied + held.experts / replicas.experts;
}

}  // namespace

HeldParameters held_parameters(const Model& model, const Plan& plan, const Part& part) {
  HeldParameters held;
  for (int layer = part.from; layer < part.from + part.layers; ++layer)
    held += held_of_layer(model, model.layers[static_cast<std::size_t>(layer)], plan);
  const double words = static_cast<double>(models::model_sizes(model).embedding) / plan.tensor;
  const bool both = part.embedding && part.head;
  if (part.embedding) held.sliced += words;
  if (part.head && !(both && model.tied_heads)) held.sliced += words;
  return held;
}

Replicas replicas_of(const Plan& plan) {
  return {plan.data * plan.context, plan.stage_ranks(), plan.stage_ranks() / plan.expert};
}

double kept_bytes(const Model& model, const Layer& layer, const Plan& plan, Recompute recompute) {
  const auto own = static_cast<double>(plan.own_tokens()), group = static_cast<double>(plan.group_tokens());
  const auto hidden = static_cast<double>(model.hidden);
  if (recompute == Recompute::full) return own * hidden * kBf16Bytes;
  const bool again = recompute == Recompute::selective;
  const double products = again ? 2 : 3;  // of a network: gate, up, and their product
  double bytes = 0;
  const auto attentions = static_cast<double>(layer.attentions);
  const KeptElements attention = kept_by_attention(model, layer.attention, plan, again);
  bytes += attentions * (own * attention.own + group * attention.group);
  const double norms = again ? 1 : 2;
  const auto networks = static_cast<double>(layer.dense_networks);
  bytes += networks *
           (own * norms * hidden + group * products * static_cast<double>(layer.dense_width) / plan.tensor);
  if (layer.has_experts()) {
    const models::Experts& of = layer.experts;
    const auto chosen = static_cast<double>(of.chosen);
    bytes += own * (norms * hidden + chosen * (hidden + products * static_cast<double>(of.width)) +
                    products * static_cast<double>(of.shared * of.shared_width));
  }
  return bytes * kBf16Bytes;
}

double kept_bytes(const Model& model, const Part& part, const Plan& plan) {
  double bytes = 0;
  for (int layer = part.from; layer < part.from + part.layers; ++layer)
    bytes += kept_bytes(model, model.layers[static_cast<std::size_t>(layer)], plan, plan.recompute);
  return bytes;
}

double working_bytes(const Model& model, const Part& part, const Plan& plan) {
  double largest = 0;
  if (plan.recompute == Recompute::full) {
    for (int layer = part.from; layer < part.from + part.layers; ++layer)
      largest = std::max(
          largest, kept_bytes(model, model.layers[static_cast<std::size_t>(layer)], plan, Recompute::none));
  }
  const double logits = part.head ? static_cast<double>(plan.group_tokens()) *
                                        static_cast<double>(model.vocabulary) / plan.tensor * 4
                                  : 0;
  return std::max(largest, logits);
}

double saved_bytes(const HeldParameters& held, const Plan& plan) {
  return (kBf16Bytes + kOptimiser) * shared_parameters(held, plan) / plan.copies();
}

DieMemory state_of(const HeldParameters& held, const Plan& plan) {
  const double shared = shared_parameters(held, plan);
  DieMemory made;
  made.weights = kBf16Bytes * (plan.zero >= 3 ? shared : held.all());
  made.gradients = plan.gradient_bytes * (plan.zero >= 2 ? shared : held.all());
  made.optimiser = kOptimiser * (plan.zero >= 1 ? shared : held.all());
  return made;
}

}  // namespace cm384::training
