#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <filesystem>
#include <set>

#include "app/cli/commands.h"
#include "app/cli/common_options.h"
#include "app/cli/exit_code.h"
#include "app/cli/sweep_document.h"
#include "app/cli/sweep_progress.h"
#include "app/cli/sweep_slurm.h"
#include "app/cli/sweep_subject.h"
#include "base/engine/peers.h"
#include "base/text/error.h"
#include "base/text/output_file.h"
#include "base/text/standard_error.h"
#include "lab/runs/run_process.h"
#include "lab/runs/runner.h"
#include "lab/sweeps/sweep.h"
#include "system/machine/workers.h"
#include "workloads/frame/result_json.h"
#include "workloads/frame/table.h"

namespace cm384::cli {
namespace {
namespace fs = std::filesystem;
using studies::Field;
using studies::FieldType;
using studies::Form;
using studies::Range;

// What all commands about a sweep have.
struct SweepOptions {
  std::string file, out, store;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("file", self.file, Form{"FILE"}, "the sweep, as TOML");
    visit("out", self.out, Form{"DIR"}, "folder of its results; default: the file's name without .toml");
    visit("store", self.store, Form{"FILE"},
          "results of runs by their content, shared by any number of sweeps; default: store.sqlite in that "
          "folder");
  }
  fs::path folder() const {
    if (file.empty()) throw InputError("sweep: no file given; allowed: a sweep, as TOML");
    return out.empty() ? fs::path(file).filename().replace_extension() : fs::path(out);
  }
  std::string store_path() const { return store.empty() ? (folder() / "store.sqlite").string() : store; }
  SweepFacts facts() const {
    return {.file = file,
            .store = fs::absolute(store_path()).lexically_proximate(fs::absolute(folder())).string()};
  }
};

struct RunSweepOptions : SweepOptions {
  RowOptions rows;
  int jobs = 0;
  Bytes memory{};
  bool dry_run = false, retry = true;
  SlurmSweepOptions on_slurm;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    SweepOptions::describe(self, visit);
    RowOptions::describe(self.rows, visit);
    visit("jobs", self.jobs, Range{0, 1024},
          "runs at a time; 0: one per core of this host, or as many tasks as Slurm has room for");
    visit("memory", self.memory, Range{0_B, 65536_GiB},
          "of this host that all runs together may take, or of each task of Slurm; 0B: what is free, or "
          "estimated");
    visit("retry", self.retry, "run points again whose run was killed or could not write its output");
    visit("dry-run", self.dry_run, "print the command of each point that is known beforehand, and run none");
    SlurmSweepOptions::describe(self.on_slurm, visit);
  }
};

struct ResultsOptions : SweepOptions {
  RowOptions rows;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    SweepOptions::describe(self, visit);
    RowOptions::describe(self.rows, visit);
  }
};

struct ExportOptions : SweepOptions {
  std::string to;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    SweepOptions::describe(self, visit);
    visit("to", self.to, Form{"DIR"}, "where the points' folders go; default: points in the sweep's folder");
  }
};

std::string this_program() {
  return fs::read_symlink("/proc/self/exe").string();
}

// The columns of a sweep's rows: axes, the study's, costs, failures, Pareto. Names live as long as this.
class Columns {
 public:
  Columns(const sweeps::Plan& plan, std::span<const Field> of_study) {
    for (const sweeps::Axis& axis : plan.axes) {
      add(axis.key,
          axis.scale.whole()   ? FieldType::integer
          : axis.scale.plain() ? FieldType::number
                               : FieldType::text,
          "axis of the sweep", true);
      // The first row need not have the longest of its values.
      for (const std::string& value : axis.values)
        fields_.back().width = std::max(fields_.back().width, value.size());
    }
    for (Field& axis : fields_) axis = axis.as_condition();
    for (Field field : of_study) {
      if (plan.axis(std::string(field.name)) != nullptr) continue;
      if (!plan.metrics.empty()) field.column = false;
      fields_.push_back(field);
    }
    for (const sweeps::Cost& cost : plan.costs)
      add(cost.name, FieldType::number, "formula of the sweep", true);
    add("failed", FieldType::text, "why the point has no result; empty: it has", false);
    if (!plan.pareto.empty())
      add("pareto", FieldType::boolean, "no other row is better in every goal", false);
    for (const sweeps::Axis& axis : plan.axes) shown_.push_back(axis.key);
    if (plan.metrics.empty()) {
      // What is the same in every row need not stand in each.
      const auto is_fixed = [&](const std::string& name) {
        return std::ranges::any_of(plan.fixed, [&](const runs::Setting& setting) {
          return setting.first == name && setting.second.find_first_of(",.") == std::string::npos;
        });
      };
      for (const std::string& name : studies::default_columns(of_study)) {
        if (std::ranges::find(shown_, name) == shown_.end() && !is_fixed(name)) shown_.push_back(name);
      }
    }
    for (const std::string& metric : plan.metrics) shown_.push_back(metric);
    for (const sweeps::Cost& cost : plan.costs) shown_.push_back(cost.name);
  }
  std::span<const Field> fields() const { return fields_; }
  std::string shown() const { return fmt::format("{}", fmt::join(shown_, ",")); }

