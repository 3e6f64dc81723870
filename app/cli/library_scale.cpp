// `cm384 library scale`: a library of one machine made that of another one by a few runs. Of each kind of
// points the one that takes longest, and then the one that takes least, run on the other machine; between
// them what a point takes beyond the least one changes as it does from the least to the longest:
//
//     t' = least' + (t - least) (longest' - least') / (longest - least)
//
// which is exact where a time is one part that all points have and one that grows, and the machine changes
// each by a factor. With one run of a kind all of its times change by its factor. What further runs say of
// points between is how far scaled ones are off.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>

#include "app/cli/commands.h"
#include "app/cli/exit_code.h"
#include "app/cli/library_runs.h"
#include "app/cli/many_runs.h"
#include "app/cli/progress.h"
#include "base/text/error.h"
#include "base/text/output_file.h"
#include "base/text/standard_error.h"
#include "workloads/frame/result_json.h"
#include "workloads/frame/table.h"
#include "workloads/service/library_points.h"

namespace cm384::cli {
namespace {

using service::Library;
using service::LibraryPoint;
using studies::Field;
using studies::FieldType;
using studies::Range;

struct LibraryScaleOptions {
  std::string library = std::string(hw::kDefaultMachine);
  MachineOptions machine;
  std::string out, store, against;
  int count = 5, checks = 3, jobs = 0;
  double budget = 0;
  Bytes memory{};
  RowOptions rows;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    using studies::Form;
    visit("library", self.library, Form{"NAME|FILE"},
          "that of the machine that was measured: of one that comes with it, or a file");
    MachineOptions::describe(self.machine, visit);
    visit("out", self.out, Form{"FILE"}, "the library of the other machine", hw::Letter{'o'});
    visit("runs", self.count, Range{1, 64}, "points that run on the other machine");
    visit("checks", self.checks, Range{0, 64},
          "more points to run there, of each kind in turn the middle one: the error of scaled points is how "
          "far scaling is off at these");
    visit("budget", self.budget, Range{0.0, 1e9},
          "seconds of one core that a run may have taken when the library was measured; 0: any");
    visit("against", self.against, Form{"FILE"},
          "a library that was measured on the other machine: how far each point is off it");
    visit("store", self.store, Form{"FILE"},
          "results of runs by their content, as of sweeps; default: beside the library, .sqlite behind its "
          "name");
    visit("jobs", self.jobs, Range{0, 1024}, "runs at a time; 0: one per core of this host");
    visit("memory", self.memory, Range{0_B, 65536_GiB},
          "of this host that all runs together may take; 0B: what is free");
    RowOptions::describe(self.rows, visit);
  }
  std::string store_path() const { return store.empty() ? out + ".sqlite" : store; }
  ManyRunsOptions runs() const {
    ManyRunsOptions many;
    many.jobs = jobs;
    many.memory = memory;
    return many;
  }
};

constexpr std::array kScaleFields{
    Field{"kind", FieldType::text, "decode, attention, prefill, or a study", true, {}, 9},
    Field{"at", FieldType::text, "its coordinates", true, {}, 40},
    Field{"metric", FieldType::text, "what was measured", true, {}, 17},
    Field{"scaled", FieldType::number, "in this library", true},
    Field{"measured", FieldType::number, "in the other one", true},
    Field{"error", FieldType::ratio, "of the scaled value", true},
};

// The first value of the points of a kind: the one that curves are of.
double time_of(const LibraryPoint& point) {
  return point.values.front().second;
}
std::optional<double> value_of(const LibraryPoint& point, const std::string& name) {
  const auto found = std::ranges::find(point.values, name, &std::pair<std::string, double>::first);
  return found == point.values.end() ? std::nullopt : std::optional(found->second);
}

std::vector<std::string> kinds_of(const std::vector<LibraryPoint>& points) {
  std::vector<std::string> kinds;
  for (const LibraryPoint& point : points) {
    if (std::ranges::find(kinds, point.kind) == kinds.end()) kinds.push_back(point.kind);
  }
  return kinds;
}

// Points of a kind that may run and are not among the `chosen`, by their time.
std::vector<std::size_t> left_of(const std::vector<LibraryPoint>& points, const std::string& kind,
                                 double budget, const std::vector<std::size_t>& chosen) {
  std::vector<std::size_t> left;
  for (std::size_t n = 0; n < points.size(); ++n) {
    if (points[n].kind == kind && (budget <= 0 || points[n].seconds <= budget) &&
        std::ranges::find(chosen, n) == chosen.end())
      left.push_back(n);
  }
  std::ranges::stable_sort(left, {}, [&](std::size_t n) { return time_of(points[n]); });
  return left;
}

// Of each kind in turn the point that takes longest, then of each the one that takes least, up to `count`.
std::vector<std::size_t> choose_runs(const std::vector<LibraryPoint>& points, int count, double budget) {
  std::vector<std::size_t> chosen;
  for (const bool longest : {true, false}) {
    for (const std::string& kind : kinds_of(points)) {
      const std::vector<std::size_t> left = left_of(points, kind, budget, chosen);
      if (!left.empty() && chosen.size() < static_cast<std::size_t>(count))
        chosen.push_back(longest ? left.back() : left.front());
    }
  }
  return chosen;
}

// Of each kind in turn the point in the middle of those that do not run yet, up to `count`.
std::vector<std::size_t> choose_checks(const std::vector<LibraryPoint>& points, int count, double budget,
                                       std::vector<std::size_t> chosen) {
  std::vector<std::size_t> checks;
  for (bool any = true; any && checks.size() < static_cast<std::size_t>(count);) {
    any = false;
    for (const std::string& kind : kinds_of(points)) {
      const std::vector<std::size_t> left = left_of(points, kind, budget, chosen);
      if (left.empty() || checks.size() == static_cast<std::size_t>(count)) continue;
      any = true;
      checks.push_back(left[left.size() / 2]);
      chosen.push_back(checks.back());
    }
  }
  return checks;
}

// What points of a kind took on both machines.
class KindScale {
 public:
  void add(const LibraryPoint& before, const LibraryPoint& after) { pairs_.emplace_back(before, after); }

