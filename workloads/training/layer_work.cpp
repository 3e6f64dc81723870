#include "workloads/training/layer_work.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "hw/models/model_sizes.h"

namespace cm384::training {
namespace {

using models::Attention;
using models::AttentionKind;
using models::Layer;
using models::Model;
using models::Whole;
using Operator = Operation::Kind;
using Of = Operation::Of;

constexpr Whole kElement = 2;   // bytes of BF16
constexpr Whole kRotated = 64;  // elements of a head that the operator of rotations takes

class LayerWork {
 public:
  LayerWork(const Model& model, const Plan& plan) : model_(model), plan_(plan) {}

  Work layer(const Layer& layer, double imbalance) {
    for (Whole n = 0; n < layer.attentions; ++n) attention(layer.attention);
    for (Whole n = 0; n < layer.dense_networks; ++n) dense(layer.dense_width);
    if (layer.has_experts()) experts(layer.experts, imbalance);
    return std::move(work_);
  }
  Work head() {
    const Whole words = (model_.vocabulary + plan_.tensor - 1) / plan_.tensor;
    rows(Of::head, "last norm", "rms-norm", own(), model_.hidden);
    if (plan_.tensor > 1)
      message("all-gather of tokens", Message::Kind::all_gather, Message::Among::tensor,
              own() * model_.hidden * kElement);
    product(Of::head, "words", 1, tokens(), words, model_.hidden);
    rows(Of::head, "softmax", "softmax", tokens(), words);
    return std::move(work_);
  }

 private:
  Whole tokens() const { return plan_.group_tokens(); }
  Whole own() const { return plan_.own_tokens(); }

  void product(Of of, const char* name, Whole groups, Whole m, Whole n, Whole k, bool again = false) {
    Operation made{
        .name = name, .kind = Operator::product, .of = of, .groups = groups, .m = m, .n = n, .k = k};
    made.again = again;
    work_.operations.push_back(std::move(made));
  }
  void rows(Of of, const char* name, const char* operation, Whole rows, Whole width, bool again = true) {
    Operation made{.name = name, .kind = Operator::rows, .of = of, .operation = operation};
    made.rows = rows;
    made.width = width;
    made.again = again && of != Of::head;
    work_.operations.push_back(std::move(made));
  }
  // Rows of tokens, of so many heads each.
  void norm_of_heads(const char* name, const Attention& of, Whole heads) {
    rows(Of::attention, name, "head-norm", tokens(), heads * of.key_width);
    work_.operations.back().attention = of;
  }
  void message(const char* name, Message::Kind kind, Message::Among among, Whole bytes) {
    work_.messages.push_back({name, kind, among, bytes});
  }
  // Before and behind operators that are cut by heads or by columns.
  void gather(const char* name, Whole width) {
    if (plan_.tensor > 1)
      message(name, Message::Kind::all_gather, Message::Among::tensor, own() * width * kElement);
  }
  void scatter(const char* name) {
    if (plan_.tensor > 1)
      message(name, Message::Kind::reduce_scatter, Message::Among::tensor, own() * model_.hidden * kElement);
  }

  void attention(const Attention& of) {
    const Whole heads = of.heads / plan_.tensor;
    const bool latent = of.kind == AttentionKind::latent;
    const Whole kv = latent ? heads : std::max<Whole>(1, of.kv_heads / plan_.tensor);
    rows(Of::attention, "norm before attention", "rms-norm", own(), model_.hidden);
    if (latent) {
      latents(of, heads);
    } else {
      gather("all-gather before attention", model_.hidden);
      product(Of::attention, "queries, keys and values", 1, tokens(),
              heads * of.key_width * (of.output_gate ? 2 : 1) + kv * (of.key_width + of.value_width),
              model_.hidden);
      if (of.head_norms) {
        norm_of_heads("norm of queries", of, heads);
        norm_of_heads("norm of keys", of, kv);
      }
      rows(Of::attention, "rotation", "rope", tokens(), (heads + kv) * of.key_width / kRotated, false);
    }
    if (plan_.context > 1)
      message("all-gather of keys and values", Message::Kind::all_gather, Message::Among::context,
              tokens() * kv * (of.key_width + of.value_width) * kElement);
    Operation core{.name = of.kind == AttentionKind::sliding ? "attention in a window" : "attention",
                   .kind = Operator::attention,
                   .of = Of::attention};
    core.attention = of;
    core.sequences = plan_.micro_batch;
    core.heads = heads;
    core.kv_heads = latent ? 0 : kv;
    core.share = 1.0 / plan_.context;
    work_.operations.push_back(std::move(core));
    product(Of::attention, "output projection", 1, tokens(), model_.hidden, heads * of.value_width);
    scatter("reduce-scatter behind attention");
  }
  // Made of a die's own tokens, gathered, and widened to the heads that it has.
  void latents(const Attention& of, Whole heads) {
    const Whole keys = of.kv_latent + of.position_width;
    if (of.query_latent > 0) {
      product(Of::attention, "latents", 1, own(), of.query_latent + keys, model_.hidden);
      rows(Of::attention, "norm of the queries' latent", "rms-norm", own(), of.query_latent);
      rows(Of::attention, "norm of the keys' latent", "rms-norm", own(), of.kv_latent);
      gather("all-gather before attention", of.query_latent + keys);
      product(Of::attention, "queries", 1, tokens(), heads * of.key_width, of.query_latent, true);
    } else {
      product(Of::attention, "latents", 1, own(), keys, model_.hidden);
      rows(Of::attention, "norm of the keys' latent", "rms-norm", own(), of.kv_latent);
      gather("all-gather before attention", keys + model_.hidden);
      product(Of::attention, "queries", 1, tokens(), heads * of.key_width, model_.hidden);
    }
    product(Of::attention, "keys and values", 1, tokens(),
            heads * (of.key_width - of.position_width + of.value_width), of.kv_latent, true);
    rows(Of::attention, "rotation", "rope", tokens(), (heads + 1) * of.position_width / kRotated);
  }

