#include "lab/report/tolerances.h"

#include <fmt/format.h>

#include <algorithm>

#include "lab/report/result_file.h"

namespace cm384::report {
namespace {

constexpr std::size_t kLargestTolerances = std::size_t{1} << 20;

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

Tolerances ToleranceTable::tolerances(const Tolerances& fallback) const {
  Tolerances all;
  for (const Field& field : fields) {
    Tolerance tolerance{.relative = field.relative,
                        .absolute = field.absolute,
                        .direction = Field::directions().as<Tolerance::Direction>(field.direction),
                        .ignore = field.ignore};
    if (!field.better.empty()) tolerance.better = Field::betters().as<studies::Better>(field.better);
    all.add(field.name, tolerance);
  }
  all.append(fallback);
  if (place.has("relative") || place.has("absolute"))
    all.set_default({.relative = relative, .absolute = absolute});
  return all;
}

Tolerances parse_tolerances(std::string_view text, const std::string& name) {
  const hw::TomlFile file(text, name);
  ToleranceTable table;
  file.read(table);
  return table.tolerances({});
}

Tolerances read_tolerances(const std::string& path) {
  return parse_tolerances(read_text(path, kLargestTolerances), path);
}

}  // namespace cm384::report
