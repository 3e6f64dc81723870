#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "app/cli/commands.h"
#include "app/cli/exit_code.h"
#include "base/text/error.h"
#include "base/text/json.h"
#include "hw/models/model.h"
#include "hw/models/model_sizes.h"

namespace cm384::cli {
namespace {

using models::Attention;
using models::AttentionKind;
using models::Layer;
using models::LayerSizes;
using models::Matrix;
using models::Model;
using models::ModelSizes;
using models::Whole;

constexpr std::size_t kTextWidth = 110;

struct ModelShowOptions {
  std::string model;
  bool json = false;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("model", self.model, studies::Form{"NAME|FILE"},
          "one of `cm384 model list`, a config.json as model hubs publish it, or a TOML of your own");
    visit("format", self.json, studies::Either{"table", "json"}, "of what is shown");
  }
};

// With commas between thousands.
std::string grouped(Whole value) {
  std::string text = std::to_string(value);
  for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return text;
}

// Layers that are alike, and how many there are; in the order in which the first of each comes.
struct Alike {
  Layer layer;
  Whole count = 0;
};
std::vector<Alike> alike_layers(const Model& model) {
  std::vector<Alike> kinds;
  for (const Layer& layer : model.layers) {
    const auto found = std::ranges::find(kinds, layer, &Alike::layer);
    if (found == kinds.end()) {
      kinds.push_back({layer, 1});
    } else {
      ++found->count;
    }
  }
  return kinds;
}

// Lines of at most kTextWidth columns, those after the first set in.
std::string wrapped(const std::string& head, const std::vector<std::string>& words) {
  std::string text, line = head;
  for (const std::string& word : words) {
    if (line.size() + word.size() + 1 > kTextWidth) {
      text += line + "\n";
      line = " ";
    }
    line += " " + word;
  }
  return text + line + "\n";
}

// Columns as wide as their cells; numbers to the right.
std::string aligned(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line = fmt::format("{:<{}}", row[0], widths[0]);
    for (std::size_t i = 1; i < row.size(); ++i) line += fmt::format("  {:>{}}", row[i], widths[i]);
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string or_dash(Whole value) {
  return value == 0 ? "-" : grouped(value);
}

std::string times_text(Whole count, Whole elements) {
  return count > 1 ? fmt::format("{} x {}", count, grouped(elements)) : or_dash(elements);
}

std::string experts_text(const models::Experts& experts) {
  std::string text = or_dash(experts.routed);
  if (experts.zero > 0) text += fmt::format(" + {} zero", experts.zero);
  if (experts.groups > 1) text += fmt::format(" in {} of {} groups", experts.groups_chosen, experts.groups);
  return text;
}

std::string table_of_layers(const Model& model) {
  std::vector<std::vector<std::string>> rows{{"layers", "attention", "its weights", "indexer",
                                              "dense network", "experts", "chosen", "one expert", "shared",
                                              "gate"}};
  for (const auto& [layer, count] : alike_layers(model)) {
    const LayerSizes sizes = models::sizes_of(model, layer);
    const models::Experts& experts = layer.experts;
    const bool has = layer.has_experts();
    rows.push_back({std::to_string(count), std::string(to_string(layer.attention.kind)),
                    times_text(layer.attentions, sizes.attention), or_dash(sizes.indexer),
                    layer.dense_networks == 0 ? "-" : times_text(layer.dense_networks, sizes.dense),
                    experts_text(experts), or_dash(experts.chosen), has ? grouped(sizes.expert) : "-",
                    or_dash(sizes.shared), has ? grouped(sizes.gate) : "-"});
  }
  return aligned(rows);
}

// Of each kind of attention the matrices.
std::string matrices_text(const Model& model) {
  std::vector<std::pair<std::string, std::vector<std::string>>> shown;
  const auto add = [&](const std::string& of, const std::vector<Matrix>& matrices) {
    if (matrices.empty()) return;
    std::vector<std::string> words;
    for (const Matrix& matrix : matrices)
      words.push_back(fmt::format("{} {}{}", matrix.name, grouped(matrix.elements),
                                  &matrix == &matrices.back() ? "" : ","));
    if (std::ranges::find(shown, std::pair{of, words}) == shown.end()) shown.emplace_back(of, words);
  };
  for (const Alike& kind : alike_layers(model)) {
    const Attention& of = kind.layer.attention;
    add(fmt::format("{} attention:", to_string(of.kind)), models::attention_matrices(model, of));
    add("indexer:", models::indexer_matrices(model, of));
  }
  std::string text;
  for (const auto& [of, words] : shown) text += wrapped(of, words);
  return text;
}

std::string head_text(const Model& model) {
  std::string weights = model.weights.format;
  if (model.weights.experts_only) weights += ", experts only";
  if (!model.weights.block.empty())
    weights += fmt::format(", a scale for {}", fmt::join(model.weights.block, " x "));
  const std::string context = model.context > 0 ? fmt::format(", context {}", grouped(model.context)) : "";
  return fmt::format("{}{}{}\n{} layers of {} elements, vocabulary {}{}; weights {}\n", model.name,
                     model.description.empty() ? "" : ": ", model.description, model.layers.size(),
                     grouped(model.hidden), grouped(model.vocabulary), context, weights);
}

std::string table_of_sizes(const Model& model, const ModelSizes& sizes) {
  std::string text;
  const auto add = [&](std::string_view what, Whole value, const std::string& note, bool always = false) {
    if (value != 0 || always) text += fmt::format("{:<18}{:>19}  {}\n", what, grouped(value), note);
  };
  const std::string range =
      sizes.least_active == sizes.most_active
          ? ""
          : fmt::format(" on average; {} to {}", grouped(sizes.least_active), grouped(sizes.most_active));
  add("parameters", sizes.parameters, "weights of matrices");
  add("active", sizes.active, fmt::format("of a token{}", range));
  add("draft", sizes.draft_parameters, fmt::format("parameters of {} more", model.draft_layers));
  add("embedding", sizes.embedding,
      model.tied_heads ? "which is the head as well" : "and as many in the head");
  add("linear", sizes.linear_flops,
      fmt::format("FLOP/token, {} of them in the head", grouped(sizes.head_flops)));
  const models::AttentionFlops& attention = sizes.attention;
  add("attention", attention.full, "FLOP/token per cached token");
  add("  chosen", attention.chosen,
      fmt::format("of at most {} cached tokens", grouped(attention.chosen_tokens)));
  add("  indexer", attention.indexer, "FLOP/token per cached token");
  add("  sliding", attention.sliding, fmt::format("of at most {} cached tokens", grouped(attention.window)));
  add("  linear", attention.linear, "FLOP/token, whatever the context");
  add("  not absorbed", attention.not_absorbed, "FLOP/token per visible token, as prefill does");
  add("cache", sizes.kv_bytes, "B/token, BF16", true);
  add("  indexer", sizes.index_bytes, "B/token, FP8 without scales");
  add("  sliding", sizes.sliding_bytes,
      fmt::format("B/request from {} tokens on", grouped(attention.window)));
  add("  state", sizes.state_bytes, "B/request");
  add("  draft", sizes.draft_kv_bytes + sizes.draft_index_bytes, "B/token more");
  return text;
}

Json json_of(const std::vector<Matrix>& matrices) {
  Json made = Json::object();
  for (const Matrix& matrix : matrices) made[matrix.name] = matrix.elements;
  return made;
}

Json layers_json(const Model& model) {
  Json list = Json::array();
  for (const auto& [layer, count] : alike_layers(model)) {
    const LayerSizes sizes = models::sizes_of(model, layer);
    list.push_back({{"layers", count},
                    {"attention", to_string(layer.attention.kind)},
                    {"attentions", layer.attentions},
                    {"attention_parameters", sizes.attention},
                    {"attention_matrices", json_of(models::attention_matrices(model, layer.attention))},
                    {"indexer_parameters", sizes.indexer},
                    {"dense_networks", layer.dense_networks},
                    {"dense_parameters", sizes.dense},
                    {"experts", layer.experts.routed},
                    {"zero_experts", layer.experts.zero},
                    {"experts_per_token", layer.experts.chosen},
                    {"expert_parameters", layer.has_experts() ? sizes.expert : 0},
                    {"shared_parameters", sizes.shared},
                    {"gate_parameters", sizes.gate},
                    {"parameters", sizes.parameters},
                    {"active", sizes.active}});
  }
  return list;
}

Json facts_json(const Model& model) {
  models::ModelFacts facts = model.stated.facts;
  Json list = Json::array();
  for (const models::Fact& fact : models::list_facts(facts)) {
    const auto source = model.stated.sources.find(fact.key);
    if (source == model.stated.sources.end()) continue;
    list.push_back({{"key", fact.key},
                    {"value", fact.json()},
                    {"unit", fact.unit},
                    {"from", source->second.from},
                    {"source", source->second.source},
                    {"confidence", source->second.confidence}});
  }
  return list;
}

Json to_json(const Model& model, const ModelSizes& sizes) {
  const models::AttentionFlops& attention = sizes.attention;
  return {
      {"model", model.name},
      {"description", model.description},
      {"parameters", sizes.parameters},
      {"active", sizes.active},
      {"least_active", sizes.least_active},
      {"most_active", sizes.most_active},
      {"draft_parameters", sizes.draft_parameters},
      {"embedding", sizes.embedding},
      {"flop_per_token",
       {{"linear", sizes.linear_flops}, {"head", sizes.head_flops}, {"linear_attention", attention.linear}}},
      {"flop_per_cached_token",
       {{"full", attention.full},
        {"chosen", attention.chosen},
        {"chosen_tokens", attention.chosen_tokens},
        {"indexer", attention.indexer},
        {"sliding", attention.sliding},
        {"window_tokens", attention.window},
        {"not_absorbed", attention.not_absorbed}}},
      {"cache_bytes_per_token",
       {{"kv", sizes.kv_bytes},
        {"index", sizes.index_bytes},
        {"draft_kv", sizes.draft_kv_bytes},
        {"draft_index", sizes.draft_index_bytes}}},
      {"cache_bytes_per_request", {{"sliding", sizes.sliding_bytes}, {"state", sizes.state_bytes}}},
      {"layers", layers_json(model)},
      {"facts", facts_json(model)},
      {"unused", model.stated.unused}};
}

int list_models(const Program&, const NoOptions&, const studies::Given&) {
  for (const std::string& name : models::model_names()) {
    const Model model = models::load_model(name);
    fmt::print("{:<18}{:>6.1f} B, {:>4.1f} B active  {}\n", name,
               static_cast<double>(models::model_sizes(model).parameters) / 1e9,
               static_cast<double>(models::model_sizes(model).active) / 1e9, model.description);
  }
  return kDone;
}

int show_model(const Program&, const ModelShowOptions& options, const studies::Given&) {
  if (options.model.empty())
    throw InputError(fmt::format("model show: no model given; allowed: {}, or a file",
                                 fmt::join(models::model_names(), ", ")));
  const Model model = models::load_model(options.model);
  const ModelSizes sizes = models::model_sizes(model);
  if (options.json) {
    fmt::print("{}\n", to_json(model, sizes).dump(2));
    return kDone;
  }
  fmt::print("{}\n{}\n{}{}", head_text(model), table_of_sizes(model, sizes), table_of_layers(model),
             matrices_text(model));
  if (!model.stated.unused.empty()) {
    std::vector<std::string> words = model.stated.unused;
    for (std::size_t i = 0; i + 1 < words.size(); ++i) words[i] += ",";
    fmt::print("{}", wrapped("not used:", words));
  }
  return kDone;
}

}  // namespace

constinit const Command kModelListCommand =
    make_command<NoOptions, list_models>("model list", "", "language models that come with cm384");
constinit const Command kModelShowCommand = make_command<ModelShowOptions, show_model>(
    "model show", "NAME|FILE", "parameters, caches and FLOPs that follow from a model", "model");

}  // namespace cm384::cli