  void dense(Whole width) {
    const Whole each = width / plan_.tensor;
    rows(Of::dense, "norm before the network", "rms-norm", own(), model_.hidden);
    gather("all-gather before the network", model_.hidden);
    product(Of::dense, "up and gate", 1, tokens(), 2 * each, model_.hidden);
    rows(Of::dense, "activation", "swiglu", tokens(), 2 * each);
    product(Of::dense, "down", 1, tokens(), model_.hidden, each);
    scatter("reduce-scatter behind the network");
  }

  void experts(const models::Experts& of, double imbalance) {
    const Whole each = of.routed / plan_.expert;
    const auto mean = static_cast<double>(own() * of.chosen * plan_.expert) / static_cast<double>(of.routed);
    const Whole rows_each = std::max<Whole>(1, std::llround(mean * imbalance));
    rows(Of::experts, "norm before the experts", "rms-norm", own(), model_.hidden);
    product(Of::experts, "gate's product", 1, own(), of.routed, model_.hidden);
    rows(Of::experts, "choice of experts", "gate", own(), of.routed, false);
    if (of.shared > 0) network("shared", of.shared, own(), of.shared_width);
    if (plan_.expert > 1)
      message("dispatch", Message::Kind::all_to_all, Message::Among::expert,
              own() * of.chosen * model_.hidden * kElement / plan_.expert);
    network("routed", each, rows_each, of.width);
    if (plan_.expert > 1)
      message("combine", Message::Kind::all_to_all, Message::Among::expert,
              own() * of.chosen * model_.hidden * kElement / plan_.expert);
  }
  void network(const std::string& which, Whole groups, Whole tokens_each, Whole width) {
    product(Of::experts, (which + " experts' up and gate").c_str(), groups, tokens_each, 2 * width,
            model_.hidden);
    rows(Of::experts, (which + " experts' activation").c_str(), "swiglu", groups * tokens_each, 2 * width);
    product(Of::experts, (which + " experts' down").c_str(), groups, tokens_each, model_.hidden, width);
  }

  const Model& model_;
  const Plan& plan_;
  Work work_;
};

double pair_flops(const Attention& of) {
  return 2.0 * static_cast<double>(of.heads * (of.key_width + of.value_width));
}

}  // namespace

Work work_of_layer(const Model& model, const Layer& layer, const Plan& plan, double imbalance) {
  return LayerWork(model, plan).layer(layer, imbalance);
}

Work work_of_head(const Model& model, const Plan& plan) {
  return LayerWork(model, plan).head();
}

std::int64_t boundary_bytes(const Model& model, const Plan& plan) {
  return plan.own_tokens() * model.hidden * kElement;
}

double causal_tokens(const Attention& of, double sequence) {
  const double window =
      of.kind == AttentionKind::sliding ? std::min(static_cast<double>(of.window), sequence) : sequence;
  return window * (1 - window / (2 * sequence));
}

TokenFlops token_flops(const Model& model, int sequence) {
  TokenFlops made;
  made.linear = 3 * static_cast<double>(models::model_sizes(model).linear_flops);
  for (const Layer& layer : model.layers) {
    const double pair = 3 * static_cast<double>(layer.attentions) * pair_flops(layer.attention);
    const double causal = causal_tokens(layer.attention, sequence);
    made.causal += pair * causal;
    // Without a mask a window is twice as many tokens, and not more than there are.
    made.full += pair * (layer.attention.kind == AttentionKind::sliding ? causal : sequence);
  }
  return made;
}

double recomputed_flops(const Model& model, const Plan& plan) {
  if (plan.recompute == Recompute::none) return 0;
  double flops = 0;
  for (const Layer& layer : model.layers) {
    const Attention& of = layer.attention;
    if (plan.recompute == Recompute::full) {
      flops += 2 * static_cast<double>(models::sizes_of(model, layer).active);
      flops += static_cast<double>(layer.attentions) * pair_flops(of) * causal_tokens(of, plan.sequence);
      continue;
    }
    if (of.kind != AttentionKind::latent) continue;
    for (const models::Matrix& matrix : models::attention_matrices(model, of)) {
      if (matrix.name == "q_b" || matrix.name == "kv_b")
        flops += 2 * static_cast<double>(layer.attentions * matrix.elements);
    }
  }
  return flops;
}

}  // namespace cm384::training
