#include "lab/report/row_conditions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

namespace cm384::report {
namespace {

// Of results that do not say their conditions: units by which a name is taken for a measure.
bool has_unit(std::string_view name) {
  static constexpr std::array<std::string_view, 12> kUnits = {
      "_ps", "_ns", "_us", "_ms", "_s", "_GBps", "_TBps", "_B", "_rate", "cycles", "_tflops", "_tops"};
  return std::ranges::any_of(kUnits, [&](std::string_view unit) { return name.ends_with(unit); });
}

std::string conditions_text(const Json& conditions) {
  std::string text;
  for (const auto& [name, value] : conditions.items()) {
    if (value.is_null()) continue;
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, plain_text(value));
  }
  return text;
}

}  // namespace

std::string plain_text(const Json& value) {
  return value.is_string() ? value.get<std::string>()
                           : value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Conditions declared_conditions(const Json& document) {
  const auto list = document.find("conditions");
  if (list == document.end() || !list->is_array()) return std::nullopt;
  std::set<std::string> names;
  for (const Json& name : *list) {
    if (name.is_string()) names.insert(name.get<std::string>());
  }
  return names;
}

Conditions shared_conditions(const Json& before, const Json& after) {
  Conditions first = declared_conditions(before), second = declared_conditions(after);
  if (first && second) return second;
  Conditions& declared = first ? first : second;
  if (!declared) return declared;
  const Json& rows = (first ? after : before)["rows"];
  std::erase_if(*declared, [&](const std::string& name) {
    return std::ranges::none_of(rows, [&](const Json& row) { return row.contains(name); });
  });
  return declared;
}

Json conditions_of(const Json& row, const Conditions& declared) {
  Json conditions = Json::object();
  for (const auto& [name, value] : row.items()) {
    if (declared) {
      if (declared->contains(name)) conditions[name] = value;
      continue;
    }
    if (!(value.is_string() || value.is_number()) || has_unit(name)) break;
    conditions[name] = value;
  }
  return conditions;
}

std::vector<std::string> keys_of(const Json& document, const Conditions& declared) {
  std::vector<std::string> keys;
  std::map<std::string, int> seen;
  for (const Json& row : document["rows"]) {
    std::string key = conditions_text(conditions_of(row, declared));
    const int number = ++seen[key];
    if (number > 1) key += fmt::format("{}#{}", key.empty() ? "" : " ", number);
    keys.push_back(std::move(key));
  }
  return keys;
}

std::vector<Json> row_conditions(const Json& document) {
  const Conditions declared = declared_conditions(document);
  std::vector<Json> all;
  for (const Json& row : document["rows"]) all.push_back(conditions_of(row, declared));
  return all;
}

std::vector<std::string> row_keys(const Json& document) {
  return keys_of(document, declared_conditions(document));
}

}  // namespace cm384::report