 private:
  void add(const std::string& name, FieldType type, std::string_view sentence, bool column) {
    fields_.push_back({names_.emplace_back(name), type, sentence, column});
  }
  std::deque<std::string> names_;
  std::vector<Field> fields_;
  std::vector<std::string> shown_;
};

void print_found(const sweeps::Plan& plan, const sweeps::SweepResult& result) {
  if (!plan.find) return;
  print_now(fmt::format("\n{} {} with {} {} {}:\n", plan.find->smallest ? "smallest" : "largest",
                        plan.find->axis, plan.find->metric, plan.find->at_most ? "at most" : "at least",
                        plan.find->target));
  print_now(studies::to_table(result.found));
}

void print_pareto(const sweeps::Plan& plan, const Columns& columns, const sweeps::SweepResult& result) {
  if (plan.pareto.empty()) return;
  print_now("\nno row is better in every goal than these:\n");
  studies::TablePrinter printer(columns.fields(), columns.shown());
  for (const studies::Row& row : result.rows) {
    if (const bool* best = row["pareto"].boolean(); best != nullptr && *best) print_now(printer.add(row));
  }
}

std::string summary(const sweeps::SweepResult& result, const runs::RunnerCounts& counts) {
  std::string text =
      fmt::format("{} points: {} from the store, {} run now", result.points, counts.stored, counts.run);
  if (result.failed > 0) text += fmt::format(", {} failed", result.failed);
  if (result.missing > 0) text += fmt::format(", {} missing", result.missing);
  if (counts.lost > 0) text += fmt::format("; {} submitted again, as their tasks were lost", counts.lost);
  if (counts.requeued > 0)
    text += fmt::format("; {} stopped and run again, as memory ran short", counts.requeued);
  return text + "\n";
}

// A plan with what it stands on, for one command.
struct OpenSweep {
  StudySubject subject;
  sweeps::Plan plan;
  Columns columns;

  OpenSweep(const Program& program, const std::string& file, int threads)
      : subject(program.studies, threads),
        plan(sweeps::read_plan(file, subject)),
        columns(plan, subject.fields()) {
    subject.set_threads(std::max(1, threads / plan.ranks_per_point));
  }
};

// Before anything is made.
void check_processes(const sweeps::Plan& plan) {
  if (plan.ranks_per_point == 1) return;
  if (!runs_over_processes(plan.study))
    throw InputError(
        fmt::format("ranks_per_point: run {} is not for several processes of MPI; allowed: 1", plan.study));
  if (const std::string why = sim::why_no_mpi(); !why.empty())
    throw InputError(fmt::format("ranks_per_point: {}", why));
}

int exit_code_of(const sweeps::SweepResult& result) {
  if (interrupted() != 0) return kInterrupted;
  return result.failed > 0 ? kCheckFailed : kDone;
}

