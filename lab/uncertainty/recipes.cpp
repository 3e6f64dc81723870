#include "lab/uncertainty/recipes.h"

#include <algorithm>
#include <array>
#include <string>

namespace cm384::uncertainty {
namespace {

// Operators on rows that load and store by tiles.
constexpr std::array<std::string_view, 7> kRows{"add",    "rms-norm",        "head-norm", "quantise",
                                                "swiglu", "static-quantise", "softmax"};

void set(runs::Settings& settings, std::string_view name, std::string value) {
  const auto found = std::ranges::find(settings, name, &runs::Setting::first);
  if (found != settings.end()) {
    found->second = std::move(value);
  } else {
    settings.emplace_back(name, std::move(value));
  }
}

bool is_in(const runs::Settings& settings, std::string_view name) {
  return std::ranges::find(settings, name, &runs::Setting::first) != settings.end();
}

}  // namespace

runs::Settings by_recipe(std::string_view study, runs::Settings settings, std::size_t number,
                         const runs::Settings& fixed, int cores) {
  if (study != "op" || number == 0) return settings;
  const auto name = std::ranges::find(settings, "name", &runs::Setting::first);
  if (name == settings.end()) return settings;
  const auto is_fixed = [&](std::string_view key) { return is_in(fixed, key); };
  const bool first = (number - 1) % 2 == 0, second = (number - 1) / 2 % 2 == 0;
  const std::string operation = name->second;
  if (operation == "matmul" && !is_fixed("tile")) set(settings, "tile", first ? "basic" : "fitted");
  if (std::ranges::find(kRows, operation) == kRows.end()) return settings;
  if (operation != "add" && operation != "softmax" && !is_fixed("buffers"))
    set(settings, "buffers", first ? "1" : "2");
  const auto named = std::ranges::find(settings, "cores", &runs::Setting::first);
  const int all = named != settings.end() && named->second != "0" ? std::stoi(named->second) : cores;
  if (!is_fixed("cores") && !second && all > 1) set(settings, "cores", std::to_string(all / 2));
  return settings;
}

runs::Settings by_alternatives(runs::Settings settings, const std::vector<studies::Alternatives>& open,
                               std::size_t number, const runs::Settings& fixed) {
  if (number == 0) return settings;
  std::size_t left = number;
  for (const studies::Alternatives& one : open) {
    if (is_in(fixed, one.option)) continue;
    set(settings, one.option, one.values[left % one.values.size()]);
    left /= one.values.size();
  }
  return settings;
}

}  // namespace cm384::uncertainty
