// `cm384 baseline check`, `update`: runs against their golden results, however many of them fail.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <filesystem>

#include "app/cli/baseline_runs.h"
#include "app/cli/commands.h"
#include "app/cli/exit_code.h"
#include "app/cli/sweep_progress.h"
#include "base/text/error.h"
#include "base/text/nearest_name.h"
#include "base/text/output_file.h"
#include "lab/report/baseline.h"
#include "lab/report/junit.h"
#include "lab/report/night_page.h"
#include "lab/sweeps/history.h"
#include "workloads/frame/build_info.h"
#include "workloads/frame/result_json.h"
#include "workloads/frame/table.h"

namespace cm384::cli {
namespace {

namespace fs = std::filesystem;
using report::RunVerdict;
using report::Verdict;
using studies::Form;
using studies::Needs;
using studies::Range;

struct UpdateOptions {
  std::string folder;
  studies::Texts only;
  int jobs = 1;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("folder", self.folder, Form{"DIR"}, "with baseline.toml and the results");
    visit("only", self.only, Form{"NAME"}, "these runs of baseline.toml; may be repeated");
    visit("jobs", self.jobs, Range{0, 1024}, "runs at a time; 0: one per core of this host");
  }
  // Throws InputError if it is not given.
  fs::path path() const {
    if (folder.empty()) throw InputError("baseline: no folder given; allowed: a folder with baseline.toml");
    return folder;
  }
};

struct BaselineCheckOptions : UpdateOptions {
  std::string junit, out, history, commit, subject;
  studies::Texts may_differ;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    UpdateOptions::describe(self, visit);
    visit("junit", self.junit, Form{"FILE"}, "write the verdicts as JUnit XML");
    visit("out", self.out, Form{"DIR"},
          "write index.html there, a page of all verdicts, and keep the output of runs that did not pass");
    visit("history", self.history, Form{"FILE"},
          "add this night to the history in the file, and report since when, and from which commit on, each "
          "run has not been good");
    visit("commit", self.commit, Form{"ID"},
          "what was tested, for the history; default: the commit of the folder, where git knows it",
          Needs{"history", {}});
    visit("subject", self.subject, Form{"TEXT"}, "first line of that commit's message; default: from git",
          Needs{"commit", {}});
    visit("may-differ", self.may_differ, Form{"CONDITION"},
          "a condition that may differ from the golden result's, such as inputs* after a kernel has changed; "
          "may "
          "be repeated");
  }
};

std::vector<report::BaselineRun> chosen(const report::Baseline& baseline, const studies::Texts& only) {
  if (only.empty()) return baseline.runs;
  std::vector<std::string> names;
  for (const report::BaselineRun& known : baseline.runs) names.push_back(known.name);
  std::vector<report::BaselineRun> runs;
  for (const std::string& name : only) {
    const auto run = std::ranges::find(baseline.runs, name, &report::BaselineRun::name);
    if (run == baseline.runs.end())
      throw InputError(fmt::format("--only: '{}': no such run{}; allowed: {}", name,
                                   hw::suggestion(name, names), fmt::join(names, ", ")));
    runs.push_back(*run);
  }
  return runs;
}

std::string golden_file(const fs::path& folder, const std::string& run) {
  return (folder / (run + ".json")).string();
}

// A folder for what runs leave, which goes with this object unless it was asked for.
class NightFolder {
 public:
  explicit NightFolder(const std::string& asked) : path_(asked), kept_(!asked.empty()) {
    std::error_code failure;
    if (!kept_) path_ = fs::temp_directory_path(failure) / fmt::format("cm384-baseline-{}", getpid());
    fs::create_directories(path_, failure);
    if (failure) throw OutputError(fmt::format("{}: cannot be made: {}", path_.string(), failure.message()));
  }
  ~NightFolder() {
    std::error_code ignored;
    if (!kept_) fs::remove_all(path_, ignored);
  }
  NightFolder(const NightFolder&) = delete;
  NightFolder& operator=(const NightFolder&) = delete;
  const fs::path& path() const { return path_; }
  bool kept() const { return kept_; }

 private:
  fs::path path_;
  bool kept_;
};

RunVerdict verdict_of(const report::BaselineRun& run, const runs::EndedRun& ended, const fs::path& folder) {
  RunVerdict made;
  made.name = run.name;
  made.command = command_of(run);
  made.wall_s = ended.wall_s;
  made.peak_MB = ended.outcome.peak_MB;
  const std::string file = golden_file(folder, run.name);
  std::optional<Json> golden;
  try {
    if (fs::exists(file)) golden = report::read_result(file);
    report::judge(made, run, {ended.outcome.exit_code, ended.outcome.reason, ended.out_of_time},
                  ended.document, golden);
  } catch (const InputError& error) {
    made.verdict = Verdict::refused;
    made.reason = error.what();
  }
  return made;
}

void print_verdict(const RunVerdict& run) {
  fmt::print("{}: {}", run.name, report::text_of(run.verdict));
  if (run.comparison) {
    fmt::print("; {}\n{}", report::summary_line(*run.comparison),
               studies::to_table(report::change_rows(*run.comparison)));
  } else {
    fmt::print(": {}\n", run.reason);
    // The reason is its first line.
    const std::size_t rest = run.report.find('\n');
    if (rest != std::string::npos) fmt::print("{}\n", run.report.substr(rest + 1));
  }
  std::fflush(stdout);
}

