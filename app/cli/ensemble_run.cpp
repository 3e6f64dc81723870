#include "app/cli/ensemble_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "app/cli/commands.h"
#include "app/cli/exit_code.h"
#include "app/cli/many_runs.h"
#include "base/text/error.h"
#include "base/text/installation.h"
#include "base/text/output_file.h"
#include "base/text/standard_error.h"
#include "lab/uncertainty/coverage.h"
#include "lab/uncertainty/recipes.h"
#include "workloads/frame/result_json.h"
#include "workloads/frame/table.h"

namespace cm384::cli {
namespace {

using studies::Field;
using studies::FieldType;

// Options of every run that go with an ensemble.
constexpr std::array<std::string_view, 11> kTaken{
    "machine", "set", "seed", "out", "format", "columns", "threads", "ensemble", "members", "store", "jobs"};

constexpr std::array kIntervalFields{
    Field{"row", FieldType::text, "what the row is of, or its number", true},
    Field{"metric", FieldType::text, "of the row", true},
    Field{"value", FieldType::number, "of the machine itself", true},
    Field{"low", FieldType::number, "of the 90 % interval", true},
    Field{"high", FieldType::number, "of the 90 % interval", true},
};

void check_options(StudyRun& run) {
  for (const hw::Parameter& option : run.line().groups.back().options) {
    if (run.given().contains(option.key) && std::ranges::find(kTaken, option.key) == kTaken.end())
      throw InputError(fmt::format("--{}: has no effect with --ensemble; allowed: without it", option.key));
  }
}

std::string value_of(const runs::Runs::Request& request, const studies::Alternatives& open) {
  const auto found = std::ranges::find(request.settings, open.option, &runs::Setting::first);
  return found != request.settings.end() ? found->second : open.values.front();
}

// A row for each mean that has an interval, then each plain number.
studies::Rows interval_rows(const Json& rows) {
  studies::Rows table;
  std::size_t number = 0;
  for (const Json& row : rows) {
    const std::string name = std::to_string(++number);
    const auto add = [&](const std::string& metric, const Json& value, const Json& interval) {
      table.push_back({{"row", name},
                       {"metric", metric},
                       {"value", value.get<double>()},
                       {"low", interval[0].get<double>()},
                       {"high", interval[1].get<double>()}});
    };
    for (const auto& [key, value] : row.items()) {
      if (value.is_object() && value.contains("interval"))
        add(key + ".mean", value["mean"], value["interval"]);
    }
    if (row.contains("intervals")) {
      for (const auto& [key, interval] : row["intervals"].items()) add(key, row[key], interval);
    }
  }
  return table;
}

void print(const StudyRun& run, const Json& document, const studies::Rows& plain) {
  const RowOptions& rows = run.rows();
  if (rows.format == "json") print_now(document.dump(2) + "\n");
  if (rows.format == "csv") {
    studies::Rows all;
    for (const Json& row : document["rows"]) all.push_back(studies::row_of(row));
    print_now(studies::to_csv(all));
  }
  if (rows.format != "table") return;
  studies::TablePrinter printer(run.study().fields, rows.columns);
  for (const studies::Row& row : plain) print_now(printer.add(row));
  print_now(fmt::format("\n90 % intervals over {} machines, discrepancy included:\n",
                        document["ensemble"]["members"].get<int>()));
  studies::TablePrinter intervals(kIntervalFields, "");
  for (const studies::Row& row : interval_rows(document["rows"])) print_now(intervals.add(row));
}

}  // namespace

uncertainty::Ensemble ensemble_of(const EnsembleOptions& options, const hw::Machine& machine) {
  std::string path = options.members;
  if (path.empty()) {
    const std::string name = machine.preset.empty() ? machine.name : machine.preset;
    const auto shipped = find_installed(fmt::format("share/cm384/ensembles/{}.json", name));
    if (!shipped)
      throw InputError(
          fmt::format("--ensemble: no ensemble of {} comes with cm384; `cm384 ensemble build` makes "
                      "one, --members names it",
                      name));
    path = *shipped;
  }
  uncertainty::Ensemble ensemble = uncertainty::read_ensemble(path);
  const auto wanted = static_cast<std::size_t>(options.ensemble);
  if (wanted > ensemble.members.size())
    throw InputError(fmt::format("--ensemble {}: {} has {} members", wanted, path, ensemble.members.size()));
  ensemble.members.resize(wanted);
  for (const std::string& doubt : uncertainty::doubts_of(ensemble)) print_error("cm384: {}\n", doubt);
  return ensemble;
}

int run_on_ensemble(const Program& program, StudyRun& run, const Arguments& arguments) {
  check_options(run);
  StudyCommandLine& line = run.line();
  const RunOptions& options = line.run;
  const uncertainty::Ensemble ensemble = ensemble_of(options.on_ensemble, options.machine.load());
  MachineOptions bare = options.machine;
  bare.set.clear();
  const std::string study(line.study.name);
  Settings own = settings_of(line.groups.front(), run.given(), bare, options.seed);
  if (options.threads > 0) own.emplace_back("threads", std::to_string(options.threads));
  MachineOptions changes = options.machine;
  const Settings sets = settings_of({"", {}}, {}, changes, options.seed);  // the user's word is the last
  std::vector<runs::Runs::Request> requests{{study, own}};
  const int cores = options.machine.load().die.groups();
  const std::vector<studies::Alternatives> open = line.own->open();
  for (const uncertainty::Member& member : ensemble.members) {
    const std::size_t number = requests.size() - 1;
    requests.push_back(
        {study, uncertainty::by_alternatives(uncertainty::by_recipe(study, own, number, own, cores), open,
                                             number, own)});
    Settings& settings = requests.back().settings;
    settings.insert(settings.end(), member.overrides.begin(), member.overrides.end());
  }
  for (auto& request : requests) request.settings.insert(request.settings.end(), sets.begin(), sets.end());

  ManyRunsOptions many_options;
  many_options.jobs = options.on_ensemble.jobs;
  std::optional<OutputFile> output;
  if (!options.out.empty()) output.emplace(options.out + "/result.json");
  ManyRuns many(program, many_options, options.on_ensemble.store);
  const auto runs = many.points.run(requests);
  if (many.stopped()) return kInterrupted;
  if (!runs.front().failed.empty()) throw InputError(runs.front().failed);
  std::vector<Json> members;
  Json names = Json::array(), spread = Json::object();
  bool failed = false;
  for (std::size_t i = 1; i < runs.size(); ++i) {
    if (runs[i].failed.empty()) {
      members.push_back(studies::to_json(runs[i].rows));
      names.push_back(ensemble.members[i - 1].name);
      for (const studies::Alternatives& one : open) spread[one.option].push_back(value_of(requests[i], one));
      continue;
    }
    failed = true;
    print_error("cm384: member {} is left out: {}\n", ensemble.members[i - 1].name, runs[i].failed);
  }
  if (members.empty()) throw InputError("--ensemble: the run fails on every member");

  const std::string family = uncertainty::family_of(study, own);
  Json document = runs.front().document();
  document["ensemble"] = {{"members", members.size()},
                          {"discrepancy", uncertainty::discrepancy_of(ensemble, family)},
                          {"machine", ensemble.machine},
                          {"build", ensemble.build},
                          {"names", names}};
  if (!open.empty()) document["ensemble"]["open"] = std::move(spread);
  document["ensemble"]["values"] = uncertainty::add_intervals(document["rows"], members, ensemble, family);
  std::vector<std::string> words{"cm384", "run"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  document["invocation"]["command"] = studies::shell_command(words);
  print(run, document, runs.front().rows);
  if (output) {
    output->write(document.dump(2) + "\n");
    output->finish();
  }
  return failed ? kCheckFailed : kDone;
}

}  // namespace cm384::cli
