#include "workloads/layer/step_deployment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/text/embedded_text.h"
#include "base/text/error.h"
#include "base/text/input_file.h"
#include "base/text/nearest_name.h"
#include "base/text/toml_file.h"

namespace cm384::studies {
namespace {

constexpr std::size_t kLargestStepDeployment = std::size_t{1} << 16;

// Each value as the option of its own takes it.
struct StepDeployment {
  std::string description;
  hw::TomlNode ranks, mtp, microbatches, split, launch;

  struct OfAttention {
    hw::TomlNode tensor, projections;
    template <class Self, class Visitor>
    static void describe(Self& self, Visitor&& visit) {
      visit("tp", self.tensor, "--attention-tp");
      visit("projections", self.projections, "--projections");
    }
  } attention;
  struct OfExperts {
    hw::TomlNode ranks, shared_copies, redundant, balance, dispatch;
    template <class Self, class Visitor>
    static void describe(Self& self, Visitor&& visit) {
      visit("ranks", self.ranks, "--expert-ranks");
      visit("shared_copies", self.shared_copies, "--shared-copies");
      visit("redundant", self.redundant, "--redundant");
      visit("balance", self.balance, "--balance");
      visit("dispatch", self.dispatch, "--variant");
    }
  } experts;
  struct OfQuantisation {
    hw::TomlNode weights;
    template <class Self, class Visitor>
    static void describe(Self& self, Visitor&& visit) {
      visit("weights", self.weights, "--networks, and --projections where [attention] does not say");
    }
  } quantisation;
  struct OfHead {
    hw::TomlNode tensor;
    template <class Self, class Visitor>
    static void describe(Self& self, Visitor&& visit) {
      visit("tp", self.tensor, "--head-tp");
    }
  } head;
  struct OfPrices {
    hw::TomlNode hour, watt;
    template <class Self, class Visitor>
    static void describe(Self& self, Visitor&& visit) {
      visit("npu_hour", self.hour, "--npu-hour");
      visit("npu_watt", self.watt, "--npu-watt");
    }
  } prices;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("description", self.description, "a line for people");
    visit("ranks", self.ranks, "--ranks");
    visit("mtp", self.mtp, "--mtp");
    visit("microbatches", self.microbatches, "--microbatches");
    visit("split", self.split, "--split");
    visit("launch", self.launch, "--launch");
    visit("attention", self.attention);
    visit("experts", self.experts);
    visit("quantisation", self.quantisation);
    visit("head", self.head);
    visit("prices", self.prices);
  }
};

bool is_deployment_file(const std::string& name_or_path) {
  return name_or_path.find('/') != std::string::npos || name_or_path.ends_with(".toml");
}

// The text of one that comes with cm384; null: there is none.
const hw::EmbeddedText* known_deployment(const std::string& name) {
  for (const hw::EmbeddedText& known : hw::embedded_step_deployments()) {
    if (known.name == name) return &known;
  }
  return nullptr;
}

// An option as the file has it.
struct SpreadOption {
  std::string option, value;
  std::vector<std::string> values;  // what it may be; empty: nothing but `value`
};

// `why` and `values` go together, and the value itself, which comes first here, is one of them. In one that
// comes with cm384 what is assumed has them.
std::vector<std::string> alternatives_in(const hw::TomlFile& file, const std::string& key,
                                         const hw::TomlEntry& entry, const std::string& own, bool ships) {
  if (entry.table == nullptr) return {};
  const toml::node* values = entry.table->get("values");
  const toml::node* why = entry.table->get("why");
  if (values == nullptr && why == nullptr && (!ships || entry.from != "assumed")) return {};
  const bool reason = why != nullptr && why->is_string() && !why->as_string()->get().empty();
  const toml::array* list = values != nullptr ? values->as_array() : nullptr;
  if (!reason || list == nullptr || list->size() < 2)
    file.refuse(*entry.table, key, "allowed: `values`, a list of two or more, with `why`");
  std::vector<std::string> texts;
  for (const toml::node& one : *list) texts.push_back(file.text_of(one, key + ".values"));
  const auto at = std::ranges::find(texts, own);
  if (at == texts.end())
    file.refuse(*values, key + ".values", fmt::format("has not the value itself, {}", own));
  std::rotate(texts.begin(), at, at + 1);
  return texts;
}

std::vector<SpreadOption> spread_of(const std::string& name_or_path) {
  const hw::EmbeddedText* known = known_deployment(name_or_path);
  if (known == nullptr && !is_deployment_file(name_or_path))
    throw InputError(fmt::format(
        "--deployment {}: no such deployment{}; allowed: {}, or a file (with '/' or ending in .toml)",
        name_or_path, hw::suggestion(name_or_path, step_deployment_names()),
        fmt::join(step_deployment_names(), ", ")));
  const hw::TomlFile file(
      known != nullptr ? std::string(known->text) : read_input(name_or_path, kLargestStepDeployment),
      known != nullptr ? name_or_path + ".toml" : name_or_path);
  StepDeployment of;
  file.read(of);
  std::vector<SpreadOption> options;
  const auto add = [&](const char* key, const hw::TomlNode& node, const char* option) {
    if (!node) return;
    const hw::TomlEntry entry = file.entry_of(key, *node, known != nullptr, {"values", "why"});
    std::string value = file.text_of(*entry.value, key);
    std::vector<std::string> values = alternatives_in(file, key, entry, value, known != nullptr);
    options.push_back({option, std::move(value), std::move(values)});
  };
  add("ranks", of.ranks, "ranks");
  add("mtp", of.mtp, "mtp");
  add("microbatches", of.microbatches, "microbatches");
  add("split", of.split, "split");
  add("launch", of.launch, "launch");
  add("attention.tp", of.attention.tensor, "attention-tp");
  add("attention.projections", of.attention.projections, "projections");
  add("quantisation.weights", of.quantisation.weights, "networks");
  if (!of.attention.projections) add("quantisation.weights", of.quantisation.weights, "projections");
  add("experts.ranks", of.experts.ranks, "expert-ranks");
  add("experts.shared_copies", of.experts.shared_copies, "shared-copies");
  add("experts.redundant", of.experts.redundant, "redundant");
  add("experts.balance", of.experts.balance, "balance");
  add("experts.dispatch", of.experts.dispatch, "variant");
  add("head.tp", of.head.tensor, "head-tp");
  add("prices.npu_hour", of.prices.hour, "npu-hour");
  add("prices.npu_watt", of.prices.watt, "npu-watt");
  return options;
}

}  // namespace

std::vector<std::string> step_deployment_names() {
  std::vector<std::string> names;
  for (const hw::EmbeddedText& known : hw::embedded_step_deployments()) names.emplace_back(known.name);
  return names;
}

OptionValues load_step_deployment(const std::string& name_or_path) {
  OptionValues values;
  for (SpreadOption& one : spread_of(name_or_path)) values.emplace_back(one.option, std::move(one.value));
  return values;
}

std::vector<Alternatives> alternatives_of_step_deployment(const std::string& name_or_path) {
  std::vector<Alternatives> open;
  for (SpreadOption& one : spread_of(name_or_path)) {
    if (!one.values.empty()) open.push_back({one.option, std::move(one.values)});
  }
  return open;
}

std::vector<std::string> step_deployment_files(const std::string& name_or_path) {
  if (name_or_path.empty() || known_deployment(name_or_path) != nullptr) return {};
  return {name_or_path};
}

}  // namespace cm384::studies
