// Options of a decode layer, and the setting that follows from them.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "workloads/frame/model_option.h"
#include "workloads/frame/options.h"
#include "workloads/frame/study.h"
#include "workloads/layer/layer_run.h"
#include "workloads/layer/layer_shape.h"
#include "workloads/layer/lengths.h"

namespace cm384::studies {

// What layers are alike in; `batch` is an option of the studies.
struct LayerOptions : LayerShape {
  std::string model{}, deployment{};  // that what is not given follows from; empty: none
  int ranks = 320;
  int batch = 96;       // requests per NPU
  int dies_of_npu = 2;  // that share a package, as settle() finds them
  int kv = 4096;
  std::string kv_lengths = "fixed";
  int kv_sets = 4;
  int mtp = 1;
  std::string microbatches = "2";
  std::string split = "2:1";
  int layers = 3;
  int detail = 0, replay = 0;
  std::string routing = "uniform";
  int shared_copies = -1;
  int redundant = -1;
  int expert_ranks = 0;
  bool by_load = false;
  int renew = 0, drift = 0;
  int tensor = 0;  // 0: to be settled
  bool int8 = true, full_mesh = false;
  std::string networks = "int8";

  bool dense() const { return experts == 0; }
  // Bytes of a weight of a network.
  double network_bytes() const { return networks == "bf16" ? 2 : networks == "int8" ? 1 : 0.5; }
  int requests_of_die() const { return batch / dies_of_npu; }
  // Ranks with tokens and attention, and those with experts.
  int token_ranks() const { return ranks - expert_ranks; }
  int holders() const { return expert_ranks > 0 ? expert_ranks : ranks; }
  // Ranks that share the heads of a request.
  int sharing() const { return tensor > 0 ? tensor : dense() ? token_ranks() : 1; }

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit(
        "model", self.model, Form{"NAME|FILE"},
        "language model that shapes, numbers of layers and of experts follow from where they are not given: "
        "one of `cm384 model list`, a config.json or a TOML");
    visit(
        "deployment", self.deployment, Form{"NAME|FILE"},
        "how it is spread, for options that are not given, before what the model says: cloudmatrix384-ep320, "
        "which is the default, qwen3-235b-a3-32, or a TOML");
    visit("ranks", self.ranks, Range{2, kMostRanks}, "dies that take part, one rank each");
    visit(
        "expert-ranks", self.expert_ranks, Range{0, kMostRanks - 1},
        "the last so many dies hold all experts, the others have the tokens and attention; 0: every die has "
        "both");
    visit("kv", self.kv, Range{1, 1'000'000}, "mean tokens of a request in the cache");
    visit("kv-lengths", self.kv_lengths, Form{"fixed|uniform:LOW:HIGH|requests:FILE", check_lengths},
          "lengths of the cached sequences: all --kv, or drawn for each request of each die, evenly or from "
          "the "
          "steps of recorded requests");
    visit("kv-sets", self.kv_sets, Range{2, 64},
          "drawn lengths: sets of them that dies have, the longest die's among them");
    visit("mtp", self.mtp, Range{0, 3}, "tokens predicted beyond the next one: each is a further query");
    visit("microbatches", self.microbatches, OneOf{{"1", "2", "best"}},
          "2: two streams of a die swap them; 1: one stream; best: the faster of the two, by running both");
    visit("split", self.split, Form{"AIC/AIV,AIC/AIV|A:B|auto"},
          "cores of the stream with attention and of the other; A:B: all of the die in this ratio; auto: the "
          "fastest of four, by running them",
          Needs{"microbatches", {"2", "best"}});
    visit("layers", self.layers, Range{2, 64}, "that run one after another; the last one is shown");
    visit("detail-dies", self.detail, Range{0, kMostRanks},
          "dies whose attention and experts run as firmware, replay on the others; 0: up to 16 ranks all, "
          "else one");
    visit("replay-dies", self.replay, Range{0, kMostRanks},
          "dies whose attention and experts are replayed, those of the others last as long as one of these "
          "took; "
          "0: up to 64 ranks all, else 8");
    visit("routing", self.routing, Form{"uniform|zipf:S|groups:N:M|trace:FILE", check_routing},
          "which experts tokens choose, drawn anew for each layer");
    visit("experts", self.experts, Range{0, 1024, 32},
          "routed experts; 0: layers have a dense network of --dense-width");
    LayerShape::describe_choice_of_experts(self, visit);
    LayerShape::describe_shared_experts(self, visit);
    visit("shared-copies", self.shared_copies, Range{-1, 256},
          "ranks that hold the shared expert; -1: 32 at 320 ranks, otherwise a ninth of them");
    visit("redundant", self.redundant, Range{-1, 1024},
          "further copies of routed experts; -1: as many as fill the slots of all ranks");
    visit(
        "balance", self.by_load, Either{"even", "eplb"},
        "experts on ranks in order, or copied and packed by the load that another draw of the routing shows");
    visit("renew", self.renew, Range{0, 256},
          "steps between placements, each by the load of so many steps before; the step shown is half-way "
          "to the next one. 0: one placement",
          Needs{"balance", {"eplb"}});
    visit("drift", self.drift, Range{0, 1000},
          "steps after which zipf's weights move on by one expert; 0: they stay", Needs{"renew", {}});
    LayerShape::describe_heads(self, visit);
    visit("window", self.window, Range{0, 1'000'000},
          "last tokens that an attention over keys and values sees; 0: all");
    LayerShape::describe_scores_of_heads(self, visit);
    visit("sparse", self.chosen, Range{0, 2048, 64},
          "cached tokens that a query sees at most, with a latent; 0: all");
    LayerShape::describe_indexer(self, visit);
    visit("attention-tp", self.tensor, Range{0, 256},
          "ranks that share the heads of a request, and the network of a dense layer; 0: one, and all of a "
          "dense "
          "model");
    LayerShape::describe_width_of_experts(self, visit);
    visit("variant", self.full_mesh, Either{"status", "full-mesh"},
          "dispatch with flags and counts after a barrier, or with flags inside the rows' 512 B blocks");
    visit("projections", self.int8, Either{"bf16", "int8"},
          "type of attention's products with hidden and q-lora");
    visit(
        "networks", self.networks, OneOf{{"bf16", "int8", "w4a8"}},
        "type of weights and products of experts and of dense networks, w4a8: weights of 4 bits with a scale "
        "per column, activations of INT8; dispatch sends INT8 in any case");
  }
  // A ratio becomes cores. Throws InputError.
  void settle(const hw::Machine& machine);
  // Gives options their values from the deployment and, but for these, from the model's `values`.
  void follow(const std::vector<hw::Parameter>& options, const Given& given,
              const OptionValues& values) const;
  std::vector<std::string> files() const;
  // What the deployment leaves open of `options`.
  std::vector<Alternatives> open(const std::vector<hw::Parameter>& options) const;
  // What follows from a model. Throws InputError for what is not modelled, by the name of its fact.
  static OptionValues of_model(const models::Model& model);
  // Throws InputError for options that have no effect beside these.
  void check_effect(const Given& given) const;
};

