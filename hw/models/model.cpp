#include "hw/models/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/text/embedded_text.h"
#include "base/text/error.h"
#include "base/text/input_file.h"
#include "base/text/nearest_name.h"

namespace cm384::models {
namespace {

// Facts that have to fit together; a message names the first that does not.
class FactCheck {
 public:
  FactCheck(const ModelFacts& facts, const std::string& file) : facts_(facts), file_(file) {}

  void check() const {
    required();
    attention();
    layers_without_experts();
    experts();
  }

 private:
  void require(bool good, std::string_view key, const std::string& what) const {
    if (!good) throw InputError(fmt::format("{}: {}: {}", file_, key, what));
  }
  void present(Whole value, std::string_view key) const { require(value > 0, key, "is not stated"); }
  static bool any(const Words& pattern, std::string_view word) {
    return std::ranges::find(pattern, word) != pattern.end();
  }
  void fits(const Words& pattern, std::string_view key) const {
    require(static_cast<Whole>(pattern.size()) <= facts_.layers, key,
            fmt::format("has {} entries for {} layers", pattern.size(), facts_.layers));
  }

  void required() const {
    present(facts_.hidden, "hidden");
    present(facts_.layers, "layers");
    present(facts_.vocabulary, "vocabulary");
  }

  void attention() const {
    const ModelFacts::OfAttention& of = facts_.attention;
    fits(of.pattern, "attention.pattern");
    fits(facts_.index.pattern, "index.pattern");
    present(of.heads, "attention.heads");
    present(of.key_width, "attention.key_width");
    present(of.value_width, "attention.value_width");
    if (of.kv_latent > 0) {
      require(of.position_width < of.key_width, "attention.position_width",
              fmt::format("{} of a key of {}; allowed: less", of.position_width, of.key_width));
      require(!any(of.pattern, "sliding"), "attention.pattern", "sliding, with a latent, is not modelled");
      require(!of.output_gate, "attention.output_gate", "with a latent it is not modelled");
      require(!of.head_norms, "attention.head_norms", "with a latent they are not modelled");
      require(!of.sink_scores, "attention.sink_scores", "with a latent they are not modelled");
    } else {
      present(of.kv_heads, "attention.kv_heads");
      require(of.heads % of.kv_heads == 0, "attention.kv_heads",
              fmt::format("{}; allowed: a divisor of {} heads", of.kv_heads, of.heads));
    }
    if (any(of.pattern, "sliding")) present(of.window, "attention.window");
    if (any(of.pattern, "linear")) {
      present(facts_.linear.key_heads, "linear.key_heads");
      present(facts_.linear.value_heads, "linear.value_heads");
      present(facts_.linear.key_width, "linear.key_width");
      present(facts_.linear.value_width, "linear.value_width");
    }
    if (facts_.index.heads == 0) return;
    require(of.kv_latent > 0, "index.heads", "an indexer without a latent is not modelled");
    present(facts_.index.width, "index.width");
    present(facts_.index.chosen, "index.chosen");
    require(facts_.index.pattern.empty() || facts_.index.pattern.front() == "full", "index.pattern",
            "begins with shared; allowed: full first, whose choice others share");
  }

  void layers_without_experts() const {
    const ModelFacts::OfDense& of = facts_.dense;
    require(of.first <= facts_.layers, "dense.first",
            fmt::format("{} of {} layers", of.first, facts_.layers));
    for (const Whole layer : of.layers)
      require(layer < facts_.layers, "dense.layers",
              fmt::format("{}; allowed: 0 to {}", layer, facts_.layers - 1));
    const bool has = facts_.experts.routed == 0 || of.first > 0 || !of.layers.empty() || of.beside > 0;
    if (has) present(of.width, "dense.width");
  }

  void experts() const {
    const ModelFacts::OfExperts& of = facts_.experts;
    if (of.routed == 0) {
      require(of.shared == 0 && of.chosen == 0 && of.zero == 0, "experts.routed", "is not stated");
      return;
    }
    present(of.chosen, "experts.chosen");
    present(of.width, "experts.width");
    if (of.shared > 0) present(of.shared_width, "experts.shared_width");
    require(of.chosen <= of.routed + of.zero, "experts.chosen",
            fmt::format("{} of {} experts", of.chosen, of.routed + of.zero));
    require(of.routed % of.groups == 0, "experts.groups",
            fmt::format("{}; allowed: a divisor of {} experts", of.groups, of.routed));
    require(of.groups_chosen <= of.groups && of.routed / of.groups * of.groups_chosen >= of.chosen - of.zero,
            "experts.groups_chosen",
            fmt::format("{} of {} groups do not have {} experts", of.groups_chosen, of.groups, of.chosen));
  }

