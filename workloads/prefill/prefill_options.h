// What `run prefill` is asked for.
#pragma once

#include <string>
#include <vector>

#include "traces/routing/routing.h"
#include "workloads/frame/model_option.h"
#include "workloads/frame/options.h"
#include "workloads/frame/prices.h"
#include "workloads/layer/layer_shape.h"
#include "workloads/moe/dispatch.h"

namespace cm384::studies {

struct PrefillOptions : LayerShape {
  std::string model{};  // that what is not given follows from; empty: none
  int ranks = 32;
  int tokens = 16384;
  int dies_of_npu = 2;  // that share a package, as settle() finds them
  int prompt = 4096;
  Integers cached_tokens{0};
  int cached = 0;  // of them, that a row has
  bool by_heads = false;
  bool int8_latents = false;
  std::string networks = "int8";
  bool sdma = false;
  Integers microbatches{1};
  int chunk = 256, sdma_chunk = 1024;
  std::string routing = "uniform";
  bool by_load = false;
  int redundant = -1;
  int dense_layers = 3, moe_layers = 58, sliding_layers = 0;
  int sharing_layers = 0, vocabulary = 129280;
  bool tied_heads = false;
  NpuPrices prices;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit(
        "model", self.model, Form{"NAME|FILE"},
        "language model that shapes, numbers of layers and of experts follow from where they are not given: "
        "one of `cm384 model list`, a config.json or a TOML");
    visit("ranks", self.ranks, Range{2, kMostRanks}, "dies that share the experts");
    visit("tokens", self.tokens, Range{32, 1'000'000}, "of a batch, per NPU, of all its dies");
    visit("prompt", self.prompt, Range{16, 1'000'000, 16},
          "tokens of each prompt; a die has whole ones where attention is data parallel");
    visit("cached", self.cached_tokens, Range{0, 999'936, 128},
          "first tokens of each prompt that the memory service has, one row each: their latents are read, "
          "keys and values made of them, nothing else computed");
    visit("attention", self.by_heads, Either{"data-parallel", "sp-tp-sp"},
          "data-parallel: a die has all heads of whole prompts; sp-tp-sp: projections of its own tokens, "
          "attention of some heads of all tokens, with an all-gather and an all-to-all between");
    visit("latents", self.int8_latents, Either{"bf16", "int8"}, "how sp-tp-sp gathers them",
          Needs{"attention", {"sp-tp-sp"}});
    visit(
        "networks", self.networks, OneOf{{"int8", "bf16", "w4a8"}},
        "type of weights and products of experts and of dense networks, w4a8: weights of 4 bits with a scale "
        "per column, activations of INT8; rows go to experts in INT8 in any case");
    visit("path", self.sdma, Either{"aiv-direct", "sdma"},
          "how rows get to the experts' ranks and back: stored by AIVs, or by SDMA behind what AIVs compute");
    visit("microbatches", self.microbatches, Range{1, 2},
          "that share the dies: one's cores compute while the other's data moves; a row for each number");
    visit("chunk", self.chunk, Range{1, 256}, "tokens that dispatch's and combine's kernels take at most");
    visit("sdma-chunk", self.sdma_chunk, Range{1, 65536}, "tokens that an exchange by SDMA takes at most");
    visit("routing", self.routing, Form{"uniform|zipf:S|groups:N:M|trace:FILE", check_routing},
          "which experts tokens choose");
    visit(
        "balance", self.by_load, Either{"even", "eplb"},
        "experts on ranks in order, or copied and packed by the load that another draw of the routing shows");
    visit("redundant", self.redundant, Range{-1, 1024},
          "further copies of routed experts; -1: one per rank; every rank has the shared expert besides");
    visit("experts", self.experts, Range{0, 1024, 32}, "routed experts; 0: all layers are dense");
    LayerShape::describe_shared_experts(self, visit);
    LayerShape::describe_choice_of_experts(self, visit);
    visit("dense-layers", self.dense_layers, Range{0, 1000},
          "layers whose feed-forward network is not of experts");
    visit("moe-layers", self.moe_layers, Range{0, 1000}, "layers with experts");
    visit("sliding-layers", self.sliding_layers, Range{0, 1000},
          "layers whose attention sees --window tokens, the last ones");
    LayerShape::describe_heads(self, visit);
    visit("window", self.window, Range{0, 999'936, 128}, "last tokens that a sliding layer sees");
    LayerShape::describe_scores_of_heads(self, visit);
    visit("sparse", self.chosen, Range{0, 2048, 64},
          "tokens that a query sees at most, with a latent; 0: all");
    LayerShape::describe_indexer(self, visit);
    visit("sharing-layers", self.sharing_layers, Range{0, 1000},
          "layers whose attention takes the choice of a layer before", Needs{"sparse", {}});
    LayerShape::describe_width_of_experts(self, visit);
    visit("dense-width", self.dense_width, Range{64, 65536, 64},
          "elements between the products of a dense layer");
    visit("vocabulary", self.vocabulary, Range{64, 1'000'000, 64}, "words that the head chooses among");
    visit("head-weights", self.tied_heads, Either{"own", "embedding"}, "the head's own, or the embedding's");
    NpuPrices::describe(self.prices, visit);
  }
  void follow(const Given& given);
  void settle(const hw::Machine& machine);
  std::vector<std::string> inputs() const {
    std::vector<std::string> files = model_files(model);
    const auto source = traces::parse_routing_source(routing);
    if (source.kind == traces::RoutingSource::Kind::kTrace) files.push_back(source.path);
    return files;
  }
  int layers() const { return dense_layers + moe_layers; }
  // Bytes that are cached of a token and layer.
  int token_bytes() const {
    // Of an indexer a key in INT8 with its scale, in every layer: fewer where layers share a choice.
    return kv_heads > 0 ? 4 * kv_heads * head_width : 2 * (512 + 64) + (chooses() ? 128 + 4 : 0);
  }
  bool chooses() const { return chosen > 0 && index_heads > 0; }
  // Layers with another attention than the others have.
  int unlike_layers() const { return sliding_layers + sharing_layers; }
};

}  // namespace cm384::studies