  // A value of `point` on the other machine.
  double scaled(const LibraryPoint& point, const std::string& name, double value) const {
    std::vector<std::pair<double, double>> known;
    for (const auto& [before, after] : pairs_) {
      const auto one = value_of(before, name), other = value_of(after, name);
      if (one && other && *one > 0) known.emplace_back(*one, *other);
    }
    // Where it is no value of what ran: as the time that it is a part of.
    if (known.empty())
      return value * scaled(point, point.values.front().first, time_of(point)) / time_of(point);
    std::ranges::sort(known);
    const auto [least, least_after] = known.front();
    const auto [longest, longest_after] = known.back();
    if (longest - least < 1e-9 * longest) return value * longest_after / longest;
    return least_after + (value - least) * (longest_after - least_after) / (longest - least);
  }

 private:
  std::vector<std::pair<LibraryPoint, LibraryPoint>> pairs_;
};

class Scaler {
 public:
  Scaler(const Library& base, runs::Settings machine)
      : base_(base), points_(service::points_of(base)), machine_(std::move(machine)) {}

  const std::vector<LibraryPoint>& points() const { return points_; }
  runs::Runs::Request request(std::size_t point) const {
    runs::Runs::Request made = request_of(points_[point].command);
    for (const runs::Setting& setting : machine_) {
      std::erase_if(made.settings, [&](const runs::Setting& own) { return own.first == setting.first; });
      made.settings.push_back(setting);
    }
    return made;
  }
  // What a run of a point gave.
  void add(std::size_t point, const Json& document) {
    Library one = library_of(point, document);
    kinds_[points_[point].kind].add(points_[point], service::points_of(one).front());
    measured_.emplace(point, std::move(one));
  }
  // The same of a point that scaling does not use, once all that it uses are there.
  void check(std::size_t point, const Json& document) {
    const LibraryPoint& before = points_[point];
    Library one = library_of(point, document);
    const double scaled = kinds_.at(before.kind).scaled(before, before.values.front().first, time_of(before));
    const double error = std::abs(scaled / time_of(service::points_of(one).front()) - 1);
    errors_[before.kind] = std::max(errors_[before.kind], error);
    measured_.emplace(point, std::move(one));
  }
  // Worst of the points that were checked, of a kind; of a kind without any that of the others.
  double error_of(const std::string& kind) const {
    if (const auto found = errors_.find(kind); found != errors_.end()) return found->second;
    double worst = 0;
    for (const auto& [other, error] : errors_) worst = std::max(worst, error);
    return worst;
  }