// Prints rows as they come, then the rest.
sweeps::SweepResult print_sweep(OpenSweep& open, runs::Executor& runner, const RowOptions& rows,
                                SweepFacts facts, bool with_progress) {
  const bool table = rows.format == "table";
  studies::TablePrinter printer(open.columns.fields(),
                                rows.columns.empty() ? open.columns.shown() : rows.columns);
  sweeps::Sweep sweep(open.plan, open.subject, runner);
  SweepProgress progress(with_progress);
  sweeps::SweepResult result = sweep.run(
      [&](const studies::Row& row) {
        progress.clear();
        if (table) print_now(printer.add(row));
        if (const std::string* why = row["failed"].text(); table && why != nullptr)
          print_now(fmt::format("  failed: {}\n", *why));
      },
      [&](std::size_t done, std::size_t known) {
        progress.update(done, known, runner.running(), runner.seconds_per_point());
      });
  progress.clear();
  facts.wall_s = progress.seconds();
  facts.conditions = studies::condition_names(open.columns.fields());
  if (rows.format == "json") print_now(sweep_document(open.plan, result, facts).dump(2) + "\n");
  if (rows.format == "csv") print_now(studies::to_csv(result.rows));
  if (table) {
    print_found(open.plan, result);
    print_pareto(open.plan, open.columns, result);
  }
  return result;
}

void print_commands(OpenSweep& open) {
  for (const auto& point : sweeps::points_of(open.plan, open.subject)) {
    std::vector<std::string> words = open.subject.arguments(open.plan.settings(point));
    print_now(fmt::format("cm384 run {}\n", fmt::join(words, " ")));
  }
}

// With Slurm as without it, `threads` of the host for each run.
int threads_of(const RunSweepOptions& options) {
  if (options.on_slurm.slurm) return options.on_slurm.cpus;
  const int cores = static_cast<int>(supernode::host_cores());
  return options.jobs == 0 ? 1 : std::max(1, cores / options.jobs);
}

runs::RunnerOptions here(const RunSweepOptions& options, int processes) {
  const std::string spool = spool_folder(options.folder().string());
  if (!sweeps::Spool(spool).arrays().empty())
    throw InputError(fmt::format("{}: Slurm has points of this sweep; --slurm continues with them", spool));
  return {.program = runs::kThisProgram,
          .scratch = (options.folder() / "under-way").string(),
          .jobs = options.jobs == 0 ? std::max(1, static_cast<int>(supernode::host_cores()) / processes)
                                    : options.jobs,
          .processes = processes,
          .memory_MB = static_cast<double>(options.memory.count) * 1e-6,
          .retry = options.retry,
          .interrupted = &interrupted()};
}

sweeps::SlurmOptions on_slurm(const RunSweepOptions& options, int processes) {
  sweeps::SlurmOptions slurm = options.on_slurm.checked();
  slurm.processes = processes;
  slurm.program = this_program();
  slurm.folder = spool_folder(options.folder().string());
  slurm.at_a_time = options.jobs;
  slurm.memory_MB = static_cast<double>(options.memory.count) * 1e-6;
  slurm.retry = options.retry;
  slurm.interrupted = &interrupted();
  slurm.say = [](const std::string& line) {
    print_error("{}cm384: {}\n", isatty(STDERR_FILENO) != 0 ? "\r\033[K" : "", line);
  };
  return slurm;
}

// Prints what Slurm still has of an interrupted sweep.
void print_interrupted(const sweeps::SlurmRunner* slurm) {
  print_error("cm384: interrupted; the same command continues where this one stopped\n");
  if (slurm == nullptr || slurm->jobs().empty()) return;
  print_error("cm384: Slurm continues with what was submitted; to end it: scancel {}\n",
              fmt::join(slurm->jobs(), " "));
}

int run(const Program& program, const RunSweepOptions& options, const studies::Given&) {
  const fs::path folder = options.folder();
  OpenSweep open(program, options.file, threads_of(options));
  if (options.dry_run) {
    print_commands(open);
    return kDone;
  }
  check_processes(open.plan);
  const bool slurm = options.on_slurm.slurm;
  const int ranks = open.plan.ranks_per_point;
  const sweeps::SlurmOptions slurm_options = slurm ? on_slurm(options, ranks) : sweeps::SlurmOptions{};
  const auto queue = slurm ? std::make_optional<sweeps::Slurm>() : std::nullopt;
  OutputFile output((folder / "result.json").string());
  runs::Store store(options.store_path());
  const std::unique_ptr<sweeps::SlurmRunner> jobs =
      slurm ? std::make_unique<sweeps::SlurmRunner>(store, *queue, slurm_options) : nullptr;
  const std::unique_ptr<runs::Runner> processes =
      slurm ? nullptr : std::make_unique<runs::Runner>(store, here(options, ranks));
  runs::Executor& runner = slurm ? static_cast<runs::Executor&>(*jobs) : *processes;
  const auto begin = std::chrono::steady_clock::now();
  SweepFacts facts = options.facts();
  const sweeps::SweepResult result = print_sweep(open, runner, options.rows, facts, true);
  facts.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  facts.conditions = studies::condition_names(open.columns.fields());
  output.write(sweep_document(open.plan, result, facts).dump(2) + "\n");
  output.finish();
  print_error("cm384: {}", summary(result, runner.counts()));
  if (interrupted() != 0) print_interrupted(jobs.get());
  return exit_code_of(result);
}

