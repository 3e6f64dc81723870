#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/exit_code.h"
#include "cli/study_run.h"
#include "hw/error.h"
#include "hw/nearest_name.h"
#include "report/baseline.h"
#include "report/comparison.h"
#include "report/junit.h"
#include "sim/output_file.h"

namespace cm384::cli {
namespace {

namespace po = boost::program_options;
namespace fs = std::filesystem;

constexpr std::string_view kUsage =
    "cm384 baseline check  DIR [--only NAME] [--junit FILE]   runs what DIR/baseline.toml names, against the "
    "results in DIR\n"
    "cm384 baseline update DIR [--only NAME]                  makes those results anew\n";

std::vector<report::BaselineRun> chosen(const report::Baseline& baseline, const po::variables_map& values) {
  if (values.count("only") == 0) return baseline.runs;
  const std::string only = values["only"].as<std::string>();
  const auto run = std::ranges::find(baseline.runs, only, &report::BaselineRun::name);
  if (run != baseline.runs.end()) return {*run};
  std::vector<std::string> names;
  for (const report::BaselineRun& known : baseline.runs) names.push_back(known.name);
  throw InputError(fmt::format("--only: '{}': no such run{}; allowed: {}", only, hw::suggestion(only, names),
                               fmt::join(names, ", ")));
}

// What the run gives now, as it would be read back from its file.
Json fresh_result(std::span<const studies::Study> all, const report::BaselineRun& run) {
  if (run.arguments.empty()) throw InputError(fmt::format("baseline run {}: names no study", run.name));
  const StudyRun study(all, run.arguments);
  if (study.wants_help()) throw InputError(fmt::format("baseline run {}: asks for --help", run.name));
  return report::parse_result(report::golden_text(study.run().document), run.name);
}

void print_changes(const std::string& name, const report::ResultComparison& comparison) {
  fmt::print("{}: {}\n{}", name, report::summary_line(comparison),
             studies::to_table(report::change_rows(comparison)));
  std::fflush(stdout);
}

int check(std::span<const studies::Study> all, const fs::path& folder, const po::variables_map& values) {
  const report::Baseline baseline = report::read_baseline(folder.string());
  std::vector<report::JunitSuite> suites;
  bool held = true;
  for (const report::BaselineRun& run : chosen(baseline, values)) {
    const std::string file = (folder / (run.name + ".json")).string();
    if (!fs::exists(file))
      throw InputError(
          fmt::format("{}: no such result; `cm384 baseline update {}` makes it", file, folder.string()));
    const Json golden = report::read_result(file);
    const report::ResultComparison comparison =
        report::compare_results(golden, fresh_result(all, run), baseline.tolerances);
    if (interrupted() != 0) return kInterrupted;
    print_changes(run.name, comparison);
    held = held && comparison.within() && comparison.same_conditions();
    suites.push_back({run.name, comparison, true});
  }
  if (values.count("junit") != 0) write_junit(values["junit"].as<std::string>(), suites);
  return held ? kDone : kCheckFailed;
}

int update(std::span<const studies::Study> all, const fs::path& folder, const po::variables_map& values) {
  const report::Baseline baseline = report::read_baseline(folder.string());
  for (const report::BaselineRun& run : chosen(baseline, values)) {
    const Json fresh = fresh_result(all, run);
    if (interrupted() != 0) return kInterrupted;
    const fs::path file = folder / (run.name + ".json");
    if (fs::exists(file)) {
      print_changes(run.name,
                    report::compare_results(report::read_result(file.string()), fresh, baseline.tolerances));
    } else {
      fmt::print("{}: new\n", run.name);
    }
    write_file(file.string(), report::golden_text(fresh));
  }
  return kDone;
}

}  // namespace

int baseline_command(std::span<const studies::Study> all, const Arguments& arguments) {
  const std::vector<std::string> actions = {"check", "update"};
  if (arguments.empty() || arguments.front() == "--help" || arguments.front() == "-h") {
    fmt::print("{}", kUsage);
    if (arguments.empty()) throw InputError("baseline: says not what to do; allowed: check, update");
    return kDone;
  }
  const std::string& action = arguments.front();
  if (std::ranges::find(actions, action) == actions.end())
    throw InputError(fmt::format("baseline {}: unknown{}; allowed: {}", action,
                                 hw::suggestion(action, actions), fmt::join(actions, ", ")));
  po::options_description options("options of `baseline`", 110);
  options.add_options()("folder", studies::required_text_option("DIR"), "with baseline.toml and the results");
  options.add_options()("only", studies::required_text_option("NAME"), "one run of baseline.toml");
  if (action == "check")
    options.add_options()("junit", studies::required_text_option("FILE"), "write the verdicts as JUnit XML");
  add_help_option(options);
  const po::variables_map values =
      studies::parse_options(options, Arguments(arguments.begin() + 1, arguments.end()), "folder");
  if (values["help"].as<bool>()) {
    fmt::print("{}\n{}", kUsage, help_of(options));
    return kDone;
  }
  if (values.count("folder") == 0) throw InputError(fmt::format("baseline {}: names no folder", action));
  const fs::path folder = values["folder"].as<std::string>();
  return action == "check" ? check(all, folder, values) : update(all, folder, values);
}

}  // namespace cm384::cli
