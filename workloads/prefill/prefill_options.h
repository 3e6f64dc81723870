// What `run prefill` is asked for.
#pragma once

#include <string>
#include <vector>

#include "traces/routing/routing.h"
#include "workloads/frame/model_option.h"
#include "workloads/frame/options.h"
#include "workloads/frame/prices.h"
#include "workloads/moe/dispatch.h"

namespace cm384::studies {

struct PrefillOptions {
  std::string model{};  // that what is not given follows from; empty: none
  int ranks = 32;
  int tokens = 16384;
  int dies_of_npu = 2;  // that share a package, as settle() finds them
  int prompt = 4096;
  int cached = 0;
  bool by_heads = false;
  bool int8_latents = false;
  std::string networks = "int8";
  bool sdma = false;
  Integers microbatches{1};
  int chunk = 256, sdma_chunk = 1024;
  std::string routing = "uniform";
  bool by_load = false;
  int redundant = -1;
  int experts = 256, experts_per_token = 8;
  int shared_experts = 1;
  bool softmax_gate = false;
  int expert_group = 32, token_groups = 4;
  int dense_layers = 3, moe_layers = 58, sliding_layers = 0;
  int kv_heads = 0, head_width = 128, window = 0;
  bool head_norms = false, sinks = false;
  int chosen = 0, index_heads = 64, key_width = 192, value_width = 128, sharing_layers = 0;
  int hidden = 7168, q_lora = 1536, heads = 128, width = 2048, dense_width = 18432, vocabulary = 129280;
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
    visit("cached", self.cached, Range{0, 999'936, 128},
          "first tokens of each prompt that the memory service has: their latents are read, keys and values "
          "made "
          "of them, nothing else computed");
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
          "further copies of routed experts; -1: one a rank; every rank has the shared expert besides");
    visit("experts", self.experts, Range{0, 1024, 32}, "routed experts; 0: all layers are dense");
    visit("shared-experts", self.shared_experts, Range{0, 1}, "experts that every token passes");
    visit("experts-per-token", self.experts_per_token, Range{1, 16}, "routed experts of a token");
    visit("gate", self.softmax_gate, Either{"sigmoid", "softmax"},
          "what the gate makes scores of the experts by, and weights of scores");
    visit("expert-group", self.expert_group, Range{0, 64, 8},
          "experts of a group, of which the gate's kernel chooses --token-groups for a token; 0: no groups. "
          "--routing groups:N:M draws with a limit, too");
    visit("token-groups", self.token_groups, Range{1, 64},
          "groups that the experts of a token are in at most");
    visit("dense-layers", self.dense_layers, Range{0, 1000},
          "layers whose feed-forward network is not of experts");
    visit("moe-layers", self.moe_layers, Range{0, 1000}, "layers with experts");
    visit("sliding-layers", self.sliding_layers, Range{0, 1000},
          "layers whose attention sees --window tokens, the last ones");
    visit("hidden", self.hidden, Range{64, 8192, 64}, "elements of a token");
    visit("q-lora", self.q_lora, Range{64, 8192, 64}, "elements of the queries' latent");
    visit("heads", self.heads, Range{1, 128}, "query heads");
    visit("kv-heads", self.kv_heads, Range{0, 128},
          "heads of keys and values that query heads share; 0: a latent of 512 and 64 is cached (MLA)");
    visit("head-width", self.head_width, Range{64, 128, 64}, "elements of a head, with --kv-heads");
    visit("window", self.window, Range{0, 999'936, 128}, "last tokens that a sliding layer sees");
    visit("qk-norm", self.head_norms, Either{"none", "heads"},
          "norms of each head's query and key before their rotation, with --kv-heads");
    visit("sinks", self.sinks, Either{"none", "heads"},
          "a learnt score of each head that its softmax counts beside those of tokens, with --kv-heads");
    visit("sparse", self.chosen, Range{0, 2048, 64},
          "tokens that a query sees at most, with a latent; 0: all");
    visit("index-heads", self.index_heads, Range{0, 64, 16},
          "heads of the indexer that chooses them; 0: a layer before has chosen");
    visit("key-width", self.key_width, Range{192, 256, 64},
          "elements of a head's query and key, the rope's 64 inside, with --sparse");
    visit("value-width", self.value_width, Range{128, 256, 128}, "elements of a head's value, with --sparse");
    visit("sharing-layers", self.sharing_layers, Range{0, 1000},
          "layers whose attention takes the choice of a layer before", Needs{"sparse", {}});
    visit("width", self.width, Range{64, 4096, 64}, "elements between the products of an expert");
    visit("dense-width", self.dense_width, Range{64, 65536, 64},
          "elements between the products of a dense layer");
    visit("vocabulary", self.vocabulary, Range{64, 1'000'000, 64}, "words that the head chooses among");
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
