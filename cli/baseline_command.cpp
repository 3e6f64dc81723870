#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/study_run.h"
#include "hw/error.h"
#include "hw/nearest_name.h"
#include "report/baseline.h"
#include "report/comparison.h"
#include "report/junit.h"
#include "sim/output_file.h"
#include "studies/table.h"

namespace cm384::cli {
namespace {

namespace fs = std::filesystem;
using studies::Form;

struct UpdateOptions {
  std::string folder, only;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("folder", self.folder, Form{"DIR"}, "with baseline.toml and the results");
    visit("only", self.only, Form{"NAME"}, "one run of baseline.toml");
  }
  // Throws InputError if it is not given.
  fs::path path() const {
    if (folder.empty()) throw InputError("baseline: no folder given; allowed: a folder with baseline.toml");
    return folder;
  }
};

struct BaselineCheckOptions : UpdateOptions {
  std::string junit;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    UpdateOptions::describe(self, visit);
    visit("junit", self.junit, Form{"FILE"}, "write the verdicts as JUnit XML");
  }
};

std::vector<report::BaselineRun> chosen(const report::Baseline& baseline, const std::string& only) {
  if (only.empty()) return baseline.runs;
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
  StudyRun study(all, run.arguments);
  if (study.wants_help()) throw InputError(fmt::format("baseline run {}: asks for --help", run.name));
  const FinishedRun finished = study.run();
  study.write(finished);
  study.rethrow();
  return report::parse_result(report::golden_text(finished.document), run.name);
}

void print_changes(const std::string& name, const report::ResultComparison& comparison) {
  fmt::print("{}: {}\n{}", name, report::summary_line(comparison),
             studies::to_table(report::change_rows(comparison)));
  std::fflush(stdout);
}

int check(const Program& program, const BaselineCheckOptions& options, const studies::Given&) {
  const fs::path folder = options.path();
  const report::Baseline baseline = report::read_baseline(folder.string());
  std::optional<OutputFile> junit;
  if (!options.junit.empty()) junit.emplace(options.junit);
  std::vector<report::JunitSuite> suites;
  bool held = true;
  for (const report::BaselineRun& run : chosen(baseline, options.only)) {
    const std::string file = (folder / (run.name + ".json")).string();
    if (!fs::exists(file))
      throw InputError(
          fmt::format("{}: no such result; `cm384 baseline update {}` makes it", file, folder.string()));
    const Json golden = report::read_result(file);
    const report::ResultComparison comparison =
        report::compare_results(golden, fresh_result(program.studies, run), baseline.tolerances);
    if (interrupted() != 0) return kInterrupted;
    print_changes(run.name, comparison);
    held = held && comparison.within() && comparison.same_conditions();
    suites.push_back({run.name, comparison, true});
  }
  if (junit) {
    junit->write(report::to_junit(suites));
    junit->finish();
  }
  return held ? kDone : kCheckFailed;
}

int update(const Program& program, const UpdateOptions& options, const studies::Given&) {
  const fs::path folder = options.path();
  const report::Baseline baseline = report::read_baseline(folder.string());
  for (const report::BaselineRun& run : chosen(baseline, options.only)) {
    const fs::path file = folder / (run.name + ".json");
    OutputFile output(file.string());
    const Json fresh = fresh_result(program.studies, run);
    if (interrupted() != 0) return kInterrupted;
    if (fs::exists(file)) {
      print_changes(run.name,
                    report::compare_results(report::read_result(file.string()), fresh, baseline.tolerances));
    } else {
      fmt::print("{}: new\n", run.name);
    }
    output.write(report::golden_text(fresh));
    output.finish();
  }
  return kDone;
}

}  // namespace

constinit const Command kBaselineCheckCommand = make_command<BaselineCheckOptions, check>(
    "baseline check", "DIR", "runs what DIR/baseline.toml names, against the results in DIR", "folder");
constinit const Command kBaselineUpdateCommand =
    make_command<UpdateOptions, update>("baseline update", "DIR", "renews those results", "folder");

}  // namespace cm384::cli
