#include "cli/study_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/common_options.h"
#include "cli/exit_code.h"
#include "cli/progress.h"
#include "hw/nearest_name.h"
#include "sim/error.h"
#include "testbenches/studies/profile.h"
#include "testbenches/studies/statistics_file.h"

namespace cm384::cli {
namespace {

namespace po = boost::program_options;
using studies::Study;

constexpr unsigned kHelpWidth = 110;

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
  options.add_options()("out", studies::required_text_option("DIR"),
                        "write result.json there, and what `cm384 report` shows beside it");
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

}  // namespace

StudyRun::StudyRun(std::span<const Study> all, const Arguments& arguments)
    : study_(find(all, arguments.front())),
      own_(fmt::format("options of `run {}`", study_.name), kHelpWidth),
      common_("options of every run", kHelpWidth) {
  study_.add_options(own_);
  add_run_options(common_);
  po::options_description options;
  options.add(own_).add(common_);
  const Arguments rest(arguments.begin() + 1, arguments.end());
  values_ = studies::parse_options(options, rest, study_.positional);
}

bool StudyRun::wants_help() const {
  return values_["help"].as<bool>();
}

std::string StudyRun::help() const {
  const std::string bare = study_.positional == nullptr ? "" : fmt::format(" {}", study_.positional);
  return fmt::format("cm384 run {}{} [options]: {}\n\n{}\n{}", study_.name, bare, study_.summary,
                     help_of(own_), help_of(common_));
}

std::string StudyRun::format() const {
  return values_["format"].as<std::string>();
}

FinishedRun StudyRun::run() const {
  const hw::Machine machine = machine_of(values_);
  const std::string folder = values_.count("out") != 0 ? values_["out"].as<std::string>() : "";
  studies::RunFacts facts{.study = std::string(study_.name), .seed = seed_of(values_)};
  const bool stats = values_.count("stats") != 0;
  if (values_["stats-detail"].as<bool>() && !stats)
    throw InputError("--stats-detail: is of --stats FILE, which is not given");
  studies::StatisticsFile statistics(values_["stats-detail"].as<bool>());
  studies::Profile profile;
  FinishedRun finished;
  {
    ConsoleProgress progress;
    finished.result = study_.run({.machine = machine,
                                  .seed = facts.seed,
                                  .options = values_,
                                  .progress = progress,
                                  .interrupted = interrupted(),
                                  .gdb_port = values_["gdb"].as<int>(),
                                  .out_folder = folder,
                                  .statistics = stats ? &statistics : nullptr,
                                  .profile = folder.empty() ? nullptr : &profile});
    facts.wall_s = progress.seconds();
  }
  if (finished.result.parameters.empty())
    finished.result.parameters = studies::effective_options(own_, values_);
  finished.document = studies::to_document(finished.result, machine, facts);
  if (!folder.empty()) {
    if (!profile.empty())
      studies::write_file(folder, "profile.json", profile.to_document(facts.study, machine).dump() + "\n");
    studies::write_file(folder, "result.json", finished.document.dump(2) + "\n");
  }
  if (stats) statistics.write(values_["stats"].as<std::string>(), facts.study);
  return finished;
}

int exit_code_of(const studies::StudyResult& result) {
  if (!result.complete && interrupted() != 0) return kInterrupted;
  return result.passed ? kDone : kCheckFailed;
}

}  // namespace cm384::cli