// A store to look things up in.
std::unique_ptr<runs::Store> existing_store(const SweepOptions& options) {
  const std::string path = options.store_path();
  if (!fs::exists(path))
    throw InputError(fmt::format("{}: no such store; `cm384 sweep {}` makes it", path, options.file));
  return std::make_unique<runs::Store>(path);
}

int results(const Program& program, const ResultsOptions& options, const studies::Given&) {
  options.folder();
  OpenSweep open(program, options.file, 1);
  const auto store = existing_store(options);
  runs::Runner runner(*store, {.lookup = true});
  print_sweep(open, runner, options.rows, options.facts(), false);
  return kDone;
}

int status(const Program& program, const SweepOptions& options, const studies::Given&) {
  options.folder();
  OpenSweep open(program, options.file, 1);
  const auto store = existing_store(options);
  std::size_t done = 0, failed = 0, under_way = 0, open_points = 0;
  const auto points = sweeps::points_of(open.plan, open.subject);
  const std::set<std::string> with_slurm = sweeps::Spool(spool_folder(options.folder().string())).keys();
  if (open.plan.find) {
    runs::Runner runner(*store, {.lookup = true});
    const sweeps::SweepResult result = sweeps::Sweep(open.plan, open.subject, runner).run();
    print_now(fmt::format("{} searches: {} ended; {} points run for them, {} failed\n", points.size(),
                          result.found.size(), result.points - result.missing, result.failed));
    return kDone;
  }
  for (const auto& point : points) {
    const std::string key = open.subject.identity(open.plan.settings(point));
    const auto known = store->find(key);
    if (known) {
      ++(known->failed() ? failed : done);
    } else {
      ++(with_slurm.contains(key) || store->busy(key) ? under_way : open_points);
    }
  }
  print_now(fmt::format("{} points: {} done, {} failed, {} under way, {} to do\n", points.size(), done,
                        failed, under_way, open_points));
  return kDone;
}

int export_points(const Program& program, const ExportOptions& options, const studies::Given&) {
  const fs::path to = options.to.empty() ? options.folder() / "points" : fs::path(options.to);
  OpenSweep open(program, options.file, 1);
  const auto store = existing_store(options);
  runs::Runner runner(*store, {.lookup = true});
  const sweeps::SweepResult result = sweeps::Sweep(open.plan, open.subject, runner).run();
  std::set<std::string> written;
  for (std::size_t i = 0; i < result.rows.size(); ++i) {
    const runs::Job& job = result.jobs[i];
    if (job.key.empty() || !written.insert(job.key).second) continue;
    const auto outcome = store->find(job.key);
    if (!outcome || outcome->document.empty()) continue;
    const fs::path folder = to / fmt::format("{:04}", written.size());
    write_file((folder / "result.json").string(), outcome->document);
    if (!outcome->profile.empty()) write_file((folder / "profile.json").string(), outcome->profile);
    print_now(fmt::format("{}: cm384 run {}\n", folder.string(), fmt::join(job.arguments, " ")));
  }
  write_file((to / "results.csv").string(), studies::to_csv(result.rows));
  return kDone;
}

}  // namespace

constinit const Command kSweepCommand = make_command<RunSweepOptions, run>(
    "sweep", "FILE", "many runs over a grid, a Latin hypercube, or in search of a target", "file");
constinit const Command kSweepStatusCommand =
    make_command<SweepOptions, status>("sweep status", "FILE", "the progress of a sweep", "file");
constinit const Command kSweepResultsCommand = make_command<ResultsOptions, results>(
    "sweep results", "FILE", "the rows that a sweep has so far; runs nothing", "file");
constinit const Command kSweepExportCommand = make_command<ExportOptions, export_points>(
    "sweep export", "FILE", "one folder per point, as `cm384 report` takes it, and all rows as CSV", "file");

}  // namespace cm384::cli
