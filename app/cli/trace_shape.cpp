// `cm384 trace shape`: traces made of traces.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "app/cli/commands.h"
#include "app/cli/common_options.h"
#include "app/cli/exit_code.h"
#include "app/cli/replaced_trace.h"
#include "base/text/error.h"
#include "base/text/lines.h"
#include "base/text/quantity.h"
#include "base/text/standard_error.h"
#include "traces/importers/rank_map.h"
#include "traces/shape.h"

namespace cm384::cli {
namespace {

using studies::Form;
using studies::Range;
using traces::TrafficRecord;

struct ShapeOptions {
  studies::Texts file;
  std::string map, offset;
  studies::Integers ranks, first_die, level;
  int stride = 1, repeat = 1;
  double scale_compute = 1, scale_bytes = 1, rate = 1;
  SeedOption seed;
  MachineOptions machine;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("file", self.file, Form{"FILE"}, "the inputs, each a job, then the output");
    visit("ranks", self.ranks, Range{0, 65535},
          "ranks that are kept, by number; a rank is a die of the trace, in the order of their numbers");
    visit("map", self.map, Form{"linear|strided|random|min-cut|FILE"},
          "die of each rank kept: one after another, every --stride-th, drawn, such that few bytes leave "
          "nodes, or by a "
          "file with lines rank,die; default: as recorded, or linear with several inputs");
    visit("first-die", self.first_die, Range{0, 65535},
          "where each job's dies begin; default: 0, and linear and min-cut behind the job before, strided "
          "one further");
    visit("stride", self.stride, Range{1, 65535}, "of strided; default: as many as there are jobs");
    visit("scale-compute", self.scale_compute, Range{0.0, 1e6},
          "factor of time without traffic: compute records, and delays after what was waited for");
    visit("scale-bytes", self.scale_bytes, Range{1e-6, 1e6}, "factor of each transfer's bytes");
    visit("rate", self.rate, Range{1e-6, 1e6},
          "factor of how often records begin that begin at their recorded time");
    visit("repeat", self.repeat, Range{1, 1'000'000},
          "of the trace, each beginning when the one before has ended");
    visit("offset", self.offset, Form{"TIME[,TIME...]"}, "of each job: delay of all its records");
    visit("level", self.level, Range{0, 15},
          "of each job: service level of its transfers, which a machine with ub.qos.classes tells apart; "
          "default: as recorded");
    SeedOption::describe(self.seed, visit);
    MachineOptions::describe(self.machine, visit);
  }
};

// What a first reading shows of a job.
struct Job {
  std::string path;
  std::map<int, int> rank_of;                    // by die
  std::unique_ptr<traces::RankTraffic> traffic;  // for min-cut
  std::vector<int> kept;                         // ranks
  std::vector<int> dies;                         // of all ranks; empty: as recorded
  Time offset{};
};

void read_job(Job& job, bool with_traffic) {
  std::map<std::pair<int, int>, double> bytes;
  const auto source = traces::open_traffic(job.path);
  for (TrafficRecord r; source->next(r);) {
    if (r.kind >= TrafficRecord::Kind::idle) continue;
    job.rank_of.emplace(r.source.number, 0);
    if (!r.moves() || r.target.cpu) continue;
    job.rank_of.emplace(r.target.number, 0);
    if (with_traffic) bytes[{r.source.number, r.target.number}] += static_cast<double>(r.total_bytes());
  }
  int rank = 0;
  for (auto& [die, its] : job.rank_of) its = rank++;
  if (rank == 0) throw InputError(fmt::format("{}: no records to shape", job.path));
  if (!with_traffic) return;
  job.traffic = std::make_unique<traces::RankTraffic>(rank);
  for (const auto& [ends, sum] : bytes)
    job.traffic->add(job.rank_of[ends.first], job.rank_of[ends.second], sum);
}

void keep_ranks(Job& job, const studies::Integers& asked) {
  for (const int rank : asked) {
    if (rank >= static_cast<int>(job.rank_of.size()))
      throw InputError(fmt::format("--ranks: {}; {} has 0 to {}", rank, job.path, job.rank_of.size() - 1));
  }
  job.kept = {asked.begin(), asked.end()};
  std::ranges::sort(job.kept);
  if (std::ranges::adjacent_find(job.kept) != job.kept.end()) throw InputError("--ranks: names one twice");
  if (job.kept.empty()) {
    for (int rank = 0; rank < static_cast<int>(job.rank_of.size()); ++rank) job.kept.push_back(rank);
  }
}

// Dies of the ranks kept, put in the place of all.
void place(Job& job, const ShapeOptions& options, const std::string& rule, const traces::DieRoom& room) {
  const auto count = static_cast<int>(job.kept.size());
  std::vector<int> dies;
  if (rule == "linear" || rule == "strided") {
    dies = traces::linear_dies(count, room);
  } else if (rule == "random") {
    dies = traces::random_dies(count, room, options.seed.value());
  } else if (rule == "min-cut") {
    traces::RankTraffic kept(count);
    for (int a = 0; a < count; ++a) {
      for (int b = a + 1; b < count; ++b)
        kept.add(a, b,
                 job.traffic->between(job.kept[static_cast<std::size_t>(a)],
                                      job.kept[static_cast<std::size_t>(b)]));
    }
    dies = traces::min_cut_dies(kept, room);
    print_error("cm384: {}: {:.3g} B between nodes; linear: {:.3g} B\n", job.path,
                traces::cut_between_nodes(kept, dies, room),
                traces::cut_between_nodes(kept, traces::linear_dies(count, room), room));
  } else {
    dies = traces::dies_from_file(rule, count, room);
  }
  job.dies.assign(job.rank_of.size(), 0);
  for (int n = 0; n < count; ++n)
    job.dies[static_cast<std::size_t>(job.kept[static_cast<std::size_t>(n)])] =
        dies[static_cast<std::size_t>(n)];
}

// A header's line of a job.
std::string told(const Job& job, const ShapeOptions& o, const std::string& rule, const traces::DieRoom& room,
                 int level) {
  std::string text = fmt::format("of {}", std::filesystem::path(job.path).filename().string());
  if (!o.ranks.empty()) text += fmt::format(", {} of {} ranks", job.kept.size(), job.rank_of.size());
  if (!job.dies.empty()) {
    text += fmt::format(", dies {}", rule);
    if (rule == "linear" || rule == "min-cut") text += fmt::format(" from {}", room.first);
    if (rule == "strided") text += fmt::format(" from {} by {}", room.first, room.stride);
    if (rule == "random") text += fmt::format(" seed {}", o.seed.value());
  }
  if (o.scale_compute != 1) text += fmt::format(", compute x {}", o.scale_compute);
  if (o.scale_bytes != 1) text += fmt::format(", bytes x {}", o.scale_bytes);
  if (o.rate != 1) text += fmt::format(", rate x {}", o.rate);
  if (o.repeat != 1) text += fmt::format(", {} times", o.repeat);
  if (level >= 0) text += fmt::format(", level {}", level);
  if (job.offset != Time{}) text += fmt::format(", {} us later", job.offset.us());
  return text;
}

// Cores and memory of a die are one job's.
void check_apart(const std::vector<Job>& jobs) {
  std::map<int, const Job*> taken;
  for (const Job& job : jobs) {
    for (const auto& [die, rank] : job.rank_of) {
      if (!std::ranges::binary_search(job.kept, rank)) continue;
      const int on = job.dies.empty() ? die : job.dies[static_cast<std::size_t>(rank)];
      const auto [at, free] = taken.emplace(on, &job);
      if (!free)
        throw InputError(fmt::format("--map: die {} goes to {} and to {}; allowed: dies of one job each", on,
                                     at->second->path, job.path));
    }
  }
}

int shape(const Program&, const ShapeOptions& o, const studies::Given& given) {
  if (o.file.size() < 2) throw InputError("trace shape: no output given; allowed: IN... OUT");
  std::vector<Job> jobs(o.file.size() - 1);
  const std::string& output = o.file.back();
  const std::string rule = o.map.empty() && jobs.size() > 1 ? "linear" : o.map;
  const hw::Machine machine = o.machine.load();
  for (const char* name : {"first-die", "seed", "stride"}) {
    const bool takes = std::string_view(name) == "stride" ? rule == "strided"
                       : std::string_view(name) == "seed"
                           ? rule == "random"
                           : rule == "linear" || rule == "strided" || rule == "min-cut" || rule == "random";
    if (given.contains(name) && !takes)
      throw InputError(fmt::format("--{}: has no effect with this --map", name));
  }
  const bool by_file =
      !rule.empty() && rule != "linear" && rule != "strided" && rule != "random" && rule != "min-cut";
  if (by_file && jobs.size() > 1)
    throw InputError("--map: a file maps one job; allowed with several: linear, strided, min-cut");
  if (rule == "random" && jobs.size() > 1)
    throw InputError("--map: random draws for one job; allowed with several: linear, strided, min-cut");
  const auto one_each = [&jobs](const char* name, std::size_t count) {
    if (count != 0 && count != jobs.size())
      throw InputError(
          fmt::format("--{}: {} values; allowed: one for each of {} jobs", name, count, jobs.size()));
  };
  const auto offsets = o.offset.empty() ? std::vector<std::string_view>() : split_fields(o.offset);
  one_each("offset", offsets.size());
  one_each("first-die", o.first_die.size());
  one_each("level", o.level.size());
  traces::TrafficHeader header;
  std::vector<std::unique_ptr<traces::TrafficSource>> shaped;
  std::vector<traces::ShapedTrace*> reporting;
  int next_die = 0;
  for (std::size_t n = 0; n < jobs.size(); ++n) {
    Job& job = jobs[n];
    job.path = o.file[n];
    std::error_code none;
    if (std::filesystem::equivalent(job.path, output, none))
      throw InputError(fmt::format("trace shape: {} is both input and output", job.path));
    if (!offsets.empty()) {
      job.offset = hw::parse_time(offsets[n]);
      if (job.offset < Time{} || job.offset > 1000_s)
        throw InputError(fmt::format("--offset: {}; allowed: 0s to 1000s", offsets[n]));
    }
    read_job(job, rule == "min-cut");
    keep_ranks(job, o.ranks);
    traces::DieRoom room{machine.topology.dies(), machine.topology.dies_per_node,
                         machine.topology.dies_per_package, next_die, 1};
    if (rule == "strided") {
      room.stride = given.contains("stride") ? o.stride : static_cast<int>(jobs.size());
      room.first = static_cast<int>(n);
    }
    if (!o.first_die.empty()) room.first = o.first_die[n];
    if (!rule.empty()) place(job, o, rule, room);
    next_die = room.first + static_cast<int>(job.kept.size());
    const int level = o.level.empty() ? -1 : o.level[n];
    const auto open = [path = job.path] { return traces::open_traffic(path); };
    auto made = std::make_unique<traces::ShapedTrace>(
        open, job.rank_of,
        traces::ShapeOptions{job.path, job.dies, job.kept, o.scale_compute, o.scale_bytes, o.rate, o.repeat,
                             job.offset, level});
    if (n == 0) header = made->header();
    if (n != 0)
      header.shaped.insert(header.shaped.end(), made->header().shaped.begin(), made->header().shaped.end());
    header.shaped.push_back(told(job, o, rule, room, level));
    reporting.push_back(made.get());
    shaped.push_back(std::move(made));
  }
  check_apart(jobs);
  may_replace(output);
  const auto sink = traces::create_traffic(output, header);
  traces::MergedTraces merged(std::move(shaped));
  std::uint64_t records = 0, forgotten = 0;
  for (TrafficRecord r; merged.next(r); ++records) {
    if (interrupted() != 0) return kInterrupted;
    sink->add(r);
  }
  sink->finish();
  for (const traces::ShapedTrace* job : reporting) forgotten += job->forgotten();
  fmt::print("{}: {} records\n", output, records);
  for (const std::string& line : header.shaped) fmt::print("  {}\n", line);
  if (forgotten != 0)
    fmt::print(
        "  {} of them waited only for what is left out: they begin as long after the last pause as "
        "recorded\n",
        forgotten);
  return kDone;
}

}  // namespace

constinit const Command kTraceShapeCommand = make_command<ShapeOptions, shape>(
    "trace shape", "IN... OUT", "a trace made of traces: other dies, scaled, cut by rank, repeated, merged",
    "file", -1);

}  // namespace cm384::cli
