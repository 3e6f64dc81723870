#include <fmt/format.h>

#include <algorithm>

#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/exit_code.h"
#include "cli/progress.h"
#include "hw/nearest_name.h"
#include "sim/error.h"
#include "testbenches/studies/options.h"
#include "testbenches/studies/statistics_file.h"

namespace cm384::cli {
namespace {

namespace po = boost::program_options;
using studies::Study;

constexpr unsigned kHelpWidth = 110;

std::string list_of(std::span<const Study> all) {
  std::string text =
      "cm384 run STUDY [options]; studies (`cm384 run STUDY --help` lists a study's options):\n";
  for (const Study& study : all) text += fmt::format("  {:<12}{}\n", study.name, study.summary);
  return text;
}

const Study& find(std::span<const Study> all, const std::string& name) {
  const auto study = std::ranges::find(all, name, &Study::name);
  if (study != all.end()) return *study;
  std::vector<std::string> names;
  for (const Study& known : all) names.emplace_back(known.name);
  throw InputError(fmt::format("run {}: no such study{}; allowed: {}", name, hw::suggestion(name, names),
                               fmt::join(names, ", ")));
}

void add_run_options(po::options_description& options) {
  add_machine_options(options);
  add_seed_option(options);
  options.add_options()("out", studies::required_text_option("DIR"), "write result.json there");
  options.add_options()("format", studies::choice_option("table", {"table", "json", "csv"}),
                        "of the rows on standard output");
  options.add_options()("stats", studies::required_text_option("FILE"),
                        "write what every part of the machine counted, as JSON");
  options.add_options()("stats-detail", po::bool_switch(),
                        "in that file, every core, channel and link by itself as well");
  options.add_options()("gdb", studies::integer_option(0, 0, 65'535),
                        "TCP port where a debugger may attach to a core; 0: none");
  add_help_option(options);
}

void print_result(const studies::StudyResult& result, const studies::Json& document,
                  const std::string& format) {
  if (format == "json") {
    fmt::print("{}\n", document.dump(2));
    return;
  }
  if (format == "csv") {
    fmt::print("{}", studies::to_csv(result.rows));
    return;
  }
  fmt::print("{}", studies::to_table(result.rows));
  for (const std::string& note : result.notes) fmt::print("{}\n", note);
}

int exit_code_of(const studies::StudyResult& result) {
  if (!result.complete && interrupted() != 0) return kInterrupted;
  return result.passed ? kDone : kCheckFailed;
}

}  // namespace

int run_command(std::span<const Study> all, const Arguments& arguments) {
  if (arguments.empty() || arguments.front() == "--help" || arguments.front() == "-h") {
    fmt::print("{}", list_of(all));
    if (arguments.empty()) throw InputError("run: names no study");
    return kDone;
  }
  const Study& study = find(all, arguments.front());
  po::options_description own(fmt::format("options of `run {}`", study.name), kHelpWidth);
  study.add_options(own);
  po::options_description common("options of every run", kHelpWidth);
  add_run_options(common);
  po::options_description options;
  options.add(own).add(common);

  const Arguments rest(arguments.begin() + 1, arguments.end());
  const po::variables_map values = studies::parse_options(options, rest, study.positional);
  if (values["help"].as<bool>()) {
    const std::string bare = study.positional == nullptr ? "" : fmt::format(" {}", study.positional);
    fmt::print("cm384 run {}{} [options]: {}\n\n{}\n{}", study.name, bare, study.summary, help_of(own),
               help_of(common));
    return kDone;
  }

  const hw::Machine machine = machine_of(values);
  const std::string folder = values.count("out") != 0 ? values["out"].as<std::string>() : "";
  studies::RunFacts facts{.study = std::string(study.name), .seed = seed_of(values)};
  studies::StudyResult result;
  const bool stats = values.count("stats") != 0;
  if (values["stats-detail"].as<bool>() && !stats)
    throw InputError("--stats-detail: is of --stats FILE, which is not given");
  studies::StatisticsFile statistics(values["stats-detail"].as<bool>());
  {
    ConsoleProgress progress;
    result = study.run({.machine = machine,
                        .seed = facts.seed,
                        .options = values,
                        .progress = progress,
                        .interrupted = interrupted(),
                        .gdb_port = values["gdb"].as<int>(),
                        .out_folder = folder,
                        .statistics = stats ? &statistics : nullptr});
    facts.wall_s = progress.seconds();
  }
  if (result.parameters.empty()) result.parameters = studies::effective_options(own, values);
  const studies::Json document = studies::to_document(result, machine, facts);
  if (!folder.empty()) studies::write_file(folder, "result.json", document.dump(2) + "\n");
  if (stats) statistics.write(values["stats"].as<std::string>(), facts.study);
  print_result(result, document, values["format"].as<std::string>());
  const int code = exit_code_of(result);
  if (code == kInterrupted) fmt::print(stderr, "cm384: interrupted; the rows are what is known so far\n");
  return code;
}

}  // namespace cm384::cli
