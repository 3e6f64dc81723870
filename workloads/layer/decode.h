// A decode step: dense layers, MoE layers, the layer that predicts a further token, heads, sampling,
// launches; each measured on the machine, and added up as they follow one another.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "workloads/frame/prices.h"
#include "workloads/layer/layer.h"
#include "workloads/layer/layer_run.h"

namespace cm384::studies {

struct DecodeOptions {
  Integers batch{96};
  LayerOptions layer;  // its batch: the one of the step in hand
  double acceptance = 0.7;
  Reals draft_acceptance{};
  int dense_layers = 3, moe_layers = 58, sliding_layers = 0, sharing_layers = 0;
  int vocabulary = 129280, head_tensor = 0;
  bool tied_heads = false;
  int top_k = 50;
  double top_p = 0.95;
  std::string launch = "pipelined";
  Time graph_launch{700'000'000};
  Bandwidth renew_rate = 53_GBps;
  std::string measured;
  NpuPrices prices;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("batch", self.batch, Range{1, 1024}, "requests per NPU, of all its dies; one row each");
    LayerOptions::describe(self.layer, visit);
    visit("acceptance", self.acceptance, Range{0.0, 1.0}, "share of predicted further tokens that are right");
    visit(
        "draft-acceptance", self.draft_acceptance, Range{0.0, 1.0},
        "the same of each predicted token in turn, if those before it were right, in place of --acceptance");
    visit("dense-layers", self.dense_layers, Range{0, 1000},
          "layers whose feed-forward network is not of experts");
    visit("moe-layers", self.moe_layers, Range{0, 1000}, "layers with experts");
    visit(
        "sliding-layers", self.sliding_layers, Range{0, 1000},
        "of the layers with experts, or of all of a dense model: those whose attention sees --window tokens");
    visit("sharing-layers", self.sharing_layers, Range{0, 1000},
          "of the layers with experts: those whose attention takes the choice of a layer before",
          Needs{"sparse", {}});
    visit("dense-width", self.layer.dense_width, Range{64, 65536, 64},
          "elements between the products of a dense layer");
    visit("vocabulary", self.vocabulary, Range{64, 1'000'000, 64}, "words that the heads choose among");
    visit("head-weights", self.tied_heads, Either{"own", "embedding"},
          "the head's own, or the embedding's, which every die has whole");
    visit("head-tp", self.head_tensor, Range{0, 256},
          "ranks that share the product with the vocabulary; 0: one, and those of --attention-tp of a dense "
          "model");
    visit("top-k", self.top_k, Range{1, 256}, "words of a token that one is chosen among, the likeliest");
    visit("top-p", self.top_p, Range{0.0, 1.0}, "of these the fewest whose shares sum up to this");
    visit("launch", self.launch, OneOf{{"pipelined", "cpu"}},
          "of the graphs of a step, one and one for each predicted token: prepared while the one before "
          "runs, or by the "
          "CPU when that has ended");
    visit("graph-launch", self.graph_launch, Range{Time{}, 1_s}, "of one graph by the CPU",
          Needs{"launch", {"cpu"}});
    visit("renew-rate", self.renew_rate, Range{1_GBps, 1000_GBps},
          "at which a die loads experts at a renewal, all dies at once, while steps wait",
          Needs{"renew", {}});
    visit("measured", self.measured, Form{"FILE"},
          "times of the parts, of several machines and sizes: what it has is not measured again, what it has "
          "not is added");
    NpuPrices::describe(self.prices, visit);
  }
  void settle(const hw::Machine& machine) {
    layer.settle(machine);
    prices.settle(machine);
  }
  void follow(const Given& given);
  std::vector<std::string> inputs() const { return layer.files(); }
  std::vector<Alternatives> open() const {
    DecodeOptions own = *this;
    return layer.open(hw::list_parameters(own));
  }
  static OptionValues of_model(const models::Model& model);

  // Of predicted token `k`, 0 the first, if those before it were right.
  double accepted(int k) const {
    return draft_acceptance.empty() ? acceptance : draft_acceptance[static_cast<std::size_t>(k)];
  }
  // The layers that `run layer` runs: those with experts, or all of a dense model.
  int main_layers() const { return layer.dense() ? dense_layers : moe_layers; }
  const char* main_name() const { return layer.dense() ? "dense" : "MoE"; }
  // Dense layers beside them.
  int other_layers() const { return layer.dense() ? 0 : dense_layers; }
  // Words of a rank's part of the head: whole 16, of which those behind the vocabulary are none.
  int own_words() const {
    const int shared = (vocabulary + head_sharing() - 1) / head_sharing();
    return head_sharing() == 1 ? vocabulary : (shared + 15) / 16 * 16;
  }
  // Of the main layers: those with another attention than the first one has, if any.
  int unlike_layers() const { return sliding_layers + sharing_layers; }
  int head_sharing() const { return head_tensor > 0 ? head_tensor : layer.dense() ? layer.sharing() : 1; }
};

// Times of what a step is made of, in microseconds.
struct DecodeParts {
  double layer = 0, first_layer = 0;  // among many alike; with nothing before or behind it
  double sliding_layer = 0;           // the same among many alike, of those with a window or another's choice
  double attention_half = 0, experts_half = 0;
  std::vector<std::pair<std::string, double>> kernels;  // tasks of a microbatch and layer
  std::vector<LayerKernel> kernels_of_layers;  // of a rank; empty: of a file from before they were kept
  int microbatches = 0;
  std::string split;
  double dense_attention = 0, dense_network = 0;  // of a dense layer, all cores and the whole batch
  double head = 0;                                // norm, product with the vocabulary, softmax
  double mtp_projection = 0, mtp_head = 0;
  // Of tokens predicted behind the first one: projection and layer of one token of each request.
  double further_projection = 0, further_layer = 0;
  double new_copies = 0;                  // that a rank loads per layer at a renewal
  double sampling = 0, mtp_sampling = 0;  // words chosen: of all tokens, of a predicted one of each request
};

// What a renewal of the placement adds to each step.
double renewal_us(const DecodeOptions& options, const DecodeParts& parts);

// What kernels of a layer take of all its kernels' time: those that are mostly INT8 products, and dispatch.
struct KernelShares {
  double products = 0, dispatch = 0;
};
KernelShares shares_of(const DecodeParts& parts);

// Bytes of the weights and of the cache that a die holds. `experts`: of weights, on a die of experts alone.
struct DecodeMemory {
  double weights = 0, cache = 0, request = 0;  // request: of one in the cache
  double experts = 0;
};
// `tokens`: in the cache of the die that has most; `windowed`: the same where a request has no more than
// --window.
DecodeMemory memory_of(const DecodeOptions& options, int shared_copies, std::uint64_t tokens,
                       std::uint64_t windowed = 0);

}  // namespace cm384::studies
