// `cm384 library measure`: runs a grid of studies by the runner of sweeps and writes what they gave as a
// library.
#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <set>

#include "app/cli/commands.h"
#include "app/cli/exit_code.h"
#include "app/cli/library_runs.h"
#include "app/cli/many_runs.h"
#include "app/cli/progress.h"
#include "base/text/embedded_text.h"
#include "base/text/error.h"
#include "base/text/output_file.h"
#include "base/text/standard_error.h"
#include "workloads/service/library_points.h"

namespace cm384::cli {
namespace {

struct LibraryMeasureOptions {
  std::string grid = std::string(hw::kDefaultMachine);
  std::string out, store;
  int jobs = 0;
  Bytes memory{};
  bool dry_run = false;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    using studies::Form;
    visit(
        "grid", self.grid, Form{"NAME|FILE"},
        "what is measured, as TOML; cloudmatrix384: what the library of that machine has; small: eight dies, "
        "within a minute");
    visit("out", self.out, Form{"FILE"}, "the library", hw::Letter{'o'});
    visit("store", self.store, Form{"FILE"},
          "results of runs by their content, as of sweeps; default: beside the library, .sqlite behind its "
          "name");
    visit("jobs", self.jobs, studies::Range{0, 1024}, "runs at a time; 0: one per core of this host");
    visit("memory", self.memory, studies::Range{0_B, 65536_GiB},
          "of this host that all runs together may take; 0B: what is free");
    visit("dry-run", self.dry_run, "print the command of each point, and run none");
  }
  std::string store_path() const { return store.empty() ? out + ".sqlite" : store; }
  ManyRunsOptions runs() const {
    ManyRunsOptions many;
    many.jobs = jobs;
    many.memory = memory;
    return many;
  }
};

sweeps::Grid grid_of(const std::string& name_or_path, StudySubject& subject) {
  for (const hw::EmbeddedText& known : hw::embedded_grids())
    if (known.name == name_or_path)
      return sweeps::parse_grid(known.text, std::string(known.name) + ".toml", subject);
  return sweeps::read_grid(name_or_path, subject);
}

struct Point {
  runs::Runs::Request request;
  std::string metric, key;
};

// What a part may not say, as its points would be no points of a curve.
void check_part(const sweeps::Plan& plan, const std::string& grid) {
  const auto refuse = [&](std::string_view key, std::string_view what) {
    throw InputError(fmt::format("{}: {}: {}: {}", grid, plan.name, key, what));
  };
  if (has_points_of_its_own(plan.study)) {
    if (!plan.metrics.empty()) refuse("metrics", fmt::format("has no effect with study {}", plan.study));
  } else if (plan.metrics.size() != 1) {
    refuse("metrics", fmt::format("allowed: one, the field of `run {}` that curves are of", plan.study));
  }
}

// Throws InputError for a point that would be refused.
std::vector<Point> points_of(const sweeps::Grid& grid, const std::string& name, StudySubject& subject) {
  std::vector<Point> points;
  std::set<std::string> keys;
  for (const sweeps::Plan& plan : grid.parts) {
    check_part(plan, name);
    subject.choose(plan.study);
    for (const auto& settings : sweeps::points_of(plan, subject)) {
      Point point{
          {plan.study, plan.settings(settings)}, plan.metrics.empty() ? "" : plan.metrics.front(), {}};
      try {
        point.key = subject.identity(point.request.settings);
      } catch (const InputError& error) {
        throw InputError(
            fmt::format("{}: {}: {}: {}", name, plan.name, command_of(point.request), error.what()));
      }
      if (!keys.insert(point.key).second)
        throw InputError(
            fmt::format("{}: {}: {}: is listed twice", name, plan.name, command_of(point.request)));
      points.push_back(std::move(point));
    }
  }
  return points;
}

// Seconds that points took of one core when a library was measured, by their keys.
void add_times(std::map<std::string, double>& times, const service::Library& library, StudySubject& subject) {
  for (const service::LibraryPoint& point : service::points_of(library)) {
    if (point.seconds <= 0) continue;
    try {
      const runs::Runs::Request request = request_of(point.command);
      subject.choose(request.study);
      times[subject.identity(request.settings)] = point.seconds;
    } catch (const InputError&) {
      // Of a version with other options: nothing is known of it.
    }
  }
}

// Prints the plan before it is carried out.
void print_cost(const std::vector<Point>& points, const LibraryMeasureOptions& options, runs::Store& store,
                StudySubject& subject) {
  std::map<std::string, double> times;
  for (const hw::EmbeddedText& known : hw::embedded_library())
    add_times(times, service::Library::load(std::string(known.name)), subject);
  if (std::filesystem::exists(options.out)) add_times(times, service::Library::load(options.out), subject);
  std::size_t stored = 0, unknown = 0;
  double seconds = 0;
  for (const Point& point : points) {
    const auto outcome = store.find(point.key);
    if (outcome && !outcome->worth_another()) {
      ++stored;
      continue;
    }
    const auto time = times.find(point.key);
    unknown += time == times.end() ? 1 : 0;
    seconds += time == times.end() ? 0 : time->second;
  }
  std::string text = fmt::format("{} points, {} of them in the store", points.size(), stored);
  if (seconds > 0) text += fmt::format("; the others took {} of one core before", duration_text(seconds));
  if (unknown > 0) text += fmt::format("; how long {} take is not known", unknown);
  print_error("cm384: {}\n", text);
}

int measure(const Program& program, const LibraryMeasureOptions& options, const studies::Given&) {
  StudySubject subject(program.studies, options.runs().threads());
  subject.stand_on(model_and_kernels());
  const sweeps::Grid grid = grid_of(options.grid, subject);
  const std::vector<Point> points = points_of(grid, options.grid, subject);
  if (options.dry_run) {
    for (const Point& point : points) print_now(command_of(point.request) + "\n");
    return kDone;
  }
  if (options.out.empty())
    throw InputError("library measure: --out is missing; allowed: the file of the library");
  MachineOptions machine;
  if (!grid.machine.empty()) machine.machine = grid.machine;
  const hw::Machine measured = machine.load();
  service::Library library(measured.name, measured.overrides);
  // Points that are there already show how long one takes.
  OutputFile output(options.out, OutputFile::Compression::none, RunFiles::Use::renewed);
  ManyRuns many(program, options.runs(), options.store_path());
  many.subject.stand_on(model_and_kernels());
  print_cost(points, options, many.store, subject);
  std::vector<runs::Runs::Request> requests;
  for (const Point& point : points) requests.push_back(point.request);
  const std::vector<runs::Run> runs = many.points.run(requests);
  if (many.stopped()) return kInterrupted;
  std::size_t failed = 0;
  for (std::size_t k = 0; k < runs.size(); ++k) {
    if (runs[k].failed.empty()) {
      add_point(library, points[k].request, points[k].metric, runs[k].document());
    } else {
      ++failed;
      print_error("cm384: {}: {}\n", command_of(points[k].request), runs[k].failed);
    }
  }
  if (failed > 0) {
    print_error("cm384: {} is not written: {} of {} points failed\n", options.out, failed, points.size());
    return kCheckFailed;
  }
  output.write(library.text());
  output.finish();
  print_error("cm384: {}: {} points, {} run now\n", options.out, points.size(), many.runner.counts().run);
  return kDone;
}

}  // namespace

constinit const Command kLibraryMeasureCommand = make_command<LibraryMeasureOptions, measure>(
    "library measure", "[GRID]", "run a grid of studies and make a library of it", "grid");

}  // namespace cm384::cli