// What only a whole night shows.
void print_onsets(const std::vector<RunVerdict>& verdicts) {
  for (const RunVerdict& run : verdicts) {
    for (const report::Onset& onset : run.onsets) {
      fmt::print("{}: {}{}{} since {}", run.name,
                 onset.field.empty() ? report::text_of(run.verdict) : onset.field,
                 onset.row.empty() ? "" : fmt::format(" ({})", onset.row),
                 onset.drift ? fmt::format(" drifts, {:+.3g} %,", *onset.drift * 100) : "",
                 onset.commit.empty() ? onset.date : onset.commit);
      if (!onset.subject.empty()) fmt::print(" ({})", onset.subject);
      fmt::print(", {} {}", onset.nights, onset.nights == 1 ? "night" : "nights");
      if (onset.between.size() > 1)
        fmt::print("; one of {} commits since {}", onset.between.size(), onset.good_commit);
      fmt::print("\n");
    }
  }
}

// Folders of runs that passed go; the others are named as the page, which stands beside them, links to them.
void keep_folders(const NightFolder& scratch, const report::Baseline& baseline,
                  std::vector<RunVerdict>& verdicts) {
  for (RunVerdict& run : verdicts) {
    std::error_code ignored;
    const fs::path folder = scratch.path() / run.name;
    if (!scratch.kept() || run.verdict == Verdict::not_run) continue;
    if (run.passes(baseline)) {
      fs::remove_all(folder, ignored);
    } else {
      run.folder = folder.string();
    }
  }
}

int check(const Program&, const BaselineCheckOptions& options, const studies::Given&) {
  const fs::path folder = options.path();
  report::Baseline baseline = report::read_baseline(folder.string());
  for (report::BaselineRun& run : baseline.runs)
    run.may_differ.insert(run.may_differ.end(), options.may_differ.begin(), options.may_differ.end());
  const std::vector<report::BaselineRun> runs = chosen(baseline, options.only);
  // All outputs are there before the first run begins.
  std::optional<OutputFile> junit, page;
  if (!options.junit.empty()) junit.emplace(options.junit);
  const NightFolder scratch(options.out);
  if (scratch.kept()) page.emplace((scratch.path() / "index.html").string());
  std::optional<sweeps::History> history;
  if (!options.history.empty()) history.emplace(options.history);

  const studies::BuildInfo& build = studies::build_info();
  report::Night night;
  night.date = studies::date_now();
  night.build = fmt::format("{} {}", build.version, build.commit);
  night.folder = folder.string();
  const TestedCommit tested =
      options.commit.empty() ? tested_commit(folder.string()) : TestedCommit{options.commit, options.subject};
  night.commit = tested.commit;
  night.subject = tested.subject;

  std::vector<RunVerdict> verdicts(runs.size());
  for (std::size_t n = 0; n < runs.size(); ++n) {
    verdicts[n].name = runs[n].name;
    verdicts[n].command = command_of(runs[n]);
  }
  SweepProgress progress(true);
  run_baseline(runs, scratch.path(), options.jobs, [&](std::size_t n, const runs::EndedRun& ended) {
    verdicts[n] = verdict_of(runs[n], ended, folder);
    progress.clear();
    print_verdict(verdicts[n]);
  });
  night.wall_s = progress.seconds();
  std::vector<std::string> between;
  if (history) {
    const auto last = history->nights(1);
    if (!last.empty()) between = commits_between(folder.string(), last.front().commit, night.commit);
    sweeps::find_onsets(*history, night, between, baseline, verdicts);
    print_onsets(verdicts);
  }
  keep_folders(scratch, baseline, verdicts);
  fmt::print("{}\n", report::summary_line(verdicts));
  std::fflush(stdout);
  // An interrupted night is none.
  std::exception_ptr failure;  // the other outputs are written all the same
  try {
    if (history && interrupted() == 0) history->add(night, between, verdicts, baseline);
  } catch (const OutputError&) {
    failure = std::current_exception();
  }
  if (junit) {
    junit->write(report::to_junit(night, verdicts, baseline));
    junit->finish();
  }
  if (page) {
    Json data = report::night_data(night, verdicts, baseline);
    if (history) data["history"] = history_data(*history, verdicts);
    page->write(report::to_night_page(data));
    page->finish();
  }
  if (failure) std::rethrow_exception(failure);
  if (interrupted() != 0) return kInterrupted;
  return std::ranges::all_of(verdicts, [&](const RunVerdict& run) { return run.passes(baseline); })
             ? kDone
             : kCheckFailed;
}

int update(const Program&, const UpdateOptions& options, const studies::Given&) {
  const fs::path folder = options.path();
  const report::Baseline baseline = report::read_baseline(folder.string());
  const std::vector<report::BaselineRun> runs = chosen(baseline, options.only);
  const NightFolder scratch("");
  bool all = true;
  run_baseline(runs, scratch.path(), options.jobs, [&](std::size_t n, const runs::EndedRun& ended) {
    const report::BaselineRun& run = runs[n];
    RunVerdict made = verdict_of(run, ended, folder);
    if (made.document.is_null()) {
      all = false;
      print_verdict(made);
      return;
    }
    OutputFile output(golden_file(folder, run.name), OutputFile::Compression::none, RunFiles::Use::renewed);
    if (made.comparison) {
      fmt::print("{}: {}\n{}", run.name, report::summary_line(*made.comparison),
                 studies::to_table(report::change_rows(*made.comparison)));
    } else {
      fmt::print("{}: new\n", run.name);
    }
    std::fflush(stdout);
    output.write(made.document.dump(1) + "\n");
    output.finish();
  });
  if (interrupted() != 0) return kInterrupted;
  return all ? kDone : kCheckFailed;
}

}  // namespace

constinit const Command kBaselineCheckCommand = make_command<BaselineCheckOptions, check>(
    "baseline check", "DIR", "runs what DIR/baseline.toml names, against the results in DIR", "folder");
constinit const Command kBaselineUpdateCommand =
    make_command<UpdateOptions, update>("baseline update", "DIR", "renews those results", "folder");

}  // namespace cm384::cli