// The options with the mean of drawn lengths as `kv`. The result gets the files that are read, and a note
// where --kv has no effect.
LayerOptions with_lengths(const StudyContext& context, LayerOptions options, StudyResult& result);

// What the options name: one setting, or those that `best` and `auto` choose among. Throws InputError for
// what does not fit the machine or each other.
std::vector<LayerSetting> layer_settings(const StudyContext& context, const LayerOptions& options);

// The fastest of these settings, and what it gave. Empty stages: interrupted.
struct ChosenLayer {
  LayerSetting setting;
  LayerReading reading;
  std::string tried;  // for people, where there was a choice: each setting's time of a layer
};
ChosenLayer measure_fastest(const StudyContext& context, std::vector<LayerSetting> settings,
                            SimulatorCounts& counts);
// For people, where no die's work lasts as long as another's though a number of replays is given.
std::string unused_replay_dies(const LayerSetting& setting);
// "16/32,8/16", or the cores of the one stream.
std::string split_text(const LayerSetting& setting);

// "16/32,8/16": groups of an AIC and two AIVs, one stream's behind the other's. Throws InputError.
std::array<CoreShare, 2> parse_split(std::string_view text, int groups);
// Tokens in the cache of the die that has most, no more than `window` of a request.
std::uint64_t fullest_die(const LayerSetting& setting, std::uint32_t window = ~0u);
// Ranks that hold the shared expert where nobody says.
int default_shared_copies(int ranks);
}  // namespace cm384::studies
