#include "base/text/toml_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/error.h"
#include "base/text/nearest_name.h"
#include "base/text/toml_guard.h"

namespace cm384::hw {

TomlFile::TomlFile(std::string_view text, std::string name) : name_(std::move(name)) {
  guard_toml(text, name_);
  try {
    root_ = toml::parse(text, name_);
  } catch (const toml::parse_error& error) {
    throw InputError(
        fmt::format("{}:{}: not valid TOML: {}", name_, error.source().begin.line, error.description()));
  }
}

void TomlFile::refuse(const toml::node& node, std::string_view key, std::string_view what) const {
  throw InputError(fmt::format("{}:{}: {}: {}", name_, node.source().begin.line, key, what));
}

void TomlFile::check_keys(const toml::table& table, const std::vector<std::string>& allowed) const {
  for (const auto& [key, node] : table) {
    const std::string name(key.str());
    if (std::ranges::find(allowed, name) == allowed.end())
      refuse(node, name,
             fmt::format("no such key{}; allowed: {}", suggestion(name, allowed), fmt::join(allowed, ", ")));
  }
}

double TomlFile::real(const toml::table& table, std::string_view key, double fallback) const {
  const toml::node* node = table.get(key);
  if (node == nullptr) return fallback;
  const auto value = node->value<double>();
  if (!node->is_number() || !value || !(*value >= 0) || *value > 1e300)
    refuse(*node, key, "allowed: a number, 0 or more");
  return *value;
}

bool TomlFile::boolean(const toml::table& table, std::string_view key, bool fallback) const {
  const toml::node* node = table.get(key);
  if (node == nullptr) return fallback;
  if (!node->is_boolean()) refuse(*node, key, "allowed: true, false");
  return node->as_boolean()->get();
}

std::string TomlFile::text(const toml::table& table, std::string_view key) const {
  const toml::node* node = table.get(key);
  if (node == nullptr) refuse(table, key, "is missing");
  if (!node->is_string() || node->as_string()->get().empty()) refuse(*node, key, "allowed: a text");
  return node->as_string()->get();
}

std::vector<const toml::table*> TomlFile::tables(const toml::table& table, std::string_view key) const {
  std::vector<const toml::table*> found;
  const toml::node* node = table.get(key);
  if (node == nullptr) return found;
  if (!node->is_array()) refuse(*node, key, fmt::format("is no list; allowed: [[{}]]", key));
  for (const toml::node& entry : *node->as_array()) {
    if (!entry.is_table()) refuse(entry, key, fmt::format("allowed: [[{}]]", key));
    found.push_back(entry.as_table());
  }
  return found;
}

}  // namespace cm384::hw
