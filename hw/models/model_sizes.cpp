#include "hw/models/model_sizes.h"

#include <algorithm>

namespace cm384::models {
namespace {

constexpr Whole kCacheBytes = 2;  // of an element: BF16
constexpr Whole kIndexBytes = 1;  // FP8
constexpr Whole kFlops = 2;       // of a multiply-add

Whole sum_of(const std::vector<Matrix>& matrices) {
  Whole sum = 0;
  for (const Matrix& matrix : matrices) sum += matrix.elements;
  return sum;
}

// Up, gate and down.
Whole network(Whole hidden, Whole width) {
  return 3 * hidden * width;
}

// Elements that a layer caches for a token, one attention.
Whole cached(const Attention& of) {
  switch (of.kind) {
    case AttentionKind::latent:
      return of.kv_latent + of.position_width;
    case AttentionKind::full:
    case AttentionKind::sliding:
      return of.kv_heads * (of.key_width + of.value_width);
    case AttentionKind::linear:
      return 0;
  }
  return 0;
}

// Scores and values against one cached token. A latent's are absorbed: against the latent itself.
Whole per_cached_token(const Attention& of) {
  if (of.kind == AttentionKind::latent)
    return kFlops * of.heads * (of.kv_latent + of.position_width + of.kv_latent);
  return kFlops * of.heads * (of.key_width + of.value_width);
}

void add(AttentionFlops& flops, const Attention& of, Whole attentions) {
  const Whole one = per_cached_token(of) * attentions;
  flops.indexer += attentions * kFlops * of.indexer.heads * of.indexer.width;
  switch (of.kind) {
    case AttentionKind::latent:
    case AttentionKind::full:
      (of.indexer.chosen > 0 ? flops.chosen : flops.full) += one;
      flops.chosen_tokens = std::max(flops.chosen_tokens, of.indexer.chosen);
      if (of.kind == AttentionKind::latent)
        flops.not_absorbed += attentions * kFlops * of.heads * (of.key_width + of.value_width);
      break;
    case AttentionKind::sliding:
      flops.sliding += one;
      flops.window = std::max(flops.window, of.window);
      break;
    case AttentionKind::linear:
      // The state decays, gets a rank-one correction and is read: six operations an element.
      flops.linear += attentions * 6 * of.heads * of.key_width * of.value_width;
      break;
  }
}

void add_cache(ModelSizes& sizes, const Layer& layer) {
  const Attention& of = layer.attention;
  const Whole bytes = layer.attentions * cached(of) * kCacheBytes;
  if (of.kind == AttentionKind::sliding) {
    sizes.sliding_bytes += bytes * of.window;
  } else {
    sizes.kv_bytes += bytes;
  }
  if (of.indexer.heads > 0) sizes.index_bytes += layer.attentions * of.indexer.width * kIndexBytes;
  if (of.kind == AttentionKind::linear)
    sizes.state_bytes += layer.attentions * of.heads * of.key_width * of.value_width * of.state_bytes;
}

}  // namespace

std::vector<Matrix> attention_matrices(const Model& model, const Attention& of) {
  const Whole hidden = model.hidden;
  const Whole keys = of.heads * of.key_width, values = of.heads * of.value_width;
  if (of.kind == AttentionKind::latent) {
    std::vector<Matrix> made;
    if (of.query_latent > 0) {
      made.push_back({"q_a", hidden * of.query_latent});
      made.push_back({"q_b", of.query_latent * keys});
    } else {
      made.push_back({"q", hidden * keys});
    }
    made.push_back({"kv_a", hidden * (of.kv_latent + of.position_width)});
    made.push_back({"kv_b", of.kv_latent * of.heads * (of.key_width - of.position_width + of.value_width)});
    made.push_back({"o", values * hidden});
    return made;
  }
  if (of.kind == AttentionKind::linear) {
    const Whole of_keys = of.kv_heads * of.key_width;
    return {{"q", hidden * of_keys},   {"k", hidden * of_keys},      {"v", hidden * values},
            {"gate", hidden * values}, {"decay", hidden * of.heads}, {"rate", hidden * of.heads},
            {"o", values * hidden}};
  }
  return {{"q", hidden * keys * (of.output_gate ? 2 : 1)},
          {"k", hidden * of.kv_heads * of.key_width},
          {"v", hidden * of.kv_heads * of.value_width},
          {"o", values * hidden}};
}

std::vector<Matrix> indexer_matrices(const Model& model, const Attention& of) {
  if (of.indexer.heads == 0) return {};
  const Whole from = of.query_latent > 0 ? of.query_latent : model.hidden;
  return {{"q", from * of.indexer.heads * of.indexer.width},
          {"k", model.hidden * of.indexer.width},
          {"weights", model.hidden * of.indexer.heads}};
}

LayerSizes sizes_of(const Model& model, const Layer& layer) {
  const Experts& experts = layer.experts;
  LayerSizes made;
  made.attention = sum_of(attention_matrices(model, layer.attention));
  made.indexer = sum_of(indexer_matrices(model, layer.attention));
  made.dense = network(model.hidden, layer.dense_width);
  made.expert = network(model.hidden, experts.width);
  made.shared =
      experts.shared * network(model.hidden, experts.shared_width) + (experts.shared_gate ? model.hidden : 0);
  made.gate = model.hidden * (experts.routed + experts.zero);
  const Whole always = layer.attentions * (made.attention + made.indexer) +
                       layer.dense_networks * made.dense + made.shared + made.gate;
  made.parameters = always + experts.routed * made.expert;
  if (!layer.has_experts()) {
    made.active = made.least_active = made.most_active = always;
    return made;
  }
  // In this order nothing overflows that the ranges of facts allow, and experts as a rule divide evenly.
  made.active = always + made.expert * experts.real_numerator() / experts.real_denominator();
  made.least_active = always + made.expert * std::max<Whole>(0, experts.chosen - experts.zero);
  made.most_active = always + made.expert * std::min(experts.chosen, experts.routed);
  return made;
}

ModelSizes model_sizes(const Model& model) {
  ModelSizes made;
  made.embedding = model.vocabulary * model.hidden;
  made.parameters = made.embedding * (model.tied_heads ? 1 : 2);
  made.active = made.least_active = made.most_active = made.embedding;
  for (const Layer& layer : model.layers) {
    const LayerSizes of = sizes_of(model, layer);
    made.parameters += of.parameters;
    made.active += of.active;
    made.least_active += of.least_active;
    made.most_active += of.most_active;
    add_cache(made, layer);
    add(made.attention, layer.attention, layer.attentions);
  }
  if (model.draft_layers > 0) {
    made.draft_parameters =
        model.draft_layers * (sizes_of(model, model.draft).parameters + 2 * model.hidden * model.hidden);
    ModelSizes draft;
    add_cache(draft, model.draft);
    made.draft_kv_bytes = model.draft_layers * draft.kv_bytes;
    made.draft_index_bytes = model.draft_layers * draft.index_bytes;
  }
  made.linear_flops = kFlops * made.active;
  made.head_flops = kFlops * made.embedding;
  return made;
}

}  // namespace cm384::models
