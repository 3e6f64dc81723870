// Our own TOML of a model: the facts of model_facts.h by their keys, each with its unit and where it is from.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text/error.h"
#include "base/text/nearest_name.h"
#include "base/text/toml_file.h"
#include "hw/models/model_facts.h"

namespace cm384::models {
namespace {

constexpr std::array<std::string_view, 3> kFrom{"published", "derived", "assumed"};
constexpr std::array<std::string_view, 3> kConfidence{"high", "medium", "low"};

Json json_of(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* whole = node.as_integer()) return whole->get();
  if (const auto* real = node.as_floating_point()) return real->get();
  if (const auto* flag = node.as_boolean()) return flag->get();
  if (const auto* list = node.as_array()) {
    Json made = Json::array();
    for (const toml::node& element : *list) made.push_back(json_of(element));
    return made;
  }
  return nullptr;
}

class ModelToml {
 public:
  ModelToml(std::string_view text, const std::string& file, bool shipped)
      : file_name_(file), file_(text, file), shipped_(shipped), facts_(list_facts(stated_.facts)) {
    for (const Fact& fact : facts_) keys_.push_back(fact.key);
  }

  StatedModel read() {
    for (const char* key : {"name", "description"}) {
      if (file_.root().contains(key))
        (std::string_view(key) == "name" ? stated_.name : stated_.description) =
            file_.text_of(*file_.root().get(key), key);
    }
    read_section(file_.root(), "");
    return std::move(stated_);
  }

 private:
  void read_section(const toml::table& table, const std::string& prefix) {
    for (const auto& [name, node] : table) {
      const std::string key = prefix + std::string(name.str());
      if (key == "name" || key == "description") continue;
      const auto fact = std::ranges::find(facts_, key, &Fact::key);
      const bool section =
          std::ranges::any_of(keys_, [&](const std::string& known) { return known.starts_with(key + "."); });
      if (fact != facts_.end()) {
        read_fact(*fact, node);
      } else if (section && node.is_table()) {
        read_section(*node.as_table(), key + ".");
      } else {
        file_.refuse(node, key,
                     fmt::format("no such fact of a model{}; allowed: {}", hw::suggestion(key, keys_),
                                 fmt::join(keys_, ", ")));
      }
    }
  }

  void read_fact(const Fact& fact, const toml::node& node) {
    const hw::TomlEntry entry = file_.entry_of(fact.key, node, shipped_, {"unit", "confidence"});
    if (shipped_ && entry.table == nullptr)
      file_.refuse(node, fact.key, "allowed: { value, unit, from, source, confidence }");
    try {
      fact.assign(json_of(*entry.value));
    } catch (const InputError& error) {
      file_.refuse(*entry.value, fact.key, error.what());
    }
    Source source{"assumed", fmt::format("{}:{}", file_name_, node.source().begin.line), ""};
    if (entry.table != nullptr) read_entry(fact, entry, source);
    stated_.sources[fact.key] = source;
  }

  void read_entry(const Fact& fact, const hw::TomlEntry& entry, Source& source) {
    const toml::table& table = *entry.table;
    if (shipped_ && !table.contains("confidence")) file_.refuse(table, fact.key, "has no `confidence`");
    const toml::node* unit = table.get("unit");
    if (unit != nullptr ? file_.text_of(*unit, "unit") != fact.unit : shipped_ && !fact.unit.empty())
      file_.refuse(table, fact.key,
                   fmt::format("its unit; allowed: {}", fact.unit.empty() ? "none" : fact.unit));
    if (table.contains("from")) source.from = word(table, "from", kFrom);
    if (table.contains("confidence")) source.confidence = word(table, "confidence", kConfidence);
    if (!entry.source.empty()) source.source = entry.source;
  }

  std::string word(const toml::table& entry, std::string_view field,
                   const std::array<std::string_view, 3>& allowed) const {
    const std::string text = file_.text_of(*entry.get(field), field);
    if (std::ranges::find(allowed, text) == allowed.end())
      file_.refuse(*entry.get(field), field,
                   fmt::format("'{}'; allowed: {}", text, fmt::join(allowed, ", ")));
    return text;
  }

  std::string file_name_;
  hw::TomlFile file_;
  bool shipped_;
  StatedModel stated_;
  std::vector<Fact> facts_;  // point into `stated_`
  std::vector<std::string> keys_;
};

}  // namespace

StatedModel read_toml(std::string_view text, const std::string& file, bool shipped) {
  return ModelToml(text, file, shipped).read();
}

}  // namespace cm384::models