  std::string error_text() const {
    if (errors_.empty()) return "none was run to check it";
    std::vector<std::string> words;
    for (const auto& [kind, error] : errors_) words.push_back(fmt::format("{} {:.1f} %", kind, error * 100));
    return fmt::format("those that were run to check it were off by, at worst: {}", fmt::join(words, ", "));
  }

  Library library(const hw::Machine& machine) {
    Library made(machine.name, machine.overrides);
    next_ = 0;
    for (const auto& point : base_.decode())
      scale_point(made, point, &Library::decode, [&](auto& p) {
        for (double* value : {&p.step_ms, &p.layer_us, &p.attention_half_us, &p.experts_half_us})
          scale(*value, value == &p.step_ms             ? "step_ms"
                        : value == &p.layer_us          ? "layer_us"
                        : value == &p.attention_half_us ? "attention_half_us"
                                                        : "experts_half_us");
      });
    for (const auto& point : base_.attention())
      scale_point(made, point, &Library::attention, [&](auto& p) { scale(p.us, "us"); });
    for (const auto& point : base_.prefill())
      scale_point(made, point, &Library::prefill, [&](auto& p) {
        scale(p.latency_ms, "latency_ms");
        scale(p.attention_ms, "attention_ms");
        scale(p.context_ms, "context_ms");
        scale(p.read_ms, "read_ms");
      });
    for (const auto& point : base_.operators())
      scale_point(made, point, &Library::operators, [&](auto& p) {
        for (auto& [name, value] : p.values) scale(value, name);
      });
    return made;
  }

 private:
  // The library of one point that was run on the other machine.
  Library library_of(std::size_t point, const Json& document) const {
    Library one("");
    const auto* study = point < base_.decode().size() + base_.attention().size() + base_.prefill().size()
                            ? nullptr
                            : &base_.operators()[point - base_.decode().size() - base_.attention().size() -
                                                 base_.prefill().size()];
    add_point(one, request(point), study == nullptr ? "" : study->metric, document);
    return one;
  }
  // The next point: as it was measured, or scaled.
  template <class Point, class Scale>
  void scale_point(Library& made, const Point& point, const std::vector<Point>& (Library::*of)() const,
                   Scale&& scales) {
    if (const auto found = measured_.find(next_); found != measured_.end()) {
      made.add((found->second.*of)().front());
    } else {
      Point copy = point;
      scales(copy);
      copy.command = command_of(request(next_));
      copy.from = "scaled";
      copy.error = error_of(points_[next_].kind);
      copy.date.clear();
      made.add(std::move(copy));
    }
    ++next_;
  }
  void scale(double& value, const std::string& name) const {
    if (value > 0) value = kinds_.at(points_[next_].kind).scaled(points_[next_], name, value);
  }

