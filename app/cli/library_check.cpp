// `cm384 library check`: run some points of a library again.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include "app/cli/commands.h"
#include "app/cli/exit_code.h"
#include "app/cli/library_runs.h"
#include "app/cli/many_runs.h"
#include "app/cli/progress.h"
#include "base/text/error.h"
#include "base/text/standard_error.h"
#include "traces/random.h"
#include "workloads/frame/build_info.h"
#include "workloads/frame/result_json.h"
#include "workloads/frame/table.h"
#include "workloads/service/library_points.h"

namespace cm384::cli {
namespace {

using service::LibraryPoint;
using studies::Field;
using studies::FieldType;
using studies::Range;

struct LibraryCheckOptions {
  std::string library = std::string(hw::kDefaultMachine);
  int sample = 5;
  SeedOption seed;
  double tolerance = 0.02, budget = 60;
  int jobs = 0;
  RowOptions rows;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("library", self.library, studies::Form{"NAME|FILE"},
          "a machine whose library comes with cm384, or a file");
    visit("sample", self.sample, Range{0, 1'000'000}, "points that are run again, drawn by the seed; 0: all");
    SeedOption::describe(self.seed, visit);
    visit("tolerance", self.tolerance, Range{0.0, 1e6}, "share by which a value may differ");
    visit("budget", self.budget, Range{0.0, 1e9},
          "seconds of one core that a point may have taken; one that took longer, or whose time is not "
          "recorded, is left out and named; 0: any");
    visit("jobs", self.jobs, Range{0, 1024}, "runs at a time; 0: one per core of this host");
    RowOptions::describe(self.rows, visit);
  }
};

constexpr std::array kLibraryCheckFields{
    Field{"kind", FieldType::text, "decode, attention, prefill, or a study", true, {}, 9},
    Field{"at", FieldType::text, "its coordinates", true, {}, 40},
    Field{"metric", FieldType::text, "what was measured", true, {}, 17},
    Field{"recorded", FieldType::number, "in the library", true},
    Field{"measured", FieldType::number, "now; empty: the run failed", true},
    Field{"difference", FieldType::ratio, "of that, as a share of what is recorded", true},
    Field{"same_model", FieldType::boolean, "golden results have not changed since", true},
    Field{"failed", FieldType::text, "why the run gave nothing; empty: it did"},
    Field{"command", FieldType::text, "that was run"},
};

// A folder for as long as this lives.
class Scratch {
 public:
  Scratch() : folder_(std::filesystem::temp_directory_path() / fmt::format("cm384-check-{}", getpid())) {
    std::filesystem::create_directories(folder_);
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::string store() const { return (folder_ / "store.sqlite").string(); }

 private:
  std::filesystem::path folder_;
};

// Points that may be run again; prints which are left out.
std::vector<LibraryPoint> affordable(std::vector<LibraryPoint> points, double budget) {
  if (budget <= 0) return points;
  std::erase_if(points, [&](const LibraryPoint& point) {
    if (point.seconds > 0 && point.seconds <= budget) return false;
    print_error("cm384: left out: {} ({})\n", point.command,
                point.seconds > 0 ? fmt::format("took {:.0f} s", point.seconds) : "its time is not recorded");
    return true;
  });
  return points;
}

// `count` of them in their order; 0: all.
std::vector<LibraryPoint> drawn(std::vector<LibraryPoint> points, int count, std::uint64_t seed) {
  const auto wanted = static_cast<std::size_t>(count);
  traces::Random random(seed);
  while (wanted > 0 && points.size() > wanted)
    points.erase(points.begin() + static_cast<std::ptrdiff_t>(random.below(points.size())));
  return points;
}

// Prints the plan before it is carried out.
void print_cost(const std::vector<LibraryPoint>& points) {
  double seconds = 0;
  std::size_t unknown = 0;
  for (const LibraryPoint& point : points) {
    seconds += point.seconds;
    unknown += point.seconds > 0 ? 0 : 1;
  }
  std::string text = fmt::format("{} points to run again", points.size());
  if (seconds > 0) text += fmt::format("; they took {} of one core before", duration_text(seconds));
  if (unknown > 0) text += fmt::format("; how long {} take is not known", unknown);
  print_error("cm384: {}\n", text);
}

double difference(double recorded, double measured) {
  if (recorded == measured) return 0;
  return recorded == 0 ? HUGE_VAL : measured / recorded - 1;
}

// A row for each value of the point.
studies::Rows compare(const LibraryPoint& point, const runs::Runs::Request& request, const runs::Run& run) {
  std::vector<LibraryPoint> measured;
  if (run.failed.empty()) {
    service::Library now("");
    add_point(now, request, point.values.front().first, run.document());
    measured = service::points_of(now);
    if (!measured.front().is_at_place_of(point))
      throw InputError(fmt::format("{}: the command gives a point at {}, but the library has it at {}",
                                   point.command, measured.front().place(), point.place()));
  }
  studies::Rows rows;
  for (const auto& [name, recorded] : point.values) {
    studies::Row row{{"kind", point.kind}, {"at", point.place()}, {"metric", name}, {"recorded", recorded}};
    std::optional<double> value;
    for (const LibraryPoint& now : measured)
      for (const auto& [other, number] : now.values)
        if (other == name) value = number;
    row.set("measured", value);
    row.set("difference", value ? studies::Value(difference(recorded, *value)) : studies::Value());
    row.set("same_model", studies::is_same_model(point.model));
    row.set("failed", run.failed.empty() ? studies::Value() : studies::Value(run.failed));
    row.set("command", point.command);
    rows.push_back(std::move(row));
  }
  return rows;
}

int check(const Program& program, const LibraryCheckOptions& options, const studies::Given&) {
  studies::TablePrinter printer(kLibraryCheckFields, options.rows.columns);
  const service::Library library = service::Library::load(options.library);
  const std::vector<LibraryPoint> points =
      drawn(affordable(service::points_of(library), options.budget), options.sample, options.seed.value());
  if (points.empty())
    throw InputError(fmt::format("{}: no point is within --budget {}; allowed: a larger one, or 0 for any",
                                 options.library, options.budget));
  const Scratch scratch;
  ManyRunsOptions runs;
  runs.jobs = options.jobs;
  ManyRuns many(program, runs, scratch.store());
  std::vector<runs::Runs::Request> requests;
  for (const LibraryPoint& point : points) {
    requests.push_back(request_of(point.command));
    many.subject.choose(requests.back().study);
    for (const auto& [key, value] : requests.back().settings) many.subject.scale(key);
  }
  print_cost(points);
  const std::vector<runs::Run> ended = many.points.run(requests);
  many.progress.clear();
  if (many.points.interrupted()) return kInterrupted;
  studies::Rows rows;
  double worst = 0;
  bool good = true;
  for (std::size_t k = 0; k < points.size(); ++k) {
    for (studies::Row& row : compare(points[k], requests[k], ended[k])) {
      const bool there = !row["measured"].empty();
      if (there) worst = std::max(worst, std::abs(row["difference"].number()));
      good = good && there;
      if (options.rows.format == "table") print_now(printer.add(row));
      rows.push_back(std::move(row));
    }
    if (!ended[k].failed.empty()) print_error("cm384: {}: {}\n", points[k].command, ended[k].failed);
  }
  if (options.rows.format == "json") print_now(studies::to_json(rows).dump(2) + "\n");
  if (options.rows.format == "csv") print_now(studies::to_csv(rows));
  good = good && worst <= options.tolerance;
  print_error("cm384: {} of {} points run again; the worst value differs by {:.2f} %, {} % allowed\n",
              points.size(), service::points_of(library).size(), worst * 100, options.tolerance * 100);
  return good ? kDone : kCheckFailed;
}

}  // namespace

constinit const Command kLibraryCheckCommand = make_command<LibraryCheckOptions, check>(
    "library check", "[NAME|FILE]", "run some points of a library again", "library");

}  // namespace cm384::cli