  const ModelFacts& facts_;
  const std::string& file_;
};

Indexer indexer_of(const ModelFacts& facts, std::size_t layer) {
  const ModelFacts::OfIndex& of = facts.index;
  if (of.heads == 0) return {};
  const bool own = of.pattern.empty() || of.pattern[layer % of.pattern.size()] == "full";
  return own ? Indexer{of.heads, of.width, of.chosen} : Indexer{0, 0, of.chosen};
}

Attention attention_of(const ModelFacts& facts, std::size_t layer) {
  const ModelFacts::OfAttention& of = facts.attention;
  const std::string kind = of.pattern.empty() ? "full" : of.pattern[layer % of.pattern.size()];
  Attention made;
  if (kind == "linear") {
    const ModelFacts::OfLinear& linear = facts.linear;
    made.kind = AttentionKind::linear;
    made.heads = linear.value_heads;
    made.kv_heads = linear.key_heads;
    made.key_width = linear.key_width;
    made.value_width = linear.value_width;
    made.convolution = linear.convolution;
    made.state_bytes = linear.state_bytes;
    return made;
  }
  made.heads = of.heads;
  made.key_width = of.key_width;
  made.value_width = of.value_width;
  made.sinks = of.sinks;
  made.output_gate = of.output_gate;
  made.head_norms = of.head_norms;
  made.sink_scores = of.sink_scores;
  if (of.kv_latent > 0) {
    made.kind = AttentionKind::latent;
    made.position_width = of.position_width;
    made.query_latent = of.query_latent;
    made.kv_latent = of.kv_latent;
    made.indexer = indexer_of(facts, layer);
    return made;
  }
  made.kv_heads = of.kv_heads;
  if (kind == "sliding") {
    made.kind = AttentionKind::sliding;
    made.window = of.window;
  }
  return made;
}

Layer layer_of(const ModelFacts& facts, std::size_t index) {
  Layer made;
  made.attention = attention_of(facts, index);
  made.attentions = facts.attention.per_layer;
  const Whole at = static_cast<Whole>(index);
  const ModelFacts::OfExperts& experts = facts.experts;
  const bool dense = experts.routed == 0 || at < facts.dense.first ||
                     std::ranges::find(facts.dense.layers, at) != facts.dense.layers.end();
  made.dense_networks = dense ? 1 : facts.dense.beside;
  if (made.dense_networks > 0) made.dense_width = facts.dense.width;
  if (!dense)
    made.experts = {.routed = experts.routed,
                    .chosen = experts.chosen,
                    .width = experts.width,
                    .shared = experts.shared,
                    .shared_width = experts.shared_width,
                    .zero = experts.zero,
                    .groups = experts.groups,
                    .groups_chosen = experts.groups_chosen,
                    .gate = experts.gate,
                    .shared_gate = experts.shared_gate,
                    .normalised = experts.normalised,
                    .scaling = experts.scaling};
  return made;
}

// The draft's layer is built like the last one, and chooses its tokens itself.
Layer draft_of(const ModelFacts& facts, const Layer& last) {
  Layer made = last;
  if (facts.index.heads > 0)
    made.attention.indexer = {facts.index.heads, facts.index.width, facts.index.chosen};
  return made;
}

bool is_path(std::string_view text) {
  return text.find('/') != std::string_view::npos || text.ends_with(".json") || text.ends_with(".toml");
}

// What a file is called after: `x.config.json` and `x/config.json` are x.
std::string name_of(const std::string& path) {
  const std::filesystem::path file(path);
  std::string name = file.stem().string();
  if (name == "config")
    name = std::filesystem::absolute(file).lexically_normal().parent_path().filename().string();
  if (name.ends_with(".config")) name.resize(name.size() - std::string_view(".config").size());
  return name;
}

}  // namespace

std::string_view to_string(AttentionKind kind) {
  switch (kind) {
    case AttentionKind::full:
      return "full";
    case AttentionKind::latent:
      return "latent";
    case AttentionKind::sliding:
      return "sliding";
    case AttentionKind::linear:
      return "linear";
  }
  return "";
}

bool Model::has_experts() const {
  return std::ranges::any_of(layers, &Layer::has_experts);
}

Experts Model::experts() const {
  const auto found = std::ranges::find_if(layers, &Layer::has_experts);
  return found == layers.end() ? Experts{} : found->experts;
}

Model build_model(StatedModel stated, const std::string& file) {
  const ModelFacts& facts = stated.facts;
  FactCheck(facts, file).check();
  Model made;
  made.name = stated.name;
  made.description = stated.description;
  made.hidden = facts.hidden;
  made.vocabulary = facts.vocabulary;
  made.context = facts.context;
  made.tied_heads = facts.tied_heads;
  for (Whole i = 0; i < facts.layers; ++i)
    made.layers.push_back(layer_of(facts, static_cast<std::size_t>(i)));
  made.draft_layers = facts.draft.layers;
  if (made.draft_layers > 0) made.draft = draft_of(facts, made.layers.back());
  made.weights = {facts.weights.format, facts.weights.covers == "experts", facts.weights.block};
  made.stated = std::move(stated);
  return made;
}

Model load_model(const std::string& name_or_path) {
  for (const hw::EmbeddedText& text : hw::embedded_models()) {
    if (text.name != name_or_path) continue;
    const std::string file = name_or_path + ".toml";
    StatedModel stated = read_toml(text.text, file, true);
    stated.name = name_or_path;
    return build_model(std::move(stated), file);
  }
  if (!is_path(name_or_path))
    throw InputError(fmt::format(
        "model '{}': none that comes with cm384{}; allowed: {}, or a file (with '/' or ending in .json or "
        ".toml)",
        name_or_path, hw::suggestion(name_or_path, model_names()), fmt::join(model_names(), ", ")));
  const std::string text = read_input(name_or_path, kLargestModelFile);
  StatedModel stated = name_or_path.ends_with(".toml") ? read_toml(text, name_or_path, false)
                                                       : read_config(text, name_or_path);
  if (stated.name.empty()) stated.name = name_of(name_or_path);
  Model made = build_model(std::move(stated), name_or_path);
  made.file = name_or_path;
  return made;
}

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const hw::EmbeddedText& text : hw::embedded_models()) names.emplace_back(text.name);
  std::ranges::sort(names);
  return names;
}

}  // namespace cm384::models
