// `cm384 run jobs`: jobs of a cluster on one or several supernodes: who waits, and what stays idle. No
// machine is simulated; where a job lies can be given to a run of its traffic.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text/error.h"
#include "base/text/output_file.h"
#include "workloads/cluster/allocation.h"
#include "workloads/cluster/job_options.h"
#include "workloads/cluster/pool_timeline.h"
#include "workloads/frame/confidence.h"
#include "workloads/studies.h"

namespace cm384::studies {
namespace {

constexpr std::size_t kMostMaps = 10'000;

struct JobsOptions {
  JobOptions jobs;
  std::int64_t count = 20'000;
  Integers npus{0};
  Time migrate{}, at{};

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    JobOptions::describe(self.jobs, visit,
                         "NPU time that drawn jobs ask for over the NPU time available, arrivals as a "
                         "Poisson process; 0: all arrive at the beginning");
    visit("count", self.count, Range{std::int64_t{1}, std::int64_t{5'000'000}}, "jobs that the seed draws");
    visit("npus", self.npus, Range{0, cluster::kMostBlock},
          "of a supernode, whole nodes; a row each; 0: as the machine has");
    visit("migrate", self.migrate, Range{Time{}, Time{100'000'000'000'000'000}},
          "blocks that run are moved where the first job that waits has no place; their jobs stand still for "
          "so "
          "long, then it starts; 0s: none is moved");
    visit("at", self.at, Range{Time{}, Time::never()},
          "with --out: the dies of each job that runs then, as `trace shape --map` takes them; 0s: none");
  }
  void follow(const Given& given) { jobs.follow(given); }
  void settle(const hw::Machine& machine) {
    jobs.settle(machine);
    for (int& one : npus)
      if (one == 0)
        one = machine.topology.nodes * machine.topology.dies_per_node / machine.topology.dies_per_package;
  }
  std::vector<std::string> inputs() const { return jobs.files(); }
};

void check_options(const StudyContext& context, const JobsOptions& options) {
  const auto without_effect = [&](std::initializer_list<const char*> names, const char* with) {
    refuse_given(context.given, "run jobs: ", names, with);
  };
  if (options.jobs.trace.empty()) {
    without_effect({"largest-block"}, "without --trace");
  } else {
    without_effect({"count", "block", "blocks", "duration", "load"}, "with --trace");
  }
  if (context.out_folder.empty()) without_effect({"at"}, "without --out");
}

cluster::JobTrace trace_of(const StudyContext& context, const JobsOptions& options,
                           const cluster::PoolShape& shape) {
  const JobOptions& jobs = options.jobs;
  if (!jobs.trace.empty()) return cluster::read_jobs(jobs.trace, jobs.largest_block);
  return jobs.draw(options.count, jobs.arrivals(shape), context.seed);
}

// NPUs of a place by rank, numbered through the pool.
std::vector<int> npus_of(const cluster::PoolShape& shape, const cluster::Place& place,
                         std::vector<std::vector<char>>& taken) {
  std::vector<int> npus;
  for (const int node : cluster::node_of_ranks(place)) {
    const int in_pool = place.supernode * shape.nodes + node;
    auto& used = taken[static_cast<std::size_t>(in_pool)];
    const auto free = std::ranges::find(used, 0);
    *free = 1;
    npus.push_back(in_pool * shape.node_npus + static_cast<int>(free - used.begin()));
  }
  return npus;
}

double seconds(std::int64_t ms) {
  return static_cast<double>(ms) * 1e-3;
}

void write_jobs(const std::string& path, const cluster::JobTrace& trace,
                const cluster::AllocationResult& result) {
  std::string text = "job_id,submit_s,start_s,end_s,block,blocks,supernodes,nodes\n";
  for (std::size_t k = 0; k < trace.jobs.size(); ++k) {
    const cluster::Job& job = trace.jobs[k];
    const cluster::Placed& placed = result.jobs[k];
    std::string supernodes;
    std::size_t nodes = 0;
    for (const cluster::Place& place : placed.blocks) {
      supernodes += fmt::format("{}{}", supernodes.empty() ? "" : " ", place.supernode);
      nodes += place.nodes.size();
    }
    text += fmt::format("{},{:.3f},{:.3f},{:.3f},{},{},{},{}\n", job.id, seconds(job.submit_ms),
                        seconds(placed.start_ms), seconds(placed.end_ms), job.block, job.blocks, supernodes,
                        nodes);
  }
  write_file(path, text);
}

// A file for each job that runs at `at_ms`: rank, die. Which NPUs of a node a job has is settled in the order
// of jobs. Returns their names.
std::vector<std::string> write_maps(const std::string& folder, const cluster::JobTrace& trace,
                                    const cluster::AllocationResult& result, const cluster::PoolShape& shape,
                                    std::int64_t at_ms, int dies_of_npu) {
  std::vector<std::vector<char>> taken(
      static_cast<std::size_t>(shape.supernodes) * static_cast<std::size_t>(shape.nodes),
      std::vector<char>(static_cast<std::size_t>(shape.node_npus)));
  std::vector<std::string> written;
  for (std::size_t k = 0; k < trace.jobs.size() && written.size() < kMostMaps; ++k) {
    if (result.jobs[k].start_ms > at_ms || result.jobs[k].end_ms <= at_ms) continue;
    std::string text = "rank,die\n";
    int rank = 0;
    for (const cluster::Place& place : result.jobs[k].blocks) {
      for (const int npu : npus_of(shape, place, taken)) {
        for (int die = 0; die < dies_of_npu; ++die)
          text += fmt::format("{},{}\n", rank++, dies_of_npu * npu + die);
      }
    }
    written.push_back(fmt::format("map-{}.csv", k));
    write_file(folder + "/" + written.back(), text);
  }
  return written;
}

Row row_of(const cluster::JobTrace& trace, const cluster::AllocationResult& result,
           const cluster::PoolShape& shape, const cluster::BlockTraffic& traffic) {
  std::vector<double> waits;
  double first = 0, second = 0, count = 0, nodes = 0, fewest = 0, cut = 0;
  for (std::size_t k = 0; k < trace.jobs.size(); ++k) {
    const cluster::Job& job = trace.jobs[k];
    waits.push_back(seconds(result.jobs[k].start_ms - job.submit_ms));
    first += static_cast<double>(job.npus());
    second += static_cast<double>(job.npus()) * job.block;
    count += job.blocks;
    for (const cluster::Place& place : result.jobs[k].blocks) {
      nodes += static_cast<double>(place.nodes.size());
      const int least = (job.block + shape.node_npus - 1) / shape.node_npus;
      fewest += least;
      if (place.nodes.size() < 2) continue;
      // Without NPUs that a block has because they are given together.
      std::vector<int> ranks = cluster::node_of_ranks(place);
      ranks.resize(static_cast<std::size_t>(job.block));
      cut += job.block * traffic.cut(ranks);
    }
  }
  Row row{{"supernodes", shape.supernodes}, {"npus", shape.supernode_npus()}};
  row.set("jobs", static_cast<std::int64_t>(trace.jobs.size()));
  row.set("block_mean", first / count).set("block_loss", second / first / 2);
  row.set("allocation_rate", result.allocation_rate).set("utilisation", result.utilisation);
  row.set("waiting_share", result.waiting_share).set("fragmentation", result.fragmentation);
  row.set("wait_s", to_row(summarise(std::move(waits)))).set("nodes_over_fewest", nodes / fewest);
  row.set("cut_share", cut / first).set("moves", result.moves).set("moving_share", result.moving_share);
  row.set("span_h", static_cast<double>(result.end_ms - trace.jobs.front().submit_ms) / 3.6e6);
  return row;
}

StudyResult run(const StudyContext& watched, const JobsOptions& options) {
  StudyResult result;
  check_options(watched, options);
  StudyContext context = watched;
  std::optional<LaneTimeline> timeline = open_own_timeline(context, "jobs", "who has which NPUs");
  for (const std::string& file : options.jobs.files()) result.input_files.push_back(file);
  const cluster::BlockTraffic traffic(options.jobs.traffic);
  cluster::Policy policy{options.jobs.chosen_fit(), options.jobs.chosen_order(), &traffic, {}};
  if (options.migrate > Time{}) policy.migrate_ms = options.migrate.ps / 1'000'000'000;
  std::vector<cluster::PoolShape> shapes;
  for (const int npus : options.npus) shapes.push_back(options.jobs.shape(context.machine, npus, "run jobs"));
  for (std::size_t n = 0; n < shapes.size(); ++n) {
    const cluster::JobTrace trace = trace_of(context, options, shapes[n]);
    if (n == 0 && trace.left_out > 0)
      result.notes.push_back(fmt::format("{} records of {} are left out: they have no NPUs or never ran",
                                         trace.left_out, trace.format));
    options.jobs.check_blocks(trace.jobs, traffic, "run jobs");
    const auto all = static_cast<double>(trace.jobs.size());
    const auto go_on = [&](std::size_t started, std::int64_t) {
      context.progress.update(
          (static_cast<double>(n) + static_cast<double>(started) / all) / static_cast<double>(shapes.size()),
          Time{}, 0);
      return context.interrupted == 0;
    };
    std::optional<PoolTimeline> drawn;
    if (timeline && n == 0) drawn.emplace(*timeline, shapes[n]);
    const cluster::AllocationResult got =
        cluster::allocate(trace.jobs, shapes[n], policy, go_on, drawn ? &drawn->watch() : nullptr);
    if (!got.complete) {
      result.complete = false;
      break;
    }
    if (drawn) drawn->write([&](std::size_t job) { return trace.jobs[job].id; });
    if (!context.out_folder.empty()) {
      result.files.push_back(n == 0 ? "jobs.csv" : fmt::format("jobs-{}.csv", n + 1));
      write_jobs(context.out_folder + "/" + result.files.back(), trace, got);
      if (n == 0 && options.at > Time{}) {
        const std::vector<std::string> maps =
            write_maps(context.out_folder, trace, got, shapes[n], options.at.ps / 1'000'000'000,
                       context.machine.topology.dies_per_package);
        result.notes.push_back(fmt::format("{} jobs run at {:.0f} s: map-NUMBER.csv has their dies",
                                           maps.size(), options.at.us() * 1e-6));
        result.files.insert(result.files.end(), maps.begin(), maps.end());
      }
    }
    context.finish_row(result, row_of(trace, got, shapes[n], traffic));
  }
  if (!timeline || !result.complete) return result;
  timeline->finish();
  if (shapes.size() > 1) result.notes.emplace_back("the timeline shows the first row");
  return result;
}

constexpr std::array kJobsFields{
    Field{"supernodes", FieldType::integer, "of the pool"}.as_condition(),
    Field{"npus", FieldType::integer, "of a supernode", true}.as_condition(),
    Field{"jobs", FieldType::integer, "that ran", true},
    Field{"block_mean", FieldType::number, "NPUs of a block", true},
    Field{"block_loss", FieldType::number,
          "E[b^2] / 2 E[b]: NPUs that a supernode loses about where blocks come in order", true},
    Field{"allocation_rate", FieldType::ratio, "of all NPUs, held by jobs while another one waits", true},
    Field{"utilisation", FieldType::ratio, "the same from the first submission to the last end", true},
    Field{"waiting_share", FieldType::ratio, "of that time, in which a job waits"},
    Field{"fragmentation", FieldType::ratio,
          "while a job waits: of the free NPUs, those beyond the largest block that would find a place",
          true},
    Field{"wait_s", FieldType::object, "from a job's submission to its start", true, kSummaryParts},
    Field{"nodes_over_fewest", FieldType::number, "nodes of a block over the fewest that could hold it"},
    Field{"cut_share", FieldType::ratio, "of the traffic of blocks, between nodes"},
    Field{"moves", FieldType::integer, "blocks that were moved to make room"},
    Field{"moving_share", FieldType::ratio, "of all NPU time, in which jobs stood still or waited for that"},
    Field{"span_h", FieldType::number, "hours from the first submission to the last end"},
};

}  // namespace

const Study kJobsStudy{.name = "jobs",
                       .summary = "jobs of a cluster on supernodes: who waits, and what stays idle",
                       .fields = kJobsFields,
                       .options = options_of<JobsOptions, run>,
                       .coreless = true,
                       .supernodes = true,
                       .own_timeline = true,
                       .dies = false};

}  // namespace cm384::studies