  const Library& base_;
  const std::vector<LibraryPoint> points_;
  const runs::Settings machine_;
  std::map<std::size_t, Library> measured_;
  std::map<std::string, KindScale> kinds_;
  std::map<std::string, double> errors_;  // by kind, of those that were checked
  std::size_t next_ = 0;                  // point
};

// How far scaled points are off measured ones; of what was measured for both nothing.
void print_errors(const Library& scaled, const std::string& against, const RowOptions& options) {
  const Library measured = Library::load(against);
  studies::TablePrinter printer(kScaleFields, options.columns);
  const std::vector<LibraryPoint> others = service::points_of(measured);
  const std::vector<LibraryPoint> points = service::points_of(scaled);
  studies::Rows rows;
  double worst = 0, sum = 0;
  for (std::size_t n = 0; n < points.size(); ++n) {
    const LibraryPoint& point = points[n];
    const auto other =
        std::ranges::find_if(others, [&](const LibraryPoint& one) { return one.is_at_place_of(point); });
    if (point.from.empty() || other == others.end()) continue;
    const auto& [name, value] = point.values.front();
    const double error = value / time_of(*other) - 1;
    worst = std::max(worst, std::abs(error));
    sum += std::abs(error);
    rows.push_back({{"kind", point.kind},
                    {"at", point.place()},
                    {"metric", name},
                    {"scaled", value},
                    {"measured", time_of(*other)},
                    {"error", error}});
    if (options.format == "table") print_now(printer.add(rows.back()));
  }
  if (options.format == "json") print_now(studies::to_json(rows).dump(2) + "\n");
  if (options.format == "csv") print_now(studies::to_csv(rows));
  if (rows.empty())
    throw InputError(fmt::format("--against {}: has no point where a scaled one is", against));
  print_error("cm384: {} scaled points are off by {:.1f} % on average, {:.1f} % at worst\n", rows.size(),
              100 * sum / static_cast<double>(rows.size()), 100 * worst);
}

int scale(const Program& program, const LibraryScaleOptions& options, const studies::Given& given) {
  if (options.out.empty())
    throw InputError("library scale: --out is missing; allowed: the file of the library");
  const Library base = Library::load(options.library);
  runs::Settings machine;
  if (given.contains("machine")) machine.emplace_back("machine", options.machine.machine);
  for (const std::string& change : options.machine.set) {
    const std::size_t equals = change.find('=');
    if (equals == std::string::npos)
      throw InputError(fmt::format("--set {}: allowed: KEY=VALUE, such as ub.link.bandwidth=28GB/s", change));
    machine.emplace_back(change.substr(0, equals), change.substr(equals + 1));
  }
  if (machine.empty()) throw InputError("library scale: names no other machine; allowed: --machine or --set");
  const hw::Machine changed = options.machine.load();
  Scaler scaler(base, machine);
  const std::vector<std::size_t> chosen = choose_runs(scaler.points(), options.count, options.budget);
  std::map<std::string, int> kinds;
  for (const std::size_t point : chosen) ++kinds[scaler.points()[point].kind];
  for (const LibraryPoint& point : scaler.points()) {
    if (kinds[point.kind] == 0)
      throw InputError(fmt::format(
          "library scale: no point of {} runs; allowed: more --runs, or a larger --budget", point.kind));
  }
  OutputFile output(options.out, OutputFile::Compression::none, RunFiles::Use::renewed);
  ManyRuns many(program, options.runs(), options.store_path());
  many.subject.stand_on(model_and_kernels());
  const std::vector<std::size_t> checks =
      choose_checks(scaler.points(), options.checks, options.budget, chosen);
  std::vector<std::size_t> all = chosen;
  all.insert(all.end(), checks.begin(), checks.end());
  std::vector<runs::Runs::Request> requests;
  for (const std::size_t point : all) requests.push_back(scaler.request(point));
  const std::vector<runs::Run> runs = many.points.run(requests);
  if (many.stopped()) return kInterrupted;
  for (std::size_t n = 0; n < runs.size(); ++n) {
    if (!runs[n].failed.empty()) {
      print_error("cm384: {}: {}\ncm384: {} is not written\n", command_of(requests[n]), runs[n].failed,
                  options.out);
      return kCheckFailed;
    }
    if (n < chosen.size()) {
      scaler.add(all[n], runs[n].document());
    } else {
      scaler.check(all[n], runs[n].document());
    }
  }
  const Library made = scaler.library(changed);
  output.write(made.text());
  output.finish();
  print_error("cm384: {}: {} points, {} of them measured and the others scaled; {}\n", options.out,
              scaler.points().size(), all.size(), scaler.error_text());
  if (!options.against.empty()) print_errors(made, options.against, options.rows);
  return kDone;
}

}  // namespace

constinit const Command kLibraryScaleCommand = make_command<LibraryScaleOptions, scale>(
    "library scale", "[NAME|FILE]", "scale a library to another machine by a few runs", "library");

}  // namespace cm384::cli
