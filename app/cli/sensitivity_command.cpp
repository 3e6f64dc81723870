#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "app/cli/commands.h"
#include "app/cli/exit_code.h"
#include "app/cli/many_runs.h"
#include "base/text/error.h"
#include "base/text/output_file.h"
#include "base/text/standard_error.h"
#include "lab/uncertainty/sensitivity.h"
#include "lab/uncertainty/statistics.h"
#include "workloads/frame/result_json.h"
#include "workloads/frame/table.h"

namespace cm384::cli {
namespace {

using studies::Field;
using studies::FieldType;
using uncertainty::Sensitivity;
using uncertainty::Unknown;

struct SensitivityOptions : ManyRunsOptions {
  std::string metric;
  studies::Texts parameters;
  int trajectories = 8, keep = 8, samples = 96;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("metric", self.metric, studies::Form{"NAME"},
          "number of the row, as --format csv names it; default: latency_us.mean or the first one of the "
          "study");
    visit("parameters", self.parameters, studies::Form{"PREFIX"},
          "vary only those whose key begins with this, such as l2.; may be repeated; default: all with a "
          "plausible range");
    visit("trajectories", self.trajectories, studies::Range{2, 1000},
          "of the screening, each of as many runs as there are parameters, plus one");
    visit("keep", self.keep, studies::Range{0, 64},
          "parameters that get Sobol indices, those with the largest effects; 0: none");
    visit("samples", self.samples, studies::Range{16, 100'000}, "runs for the Sobol indices");
    ManyRunsOptions::describe(self, visit);
  }
};

constexpr std::array kSensitivityFields{
    Field{"parameter", FieldType::text, "of the machine", true},
    Field{"value", FieldType::text, "in the machine", true},
    Field{"range", FieldType::text, "what is as plausible", true},
    Field{"effect", FieldType::number,
          "mean absolute elementary effect (mu*): how far the metric moves over the whole range", true},
    Field{"relative", FieldType::ratio, "the same, of the metric at the machine's own values", true},
    Field{"signed_effect", FieldType::number, "mean elementary effect (mu)", true},
    Field{"spread", FieldType::number,
          "standard deviation of the elementary effects (sigma): interaction or curvature", true},
    Field{"first", FieldType::ratio,
          "share of the variance by this parameter alone (first-order Sobol index)", true},
    Field{"total", FieldType::ratio, "with all its interactions (total Sobol index)", true},
    Field{"from", FieldType::text, "where the value comes from"},
    Field{"why", FieldType::text, "reason of the range"},
};

std::string default_metric(const studies::Study& study) {
  for (const Field& field : study.fields) {
    if (field.name == "latency_us") return field.type == FieldType::object ? "latency_us.mean" : "latency_us";
  }
  for (const Field& field : study.fields) {
    if (field.column && (field.type == FieldType::number || field.type == FieldType::ratio))
      return std::string(field.name);
  }
  throw InputError(fmt::format("sensitivity {}: no number in its rows; --metric names one", study.name));
}

std::vector<Unknown> chosen(const hw::Machine& machine, const studies::Texts& prefixes) {
  std::vector<Unknown> all = uncertainty::unknowns_of(machine);
  for (const std::string& prefix : prefixes) {
    if (std::ranges::none_of(all, [&](const Unknown& one) { return one.key.starts_with(prefix); }))
      throw InputError(fmt::format(
          "--parameters {}: no parameter with a plausible range has a key that begins with this", prefix));
  }
  if (!prefixes.empty())
    std::erase_if(all, [&](const Unknown& one) {
      return std::ranges::none_of(prefixes, [&](const std::string& p) { return one.key.starts_with(p); });
    });
  return all;
}

studies::Rows rows_of(const std::vector<Unknown>& unknowns, const Sensitivity& found) {
  studies::Rows rows;
  for (const Sensitivity::Parameter& parameter : found.ranked) {
    const Unknown& unknown = unknowns[parameter.unknown];
    rows.push_back({{"parameter", unknown.key},
                    {"value", unknown.own},
                    {"range", unknown.range()},
                    {"effect", parameter.effect.mean_absolute},
                    {"relative", parameter.effect.mean_absolute / std::abs(found.own)},
                    {"signed_effect", parameter.effect.mean},
                    {"spread", parameter.effect.spread},
                    {"first", parameter.first},
                    {"total", parameter.total},
                    {"from", hw::to_string(unknown.provenance.from)},
                    {"why", unknown.provenance.plausible.reason}});
  }
  return rows;
}

std::vector<std::string> keys_of(const std::vector<Unknown>& unknowns,
                                 const std::vector<std::size_t>& which) {
  std::vector<std::string> keys;
  for (const std::size_t i : which) keys.push_back(unknowns[i].key);
  return keys;
}

std::vector<std::string> notes_of(const std::vector<Unknown>& unknowns, const Sensitivity& found,
                                  const std::string& metric) {
  std::vector<std::string> notes{
      fmt::format("{} is {:.6g} with the machine's own values; {} runs", metric, found.own, found.runs)};
  if (!found.inert.empty())
    notes.push_back(fmt::format("{} parameters have no effect here: {}", found.inert.size(),
                                fmt::join(keys_of(unknowns, found.inert), ", ")));
  if (!found.refused.empty())
    notes.push_back(fmt::format("{} parameters were left out, which this run does not take: {}",
                                found.refused.size(), fmt::join(keys_of(unknowns, found.refused), ", ")));
  if (found.failed > 0) notes.push_back(fmt::format("{} runs failed and are left out", found.failed));
  if (found.surrogate_quality)
    notes.push_back(fmt::format(
        "Sobol indices stand on a surrogate that predicts {:.0f} % of the variance of runs it has not seen{}",
        std::max(0.0, *found.surrogate_quality) * 100, *found.surrogate_quality < 0.7 ? ": too little" : ""));
  return notes;
}

int sensitivity(const Command& self, const Program& program, const Arguments& arguments) {
  SensitivityOptions options;
  HelpOption help;
  studies::OptionGroup own{fmt::format("options of `{}`", self.name), hw::list_parameters(options)};
  for (const hw::Parameter& option : hw::list_parameters(help)) own.options.push_back(option);
  if (arguments.empty() || arguments.front().starts_with("-")) {
    const bool asked = !arguments.empty() && (arguments.front() == "--help" || arguments.front() == "-h");
    if (!asked) throw InputError("sensitivity: no study given; `cm384 run` lists them");
    fmt::print("{}", help_text(self, std::vector{own}));
    return kDone;
  }
  StudyCommandLine line(find_study(program.studies, arguments.front()));
  const std::vector<studies::OptionGroup> groups{line.groups.front(), own};
  const studies::Given given = studies::parse_options(
      groups, Arguments(arguments.begin() + 1, arguments.end()), line.study.positional);
  if (help.help) {
    fmt::print("{}", help_text(self, std::vector{own}));
    return kDone;
  }
  const hw::Machine machine = options.machine.load();
  const std::vector<Unknown> unknowns = chosen(machine, options.parameters);
  const std::string metric = options.metric.empty() ? default_metric(line.study) : options.metric;
  const std::string study(line.study.name);
  const std::string folder = options.out.empty() ? "sensitivity-" + study : options.out;
  const Settings fixed = settings_of(line.groups.front(), given, options.machine, options.seed);

  // Known before hours of runs, not after them.
  if (studies::find_field(line.study.fields, metric) == nullptr)
    throw InputError(fmt::format("--metric {}: the rows of `run {}` have no such number", metric, study));
  if (options.keep >= 2) uncertainty::statistics();
  OutputFile output(folder + "/result.json");
  ManyRuns many(program, options, options.store_path(folder));
  many.subject.choose(study);
  many.subject.identity(fixed);  // refuses what the run would refuse
  uncertainty::Point own_places;
  for (const Unknown& unknown : unknowns) own_places.push_back(unknown.own_place());
  const auto model = [&](const uncertainty::Points& points) {
    std::vector<runs::Runs::Request> requests;
    for (const uncertainty::Point& point : points) {
      Settings settings = fixed;
      for (std::size_t i = 0; i < unknowns.size(); ++i) {
        if (point[i] != own_places[i]) settings.emplace_back(unknowns[i].key, unknowns[i].at(point[i]));
      }
      requests.push_back({study, std::move(settings)});
    }
    uncertainty::Point values;
    for (const runs::Run& run : many.points.run(requests)) values.push_back(runs::metric_of(run, metric));
    return values;
  };
  const auto found = uncertainty::analyse(unknowns, model,
                                          {.trajectories = static_cast<std::size_t>(options.trajectories),
                                           .keep = static_cast<std::size_t>(options.keep),
                                           .samples = static_cast<std::size_t>(options.samples),
                                           .seed = options.seed.value()},
                                          [&] { return many.points.interrupted(); });
  if (many.stopped() || !found) return kInterrupted;
  studies::StudyResult result;
  result.rows = rows_of(unknowns, *found);
  result.notes = notes_of(unknowns, *found, metric);
  result.parameters.set("study", study).set("metric", metric);
  for (const auto& [key, value] : fixed) result.parameters.set(key, value);
  std::vector<std::string> words{std::string(self.name)};
  words.insert(words.end(), arguments.begin(), arguments.end());
  Json document = studies::to_document(result, machine,
                                       {.study = "sensitivity",
                                        .seed = options.seed.value(),
                                        .wall_s = many.progress.seconds(),
                                        .arguments = words,
                                        .date = studies::date_now()});
  document["sensitivity"] = {{"study", study},
                             {"metric", metric},
                             {"own", found->own},
                             {"runs", found->runs},
                             {"failed", found->failed},
                             {"trajectories", options.trajectories},
                             {"inert", keys_of(unknowns, found->inert)},
                             {"refused", keys_of(unknowns, found->refused)}};
  if (found->surrogate_quality) document["sensitivity"]["surrogate_quality"] = *found->surrogate_quality;
  if (options.rows.format == "json") print_now(document.dump(2) + "\n");
  if (options.rows.format == "csv") print_now(studies::to_csv(result.rows));
  if (options.rows.format == "table") {
    studies::TablePrinter printer(kSensitivityFields, options.rows.columns);
    for (const studies::Row& row : result.rows) print_now(printer.add(row));
    for (const std::string& note : result.notes) print_now(note + "\n");
  }
  output.write(document.dump(2) + "\n");
  output.finish();
  return kDone;
}

}  // namespace

constinit const Command kSensitivityCommand{"sensitivity",
                                            "STUDY",
                                            "which unknown parameters of the machine move a result",
                                            "",
                                            0,
                                            detail::describe_command<SensitivityOptions>,
                                            sensitivity};

}  // namespace cm384::cli
