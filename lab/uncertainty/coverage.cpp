#include "lab/uncertainty/coverage.h"

#include <algorithm>
#include <map>

#include "lab/uncertainty/figure_runs.h"

namespace cm384::uncertainty {
namespace {

constexpr double kLeastInside = 0.9, kWidest = 0.25;

double median_of(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace

std::string family_of(std::string_view study, const runs::Settings& settings) {
  const auto setting = [&](std::string_view name) -> std::string_view {
    const auto found = std::ranges::find(settings, name, &runs::Setting::first);
    return found != settings.end() ? std::string_view(found->second) : std::string_view();
  };
  if (study == "p2p") {
    const std::string_view path = setting("path");
    return path.empty() || path == "aiv-direct" ? "bus" : "copies";
  }
  if (study == "copies" || study == "transfer") return "copies";
  if (study == "stream") return "memory";
  if (study == "gemm" || study == "ffn") return "products";
  if (study == "mla") return "attention";
  if (study == "dispatch" || study == "combine" || study == "moe") return "exchange";
  if (study != "op") return std::string(study);
  const std::string_view name = setting("name");
  if (name.ends_with("matmul")) return "products";
  if (name.find("attention") != std::string_view::npos) return "attention";
  if (name.starts_with("all-") || name == "reduce-scatter") return "collectives";
  return "rows";
}

std::string family_of(const studies::Figure& figure) {
  return figure.conditions ? family_of(figure.conditions->study, settings_of(*figure.conditions))
                           : figure.area;
}

std::vector<Coverage> coverage_of(const std::vector<ScoredFigure>& figures) {
  std::map<std::pair<studies::Role, std::string>, std::vector<const ScoredFigure*>> groups;
  for (const ScoredFigure& scored : figures) {
    const studies::Role role = scored.figure->role;
    if (role != studies::Role::bound && role != studies::Role::follows)
      groups[{role, family_of(*scored.figure)}].push_back(&scored);
  }
  std::vector<Coverage> all;
  for (const auto& [group, members] : groups) {
    Coverage& one = all.emplace_back(Coverage{group.second, group.first, members.size(), 0, 0});
    std::vector<double> widths;
    for (const ScoredFigure* scored : members) {
      one.inside += scored->inside() ? 1 : 0;
      widths.push_back(scored->width());
    }
    one.median_width = median_of(widths);
  }
  return all;
}

bool is_enough(const std::vector<ScoredFigure>& figures) {
  std::vector<double> widths;
  double inside = 0;
  for (const ScoredFigure& scored : figures) {
    if (scored.figure->role != studies::Role::validation) continue;
    widths.push_back(scored.width());
    inside += scored.inside() ? 1 : 0;
  }
  return widths.empty() ||
         (inside >= kLeastInside * static_cast<double>(widths.size()) && median_of(widths) <= kWidest);
}

}  // namespace cm384::uncertainty
