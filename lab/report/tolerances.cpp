#include "lab/report/tolerances.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/toml_file.h"
#include "lab/report/result_file.h"

namespace cm384::report {
namespace {

constexpr std::size_t kLargestTolerances = std::size_t{1} << 20;

Tolerance::Direction direction_of(const hw::TomlFile& file, const toml::table& table) {
  const toml::node* node = table.get("direction");
  if (node == nullptr) return Tolerance::Direction::both;
  const std::string word = file.text(table, "direction");
  if (word == "both") return Tolerance::Direction::both;
  if (word == "up") return Tolerance::Direction::up;
  if (word == "down") return Tolerance::Direction::down;
  file.refuse(*node, "direction", fmt::format("'{}'; allowed: both, up, down", word));
}

std::optional<studies::Better> better_of(const hw::TomlFile& file, const toml::table& table) {
  const toml::node* node = table.get("better");
  if (node == nullptr) return std::nullopt;
  const std::string word = file.text(table, "better");
  if (word == "lower") return studies::Better::lower;
  if (word == "higher") return studies::Better::higher;
  if (word == "neither") return studies::Better::neither;
  file.refuse(*node, "better", fmt::format("'{}'; allowed: lower, higher, neither", word));
}

}  // namespace

bool Tolerance::improves(std::string_view field, double before, double after) const {
  const studies::Better way = better.value_or(studies::better_of(field));
  return (way == studies::Better::lower && after < before) ||
         (way == studies::Better::higher && after > before);
}

bool Tolerance::allows(double before, double after) const {
  if (ignore || before == after) return true;
  if (direction == Direction::up && after < before) return true;
  if (direction == Direction::down && after > before) return true;
  const double size = before < 0 ? -before : before;
  const double moved = after < before ? before - after : after - before;
  return moved <= std::max(absolute, relative * size);
}

std::string Tolerance::text() const {
  if (ignore) return "any";
  std::string limit;
  if (relative > 0) limit = fmt::format("{:g} %", relative * 100);
  if (absolute > 0) limit += fmt::format("{}{:g}", limit.empty() ? "" : " or ", absolute);
  if (limit.empty()) limit = "exact";
  if (direction == Direction::up) return limit == "exact" ? "no growth" : "growth of " + limit;
  if (direction == Direction::down) return limit == "exact" ? "no fall" : "fall of " + limit;
  return limit;
}

bool fits(std::string_view pattern, std::string_view name) {
  std::size_t p = 0, n = 0;
  std::size_t star = std::string_view::npos,
              retry = 0;  // the last *, and where what follows it is tried again
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      retry = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++retry;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

const Tolerance& Tolerances::of(std::string_view field) const {
  const auto rule = std::ranges::find_if(rules_, [&](const Rule& r) { return fits(r.name, field); });
  return rule == rules_.end() ? fallback_ : rule->tolerance;
}

void Tolerances::append(const Tolerances& others) {
  rules_.insert(rules_.end(), others.rules_.begin(), others.rules_.end());
  fallback_ = others.fallback_;
}

Tolerances tolerances_of(const hw::TomlFile& file, const toml::table& of, const Tolerances& fallback) {
  Tolerances tolerances;
  for (const toml::table* table : file.tables(of, "field")) {
    file.check_keys(*table, {"name", "relative", "absolute", "direction", "better", "ignore"});
    tolerances.add(file.text(*table, "name"), {.relative = file.real(*table, "relative", 0),
                                               .absolute = file.real(*table, "absolute", 0),
                                               .direction = direction_of(file, *table),
                                               .ignore = file.boolean(*table, "ignore", false),
                                               .better = better_of(file, *table)});
  }
  tolerances.append(fallback);
  if (of.contains("relative") || of.contains("absolute"))
    tolerances.set_default(
        {.relative = file.real(of, "relative", 0), .absolute = file.real(of, "absolute", 0)});
  return tolerances;
}

Tolerances tolerances_of(const hw::TomlFile& file) {
  return tolerances_of(file, file.root(), {});
}

Tolerances parse_tolerances(std::string_view text, const std::string& name) {
  const hw::TomlFile file(text, name);
  file.check_keys(file.root(), {"relative", "absolute", "field"});
  return tolerances_of(file);
}

Tolerances read_tolerances(const std::string& path) {
  return parse_tolerances(read_text(path, kLargestTolerances), path);
}

}  // namespace cm384::report
