#include "base/text/toml_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <variant>

#include "base/text/nearest_name.h"
#include "base/text/quantity.h"
#include "base/text/toml_guard.h"

namespace cm384::hw {
namespace {

bool is_list(const Parameter& parameter) {
  return std::holds_alternative<Integers*>(parameter.value) ||
         std::holds_alternative<Reals*>(parameter.value) || std::holds_alternative<Sizes*>(parameter.value) ||
         std::holds_alternative<Texts*>(parameter.value);
}

bool is_text(const Parameter& parameter) {
  return std::holds_alternative<std::string*>(parameter.value) ||
         std::holds_alternative<Texts*>(parameter.value);
}

// Of a value, or of a list's elements: written as a string.
bool is_string_of(const Parameter& parameter) {
  return is_quoted(parameter) && !std::holds_alternative<Integers*>(parameter.value) &&
         !std::holds_alternative<Reals*>(parameter.value);
}

bool is_real(const Parameter& parameter) {
  return std::holds_alternative<double*>(parameter.value) || std::holds_alternative<Reals*>(parameter.value);
}

// "die" of "die.clock"; "" of "die".
std::string_view parent_of(std::string_view key) {
  const std::size_t dot = key.rfind('.');
  return dot == std::string_view::npos ? "" : key.substr(0, dot);
}

std::optional<std::string> scalar_text(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
  if (const auto* whole = node.as_integer()) return std::to_string(whole->get());
  if (const auto* real = node.as_floating_point()) return format(real->get());
  return {};
}

}  // namespace

void TomlPlace::refuse(std::string_view key, std::string_view what) const {
  const toml::node* node = table->get(key);
  file->refuse(node != nullptr ? *node : static_cast<const toml::node&>(*table), key, what);
}

TomlFile::TomlFile(std::string_view text, std::string name) : name_(std::move(name)) {
  guard_toml(text, name_);
  try {
    root_ = toml::parse(text, name_);
  } catch (const toml::parse_error& error) {
    throw InputError(
        fmt::format("{}:{}: not valid TOML: {}", name_, error.source().begin.line, error.description()));
  }
}

std::string TomlFile::place_of(const toml::node& node) const {
  return fmt::format("{}:{}", name_, node.source().begin.line);
}

void TomlFile::refuse(const toml::node& node, std::string_view key, std::string_view what) const {
  throw InputError(fmt::format("{}: {}: {}", place_of(node), key, what));
}

std::vector<std::string> TomlFile::Content::names() const {
  std::vector<std::string> names;
  for (const Key& key : keys) names.push_back(key.name);
  return names;
}

const TomlFile::Content::Key* TomlFile::Content::find(std::string_view name) const {
  const auto found = std::ranges::find(keys, name, &Key::name);
  return found == keys.end() ? nullptr : &*found;
}

void TomlFile::read_content(const toml::table& table, const std::string& prefix,
                            const Content& content) const {
  // A key that nobody knows comes first: what else seems wrong may follow from it.
  for (const auto& [name, node] : table) {
    const std::string key = prefix + std::string(name.str());
    const bool elsewhere = content.rules.others || (prefix.empty() && content.rules.besides.contains(key));
    if (!elsewhere && content.find(key) == nullptr && !content.sections.contains(key))
      refuse_unknown(node, key, prefix, content);
  }
  for (const auto& [name, node] : table) {
    const std::string key = prefix + std::string(name.str());
    if (prefix.empty() && content.rules.besides.contains(key)) continue;
    if (const Content::Key* known = content.find(key)) {
      known->take(node);
    } else if (const auto section = content.sections.find(key); section != content.sections.end()) {
      if (!node.is_table()) refuse(node, key, fmt::format("is a section; allowed: [{}] and keys in it", key));
      section->second(*node.as_table());
      read_content(*node.as_table(), key + ".", content);
    }
  }
  for (const Content::Key& key : content.keys) {
    if (!key.required || !key.name.starts_with(prefix)) continue;
    const std::string_view own = std::string_view(key.name).substr(prefix.size());
    if (own.find('.') == std::string_view::npos && !table.contains(own))
      refuse(table, key.name,
             key.allowed.empty() ? "is missing" : fmt::format("is missing; allowed: {}", key.allowed));
  }
}

void TomlFile::refuse_unknown(const toml::node& node, const std::string& key, const std::string& prefix,
                              const Content& content) const {
  // A table that is no entry is meant as a section.
  std::vector<std::string> known = content.names(), sections;
  for (const auto& [section, place] : content.sections) sections.push_back(section);
  if (content.rules.unknown) {
    const bool is_section = node.is_table() && !node.as_table()->contains("value");
    refuse(node, key, "no such parameter" + content.rules.unknown(key, is_section ? sections : known));
  }
  known.insert(known.end(), sections.begin(), sections.end());
  std::vector<std::string> allowed;
  for (const std::string& name : known) {
    const std::string_view parent = parent_of(name);
    if (prefix.empty() ? parent.empty() : fmt::format("{}.", parent) == prefix) allowed.push_back(name);
  }
  refuse(node, key,
         fmt::format("no such key{}; allowed: {}", suggestion(key, known), fmt::join(allowed, ", ")));
}

std::vector<const toml::table*> TomlFile::tables_of(const toml::node& node, std::string_view key) const {
  if (!node.is_array()) refuse(node, key, fmt::format("is not a list; allowed: [[{}]]", key));
  std::vector<const toml::table*> found;
  for (const toml::node& entry : *node.as_array()) {
    if (!entry.is_table()) refuse(entry, key, fmt::format("allowed: [[{}]]", key));
    found.push_back(entry.as_table());
  }
  return found;
}

std::string TomlFile::text_of(const toml::node& node, std::string_view key) const {
  if (auto scalar = scalar_text(node)) return *scalar;
  if (!node.is_array()) refuse(node, key, "allowed: a text, a number, true, false, or a list of such");
  std::string joined;
  for (const toml::node& element : *node.as_array()) {
    if (!joined.empty()) joined += ',';
    joined += text_of(element, key);
  }
  return joined;
}

std::string TomlFile::text_of(const Parameter& parameter, const toml::node& node) const {
  const auto wrong = [&](std::string_view what) {
    refuse(node, parameter.key, fmt::format("{}; allowed: {}", what, allowed_text(parameter)));
  };
  const std::optional<std::string> found = scalar_text(node);
  if (!found) wrong("a list, table or date is of the wrong kind");
  if (node.is_string()) {
    if (!is_string_of(parameter)) wrong(fmt::format("\"{}\" is a string", *found));
  } else if (is_text(parameter)) {
    wrong("is not a string");
  } else if (node.is_floating_point()) {
    if (!is_string_of(parameter) && !is_real(parameter))
      wrong(fmt::format("{} is not a whole number",
                        found->find('.') == std::string::npos ? *found + ".0" : *found));
  } else if (node.is_boolean() && !std::holds_alternative<bool*>(parameter.value)) {
    wrong(*found + " is of the wrong kind");
  }
  return *found;
}

void TomlFile::assign(const Parameter& parameter, const toml::node& node) const {
  const auto guarded = [&](auto&& take) {
    try {
      take();
    } catch (const InputError& error) {
      refuse(node, parameter.key, error.what());
    }
  };
  if (!is_list(parameter)) {
    const std::string text = text_of(parameter, node);
    if (parameter.required && text.empty())
      refuse(node, parameter.key, fmt::format("is empty; allowed: {}", allowed_text(parameter)));
    guarded([&] { hw::assign(parameter, text); });
    return;
  }
  if (!node.is_array())
    refuse(node, parameter.key,
           fmt::format("is not a list; allowed: a list, each entry {}", allowed_text(parameter)));
  std::vector<std::string> texts;
  for (const toml::node& element : *node.as_array()) {
    texts.push_back(text_of(parameter, element));
    if (texts.back().empty())
      refuse(element, parameter.key, fmt::format("has an empty entry; allowed: {}", allowed_text(parameter)));
  }
  if (parameter.required && texts.empty())
    refuse(node, parameter.key,
           fmt::format("is empty; allowed: a list, each entry {}", allowed_text(parameter)));
  guarded([&] { assign_elements(parameter, texts); });
}

TomlEntry TomlFile::entry_of(std::string_view key, const toml::node& node, bool complete,
                             const std::vector<std::string_view>& more) const {
  TomlEntry entry{&node, node.as_table(), "", place_of(node)};
  if (entry.table == nullptr) {
    if (complete) refuse(node, key, "needs its source; allowed: { value, from, source }");
    return entry;
  }
  entry.value = entry.table->get("value");
  if (entry.value == nullptr) refuse(node, key, "has no `value`; allowed: { value, from, source }");
  std::vector<std::string_view> allowed{"value", "from", "source"};
  allowed.insert(allowed.end(), more.begin(), more.end());
  for (const auto& [name, field] : *entry.table) {
    const std::string full = fmt::format("{}.{}", key, name.str());
    if (std::ranges::find(allowed, name.str()) == allowed.end())
      refuse(field, full, fmt::format("no such field; allowed: {}", fmt::join(allowed, ", ")));
    if (name != "from" && name != "source") continue;
    if (!field.is_string()) refuse(field, full, "is not a string; allowed: a string");
    (name == "from" ? entry.from : entry.source) = field.as_string()->get();
  }
  const bool given =
      entry.table->contains("from") && entry.table->contains("source") && !entry.source.empty();
  if (!given && (complete || entry.table->contains("from")))
    refuse(node, key, "does not say where it comes from; allowed: { value, from, source }, none empty");
  return entry;
}

}  // namespace cm384::hw
