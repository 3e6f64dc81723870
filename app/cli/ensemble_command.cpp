#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "app/cli/commands.h"
#include "app/cli/exit_code.h"
#include "app/cli/many_runs.h"
#include "base/text/error.h"
#include "base/text/output_file.h"
#include "base/text/standard_error.h"
#include "lab/uncertainty/chains.h"
#include "lab/uncertainty/coverage.h"
#include "lab/uncertainty/figure_runs.h"
#include "lab/uncertainty/history.h"
#include "lab/uncertainty/statistics.h"
#include "workloads/frame/build_info.h"
#include "workloads/frame/middle.h"
#include "workloads/frame/result_json.h"
#include "workloads/frame/table.h"

namespace cm384::cli {
namespace {

using studies::Field;
using studies::FieldType;
using uncertainty::Ensemble;
using uncertainty::Member;
using uncertainty::Unknown;

struct EnsembleBuildOptions {
  MachineOptions machine;
  SeedOption seed;
  std::string to = "ensemble.json", store = "ensemble.sqlite";
  studies::Texts figures;
  int members = 24, steps = 60, first = 128, batch = 32, waves = 12, jobs = 0;
  double discrepancy = 0.03;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    MachineOptions::describe(self.machine, visit);
    visit("to", self.to, studies::Form{"FILE"}, "the ensemble, as JSON");
    visit("store", self.store, studies::Form{"FILE"}, "results of runs by their content, as of sweeps");
    visit(
        "figures", self.figures, studies::Form{"PREFIX"},
        "only the calibration and selected figures whose id begins with this, all of which every member "
        "reproduces; may be repeated: a machine that misses one is not run for those after it; default: all");
    visit("members", self.members, studies::Range{2, 1000}, "machines wanted, the preset itself among them");
    visit("steps", self.steps, studies::Range{1, 100'000},
          "moves that each member's chain proposes; more go on where fewer ended");
    visit("first", self.first, studies::Range{10, 100'000},
          "machines drawn at first, where the machine itself misses a figure and another is looked for");
    visit("batch", self.batch, studies::Range{1, 10'000}, "machines of each further wave of that search");
    visit("waves", self.waves, studies::Range{0, 1000}, "at most, after the first");
    visit("discrepancy", self.discrepancy, studies::Range{0.0, 0.5},
          "what the model may be off by whatever its parameters, as a share of a value");
    visit("jobs", self.jobs, studies::Range{0, 1024}, "runs at a time; 0: one per core of this host");
    SeedOption::describe(self.seed, visit);
  }
};

struct EnsembleCheckOptions {
  std::string file, store = "ensemble.sqlite";
  int jobs = 0;
  RowOptions rows;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("file", self.file, studies::Form{"FILE"}, "the ensemble");
    visit("store", self.store, studies::Form{"FILE"}, "results of runs by their content, as of sweeps");
    visit("jobs", self.jobs, studies::Range{0, 1024}, "runs at a time; 0: one per core of this host");
    RowOptions::describe(self.rows, visit);
  }
};

struct EnsembleLearnOptions {
  std::string file, to, store = "ensemble.sqlite";
  int members = 0, jobs = 0;
  RowOptions rows;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("file", self.file, studies::Form{"FILE"}, "the ensemble");
    visit("to", self.to, studies::Form{"FILE"},
          "file for the ensemble with what was learnt; default: the input is replaced");
    visit("members", self.members, studies::Range{0, 1000}, "to run at most, the first ones; 0: all");
    visit("store", self.store, studies::Form{"FILE"}, "results of runs by their content, as of sweeps");
    visit("jobs", self.jobs, studies::Range{0, 1024}, "runs at a time; 0: one per core of this host");
    RowOptions::describe(self.rows, visit);
  }
};

// Figures that a run gives and that were used to choose the machine, calibration and selected, by the
// beginnings of their ids, in the order of these: what is quick to run comes first.
std::vector<const studies::Figure*> targets_of(const studies::Texts& prefixes) {
  std::vector<const studies::Figure*> figures;
  const auto add = [&](std::string_view prefix) {
    bool found = false;
    for (const studies::Figure& figure : studies::published_figures()) {
      const bool chose = figure.role == studies::Role::calibration || figure.role == studies::Role::selected;
      if (!chose || !figure.conditions || !figure.id.starts_with(prefix)) continue;
      found = true;
      if (std::ranges::find(figures, &figure) == figures.end()) figures.push_back(&figure);
    }
    if (!found)
      throw InputError(
          fmt::format("--figures {}: no calibration or selected figure that a run predicts has an id that "
                      "begins with this",
                      prefix));
  };
  for (const std::string& prefix : prefixes) add(prefix);
  if (prefixes.empty()) add("");
  return figures;
}

ManyRunsOptions with_jobs(int jobs) {
  ManyRunsOptions options;
  options.jobs = jobs;
  return options;
}

int build(const Program& program, const EnsembleBuildOptions& options, const studies::Given& given) {
  const hw::Machine machine = options.machine.load();
  const std::vector<const studies::Figure*> figures = targets_of(options.figures);
  std::vector<Unknown> unknowns = uncertainty::unknowns_of(machine);
  // What only another kind of machine reads cannot be set.
  std::erase_if(unknowns, [&](const Unknown& unknown) {
    MachineOptions one = options.machine;
    one.set.push_back(unknown.key + "=" + unknown.at(unknown.own_place() < 0.5 ? 1 : 0));
    try {
      one.load();
      return false;
    } catch (const InputError&) {
      return true;
    }
  });
  uncertainty::statistics();  // what it takes is known before the runs, not after them
  OutputFile output(options.to);
  ManyRuns runs(program, with_jobs(options.jobs), options.store);
  uncertainty::FigureRuns figure_runs(figures, runs.points);
  Settings fixed = settings_of({"", {}}, given, options.machine, options.seed);
  std::erase_if(fixed, [](const runs::Setting& setting) { return setting.first == "seed"; });
  Settings set = fixed;  // what every member has
  std::erase_if(set, [](const runs::Setting& setting) { return setting.first == "machine"; });
  const auto overrides_at = [&](const uncertainty::Point& point) {
    Settings settings = set;
    for (std::size_t i = 0; i < unknowns.size(); ++i) {
      if (point[i] == unknowns[i].own_place()) continue;
      if (std::string value = unknowns[i].at(point[i]); value != unknowns[i].own)
        settings.emplace_back(unknowns[i].key, std::move(value));
    }
    return settings;
  };
  const auto model = [&](const uncertainty::Points& points, bool stop_early) {
    std::vector<Settings> machines;
    for (const uncertainty::Point& point : points) {
      machines.push_back(fixed);
      const Settings own = overrides_at(point);
      machines.back().insert(machines.back().end(), own.begin(), own.end());
    }
    return figure_runs.of(machines, stop_early);
  };
  std::vector<uncertainty::Target> targets;
  for (const studies::Figure* figure : figures)
    targets.push_back({figure->id, figure->value, figure->tolerance});

  Ensemble ensemble;
  ensemble.machine = options.machine.machine;
  const studies::BuildInfo& info = studies::build_info();
  ensemble.build = fmt::format("{} {}", info.version, info.commit);
  ensemble.model = info.model;
  ensemble.ranges = uncertainty::ranges_fingerprint(hw::load_machine(ensemble.machine));
  ensemble.discrepancy = options.discrepancy;
  ensemble.command = fmt::format(
      "cm384 ensemble build --machine {} --members {} --steps {} --first {} --batch {} "
      "--waves {} --discrepancy {} --seed {}",
      options.machine.machine, options.members, options.steps, options.first, options.batch, options.waves,
      options.discrepancy, options.seed.seed);
  for (const std::string& change : options.machine.set) ensemble.command += " --set " + change;
  for (const std::string& prefix : options.figures) ensemble.command += " --figures " + prefix;

  const auto add = [&](std::string name, Settings overrides, const std::vector<double>& predicted) {
    Member& member = ensemble.members.emplace_back(Member{std::move(name), std::move(overrides), {}});
    for (std::size_t f = 0; f < figures.size(); ++f) member.figures[figures[f]->id] = predicted[f];
  };
  const auto own = figure_runs.of({fixed}, false).front();
  for (std::size_t f = 0; f < figures.size() && !runs.points.interrupted(); ++f) {
    if (targets[f].holds(own[f])) continue;
    runs.progress.clear();
    print_error("cm384: {} itself gives {} as {:.5g}, published {}: outside its tolerance\n",
                ensemble.machine, targets[f].id, own[f], targets[f].value);
  }
  add(ensemble.machine, set, own);
  // The chains begin at the machine itself, or at others if it misses a figure.
  const auto cancelled = [&] { return runs.points.interrupted(); };
  const auto report = [&](const std::string& line) {
    runs.progress.clear();
    print_now(line + "\n");
  };
  uncertainty::Points from, from_figures;
  if (!cancelled() && uncertainty::all_hold(targets, own)) {
    from.emplace_back();
    for (const Unknown& unknown : unknowns) from.back().push_back(unknown.own_place());
    from_figures = {own};
  } else if (!cancelled()) {
    uncertainty::Matching found = uncertainty::match(unknowns.size(), targets, model,
                                                     {.members = 1,
                                                      .first = static_cast<std::size_t>(options.first),
                                                      .batch = static_cast<std::size_t>(options.batch),
                                                      .waves = static_cast<std::size_t>(options.waves),
                                                      .discrepancy = options.discrepancy,
                                                      .seed = options.seed.value()},
                                                     report, cancelled);
    from = std::move(found.members);
    from_figures = std::move(found.figures);
  }
  uncertainty::Matching matching;
  if (!from.empty())
    matching = uncertainty::walk(from, from_figures, targets, model,
                                 {.chains = static_cast<std::size_t>(options.members) - 1,
                                  .steps = static_cast<std::size_t>(options.steps),
                                  .seed = options.seed.value()},
                                 report, cancelled);
  if (runs.stopped()) return kInterrupted;
  for (std::size_t i = 0; i < matching.members.size(); ++i)
    add(fmt::format("m{:03}", i + 1), overrides_at(matching.members[i]), matching.figures[i]);
  output.write(uncertainty::to_text(ensemble));
  output.finish();
  print_now(fmt::format("{}: {} of {} members\n", options.to, ensemble.members.size(), options.members));
  return ensemble.members.size() == static_cast<std::size_t>(options.members) ? kDone : kCheckFailed;
}

constexpr std::array kLearnFields{
    Field{"family", FieldType::text, "of runs; others: those without a calibration figure", true},
    Field{"rows", FieldType::integer, "calibration figures that it was learnt from", true},
    Field{"held", FieldType::integer, "of these, inside intervals that were learnt from all others", true},
    Field{"share", FieldType::ratio,
          "a figure is at most so much above, or its inverse below, what members give", true},
};

// All calibration figures of the ensemble's machine, whether its members were chosen by them or not.
std::vector<const studies::Figure*> evidence_of(const Ensemble& ensemble) {
  std::vector<const studies::Figure*> figures;
  const std::string published = studies::machine_of_figures(hw::load_machine(ensemble.machine));
  for (const studies::Figure& figure : studies::published_figures()) {
    if (figure.role == studies::Role::calibration && figure.conditions &&
        figure.conditions->machine == published && figure.conditions->takes.empty())
      figures.push_back(&figure);
  }
  return figures;
}

int learn(const Program& program, const EnsembleLearnOptions& options, const studies::Given&) {
  if (options.file.empty()) throw InputError("ensemble learn: no file given; allowed: an ensemble");
  Ensemble ensemble = uncertainty::read_ensemble(options.file);
  for (const std::string& doubt : uncertainty::doubts_of(ensemble)) print_error("cm384: {}\n", doubt);
  const std::vector<const studies::Figure*> figures = evidence_of(ensemble);
  ManyRuns runs(program, with_jobs(options.jobs), options.store);
  std::vector<Settings> machines;
  std::vector<std::size_t> recipes;
  const auto wanted = static_cast<std::size_t>(options.members);
  if (wanted > ensemble.members.size())
    throw InputError(fmt::format("--members {}: {} has {}", wanted, options.file, ensemble.members.size()));
  for (const Member& member :
       std::span(ensemble.members).first(wanted > 0 ? wanted : ensemble.members.size())) {
    recipes.push_back(machines.size());
    machines.push_back({{"machine", ensemble.machine}});
    machines.back().insert(machines.back().end(), member.overrides.begin(), member.overrides.end());
  }
  const auto predicted = uncertainty::FigureRuns(figures, runs.points).of(machines, false, recipes);
  if (runs.stopped()) return kInterrupted;
  std::vector<uncertainty::Evidence> evidence;
  for (std::size_t f = 0; f < figures.size(); ++f) {
    std::vector<double> values;
    for (const std::vector<double>& of : predicted) {
      if (of[f] > 0) values.push_back(of[f]);
    }
    if (values.empty()) throw InputError(fmt::format("{}: no member's run predicts it", figures[f]->id));
    const studies::Middle middle = studies::middle_of(std::move(values));
    evidence.push_back(
        {figures[f]->id, uncertainty::family_of(*figures[f]), figures[f]->value, {middle.low, middle.high}});
  }
  ensemble.families = uncertainty::learn(evidence);
  OutputFile output(options.to.empty() ? options.file : options.to);
  output.write(uncertainty::to_text(ensemble));
  output.finish();
  studies::Rows rows;
  for (const uncertainty::FamilyDiscrepancy& one : ensemble.families)
    rows.push_back({{"family", one.family.empty() ? "others" : one.family},
                    {"rows", one.rows},
                    {"held", one.held},
                    {"share", one.share}});
  if (options.rows.format == "json") print_now(studies::to_json(rows).dump(2) + "\n");
  if (options.rows.format == "csv") print_now(studies::to_csv(rows));
  studies::TablePrinter printer(kLearnFields, options.rows.columns);
  if (options.rows.format == "table") {
    for (const studies::Row& row : rows) print_now(printer.add(row));
  }
  return kDone;
}

constexpr std::array kCheckFields{
    Field{"member", FieldType::text, "of the ensemble", true},
    Field{"holds", FieldType::boolean, "whether it reproduces every calibration figure within its tolerance",
          true},
    Field{"worst", FieldType::text, "the figure with the largest error", true},
    Field{"error", FieldType::ratio, "of that figure", true},
    Field{"moved", FieldType::ratio, "largest change of a figure since the ensemble was made", true},
};

int check(const Program& program, const EnsembleCheckOptions& options, const studies::Given&) {
  if (options.file.empty()) throw InputError("ensemble check: no file given; allowed: an ensemble");
  const Ensemble ensemble = uncertainty::read_ensemble(options.file);
  for (const std::string& doubt : uncertainty::doubts_of(ensemble)) print_error("cm384: {}\n", doubt);
  std::vector<const studies::Figure*> figures;
  for (const auto& [id, value] : ensemble.members.front().figures) {
    const auto known = std::ranges::find(studies::published_figures(), id, &studies::Figure::id);
    if (known == studies::published_figures().end() || !known->conditions)
      throw InputError(fmt::format("{}: {}: no run predicts this figure any more", options.file, id));
    figures.push_back(&*known);
  }
  ManyRuns runs(program, with_jobs(options.jobs), options.store);
  uncertainty::FigureRuns figure_runs(figures, runs.points);
  std::vector<Settings> machines;
  for (const Member& member : ensemble.members) {
    machines.push_back({{"machine", ensemble.machine}});
    machines.back().insert(machines.back().end(), member.overrides.begin(), member.overrides.end());
  }
  const auto predicted = figure_runs.of(machines, false);
  if (runs.stopped()) return kInterrupted;
  studies::Rows rows;
  bool good = true;
  for (std::size_t m = 0; m < machines.size(); ++m) {
    double worst = 0, moved = 0;
    std::string of;
    bool holds = true;
    for (std::size_t f = 0; f < figures.size(); ++f) {
      const double error = predicted[m][f] / figures[f]->value - 1;
      if (!(std::abs(error) <= figures[f]->tolerance)) holds = false;
      if (of.empty() || std::abs(error) > std::abs(worst)) {
        worst = error;
        of = figures[f]->id;
      }
      const auto before = ensemble.members[m].figures.find(figures[f]->id);
      if (before != ensemble.members[m].figures.end())
        moved = std::max(moved, std::abs(predicted[m][f] / before->second - 1));
    }
    good = good && holds;
    rows.push_back({{"member", ensemble.members[m].name},
                    {"holds", holds},
                    {"worst", of},
                    {"error", worst},
                    {"moved", moved}});
  }
  studies::TablePrinter printer(kCheckFields, options.rows.columns);
  if (options.rows.format == "json") print_now(studies::to_json(rows).dump(2) + "\n");
  if (options.rows.format == "csv") print_now(studies::to_csv(rows));
  if (options.rows.format == "table") {
    for (const studies::Row& row : rows) print_now(printer.add(row));
  }
  return good ? kDone : kCheckFailed;
}

}  // namespace

constinit const Command kEnsembleBuildCommand = make_command<EnsembleBuildOptions, build>(
    "ensemble build", "",
    "machines that differ in unknown parameters and reproduce every calibration figure");
constinit const Command kEnsembleLearnCommand = make_command<EnsembleLearnOptions, learn>(
    "ensemble learn", "FILE",
    "how far the model is off whatever its parameters, learnt from calibration figures", "file");
constinit const Command kEnsembleCheckCommand = make_command<EnsembleCheckOptions, check>(
    "ensemble check", "FILE", "which members of an ensemble still reproduce the calibration figures", "file");

}  // namespace cm384::cli
