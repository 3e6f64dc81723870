#include "app/cli/ensemble_validation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "app/cli/commands.h"
#include "app/cli/ensemble_run.h"
#include "app/cli/exit_code.h"
#include "app/cli/many_runs.h"
#include "base/text/error.h"
#include "lab/uncertainty/coverage.h"
#include "lab/uncertainty/figure_runs.h"
#include "workloads/frame/result_json.h"
#include "workloads/frame/table.h"

namespace cm384::cli {
namespace {

using studies::Field;
using studies::FieldType;
using studies::Figure;
using uncertainty::Coverage;
using uncertainty::ScoredFigure;

constexpr std::array kEnsembleValidationFields{
    Field{"id", FieldType::text, "of the published figure", true},
    Field{"family", FieldType::text, "that it is counted in", true},
    Field{"role", FieldType::text, "as of `validate`", true},
    Field{"published", FieldType::number, "value", true},
    Field{"predicted", FieldType::number, "by the machine itself", true},
    Field{"low", FieldType::number, "of the members' 90 % interval, discrepancy included", true},
    Field{"high", FieldType::number, "of the same", true},
    Field{"unit", FieldType::text, "of all of these", true},
    Field{"inside", FieldType::boolean, "whether the interval holds the published value", true},
    Field{"width", FieldType::ratio, "of the interval, of the published value", true},
};
constexpr std::array kFamilyFields{
    Field{"family", FieldType::text, "of figures", true},
    Field{"role", FieldType::text, "of these", true},
    Field{"figures", FieldType::integer, "of this family and role", true},
    Field{"inside", FieldType::integer, "of these, inside their interval", true},
    Field{"median_width", FieldType::ratio, "of their intervals, of the published value", true},
};

studies::Rows rows_of(const std::vector<ScoredFigure>& scored) {
  studies::Rows rows;
  for (const ScoredFigure& one : scored) {
    rows.push_back({{"id", one.figure->id},
                    {"family", uncertainty::family_of(*one.figure)},
                    {"role", to_string(one.figure->role)},
                    {"published", one.figure->value},
                    {"predicted", one.own},
                    {"low", one.interval.low},
                    {"high", one.interval.high},
                    {"unit", one.figure->unit},
                    {"inside", one.inside()},
                    {"width", one.width()}});
  }
  return rows;
}

studies::Rows rows_of(const std::vector<uncertainty::FamilyDiscrepancy>& learnt) {
  studies::Rows rows;
  for (const uncertainty::FamilyDiscrepancy& one : learnt)
    rows.push_back({{"family", one.family}, {"rows", one.rows}, {"held", one.held}, {"share", one.share}});
  return rows;
}

studies::Rows rows_of(const std::vector<Coverage>& families) {
  studies::Rows rows;
  for (const Coverage& one : families) {
    rows.push_back({{"family", one.family},
                    {"role", to_string(one.role)},
                    {"figures", one.figures},
                    {"inside", one.inside},
                    {"median_width", one.median_width}});
  }
  return rows;
}

// A line for each family: what was learnt of it, and how its validation figures fared.
std::string markdown_of(const uncertainty::Ensemble& ensemble, const std::vector<Coverage>& families) {
  std::string text =
      "| family | calibration figures | held by what the others say | share | validation figures | inside | "
      "median width |\n| --- | --- | --- | --- | --- | --- | --- |\n";
  const auto learnt_of = [&](const std::string& family) {
    return std::ranges::find(ensemble.families, family, &uncertainty::FamilyDiscrepancy::family);
  };
  const auto add = [&](const std::string& family) {
    const auto scored = std::ranges::find_if(families, [&](const Coverage& one) {
      return one.family == family && one.role == studies::Role::validation;
    });
    const auto learnt = learnt_of(family);
    text += fmt::format("| {} |", family);
    text +=
        learnt != ensemble.families.end() ? fmt::format(" {} | {} |", learnt->rows, learnt->held) : " | |";
    text += fmt::format(" {:.0f} % |", uncertainty::discrepancy_of(ensemble, family) * 100);
    text += scored != families.end() ? fmt::format(" {} | {} | {:.0f} % |\n", scored->figures, scored->inside,
                                                   scored->median_width * 100)
                                     : " | | |\n";
  };
  for (const uncertainty::FamilyDiscrepancy& one : ensemble.families) {
    if (!one.family.empty()) add(one.family);
  }
  for (const Coverage& one : families) {
    if (one.role == studies::Role::validation && learnt_of(one.family) == ensemble.families.end())
      add(one.family);
  }
  return text;
}

}  // namespace

int validate_on_ensemble(const Program& program, const EnsembleOptions& options,
                         const MachineOptions& machine, const RowOptions& rows, const std::string& only,
                         bool with_long, bool markdown) {
  std::vector<const Figure*> figures;
  const std::string published = studies::machine_of_figures(machine.load());
  for (const Figure& figure : studies::published_figures()) {
    if (figure.conditions && figure.conditions->machine != published) continue;
    if (studies::is_run(figure, only, with_long)) figures.push_back(&figure);
  }
  if (figures.empty())
    throw InputError(
        fmt::format("--only {}: no figure that a run predicts has an id that begins with this", only));
  const uncertainty::Ensemble ensemble = ensemble_of(options, machine.load());
  std::vector<Settings> machines{{{"machine", machine.machine}}};
  for (const uncertainty::Member& member : ensemble.members) {
    machines.push_back(machines.front());
    machines.back().insert(machines.back().end(), member.overrides.begin(), member.overrides.end());
  }
  const Settings sets = settings_of({"", {}}, {}, machine, {});
  for (Settings& settings : machines) settings.insert(settings.end(), sets.begin(), sets.end());
  ManyRunsOptions many_options;
  many_options.jobs = options.jobs;
  ManyRuns many(program, many_options, options.store);
  uncertainty::FigureRuns figure_runs(figures, many.points);
  std::vector<std::size_t> recipes{0};
  for (std::size_t m = 0; m < ensemble.members.size(); ++m) recipes.push_back(m);
  const auto predicted = figure_runs.of(machines, false, recipes);
  if (many.stopped()) return kInterrupted;
  std::vector<ScoredFigure> scored;
  for (std::size_t f = 0; f < figures.size(); ++f) {
    std::vector<double> values;
    for (std::size_t m = 1; m < machines.size(); ++m) {
      if (std::isfinite(predicted[m][f])) values.push_back(predicted[m][f]);
    }
    if (values.empty()) throw InputError(fmt::format("{}: no member's run predicts it", figures[f]->id));
    scored.push_back({figures[f], predicted[0][f],
                      uncertainty::interval_of(values, ensemble, uncertainty::family_of(*figures[f]))});
  }
  const std::vector<Coverage> families = uncertainty::coverage_of(scored);
  if (markdown) {
    print_now(markdown_of(ensemble, families));
  } else if (rows.format == "json") {
    const Json document = {{"discrepancy", ensemble.discrepancy},
                           {"learnt", studies::to_json(rows_of(ensemble.families))},
                           {"members", ensemble.members.size()},
                           {"figures", studies::to_json(rows_of(scored))},
                           {"families", studies::to_json(rows_of(families))}};
    print_now(document.dump(2) + "\n");
  } else if (rows.format == "csv") {
    print_now(studies::to_csv(rows_of(scored)));
  } else {
    studies::TablePrinter printer(kEnsembleValidationFields, rows.columns);
    for (const studies::Row& row : rows_of(scored)) print_now(printer.add(row));
    print_now(fmt::format("\n90 % intervals over {} machines, discrepancy included{}:\n",
                          ensemble.members.size(),
                          ensemble.families.empty() ? fmt::format(" ({} %)", ensemble.discrepancy * 100)
                                                    : " (as learnt of each family)"));
    studies::TablePrinter family_printer(kFamilyFields, "");
    for (const studies::Row& row : rows_of(families)) print_now(family_printer.add(row));
  }
  return uncertainty::is_enough(scored) ? kDone : kCheckFailed;
}

}  // namespace cm384::cli
