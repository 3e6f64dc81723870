// `cm384 run jobs`: jobs of a cluster on one or several supernodes: who waits, and what stays idle. No
// machine is simulated; where a job lies can be given to a run of its traffic.
#include <fmt/format.h>

#include <array>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "base/text/error.h"
#include "base/text/output_file.h"
#include "workloads/cluster/allocation.h"
#include "workloads/frame/confidence.h"
#include "workloads/studies.h"

namespace cm384::studies {
namespace {

constexpr std::size_t kMostMaps = 10'000;

// NPUs of drawn blocks: a mean of 10.08 ([P] 6.1.2).
constexpr int kLargestDrawn = 64;
constexpr double kMeanDrawn = 10.08;

struct JobsOptions {
  std::string trace;
  int largest_block = 0;
  std::int64_t count = 20'000;
  std::string block = "powers:64:10.08";
  bool block_is_given = false;
  std::string duration = "lognormal:122:1485";
  int blocks = 1;
  double load = 0;
  Integers npus{0};
  int granule = 1;
  bool one_node = false;
  std::string fit = "best", order = "fcfs";
  Time at{};

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("trace", self.trace, Form{"FILE"},
          "recorded jobs: CSV with job_id,submit_s,npus,block,blocks,duration_s, or files of Acme, Helios, "
          "Philly, "
          "of which a GPU counts as an NPU");
    visit("largest-block", self.largest_block, Range{0, cluster::kMostBlock},
          "NPUs: a recorded job of more is several blocks, which may lie in several supernodes; 0: a job is "
          "one "
          "block");
    visit("count", self.count, Range{std::int64_t{1}, std::int64_t{5'000'000}}, "jobs that the seed draws");
    visit("block", self.block,
          Form{"fixed:N|uniform:LOW:HIGH|powers:LARGEST:MEAN", cluster::check_block_sizes},
          "NPUs of a block, which lies within one supernode; powers: of two, small ones the more often the "
          "smaller the mean is. The default is smaller where a supernode has fewer than 64");
    visit("blocks", self.blocks, Range{1, 10'000}, "of a job, which start together");
    visit("duration", self.duration,
          Form{"fixed:S|exponential:MEAN|lognormal:MEDIAN:MEAN", cluster::check_run_times},
          "seconds that a job runs; the default is that of Kalos' jobs");
    visit("load", self.load, Range{0.0, 10.0},
          "NPU time that drawn jobs ask for over what there is, arrivals of a Poisson process; 0: all are "
          "there at "
          "the begin");
    visit("npus", self.npus, Range{0, cluster::kMostBlock},
          "of a supernode, whole nodes; a row each; 0: as the machine has");
    visit("granule", self.granule, Range{1, 1024},
          "NPUs that are given together: 1, or what divides a node, such as "
          "8, whole nodes");
    visit("one-node", self.one_node, "a block that a node could hold lies in one");
    visit("fit", self.fit, OneOf{{"first", "best", "idlest"}},
          "supernode of a block: the first with room, the one with fewest free NPUs, with most");
    visit("order", self.order, OneOf{{"fcfs", "any"}},
          "who starts: the first that waits, others behind it; or any of the first 500 that fits, without "
          "reservation");
    visit("at", self.at, Range{Time{}, Time::never()},
          "with --out: the dies of each job that runs then, as `trace shape --map` takes them; 0s: none");
  }
  void follow(const Given& given) { block_is_given = given.contains("block"); }
  void settle(const hw::Machine& machine) {
    const hw::Topology& topology = machine.topology;
    const int most = topology.nodes * topology.dies_per_node / topology.dies_per_package;
    // Of the same shape on a smaller supernode: each size as often, of a largest that it holds.
    if (!block_is_given && most < kLargestDrawn) {
      const int largest = static_cast<int>(std::bit_floor(static_cast<unsigned>(std::max(1, most))));
      block = fmt::format("powers:{}:{:.4g}", largest, std::max(1.0, kMeanDrawn * largest / kLargestDrawn));
    }
    for (int& one : npus)
      if (one == 0)
        one = machine.topology.nodes * machine.topology.dies_per_node / machine.topology.dies_per_package;
  }
  std::vector<std::string> inputs() const {
    return trace.empty() ? std::vector<std::string>{} : std::vector{trace};
  }
};

cluster::PoolShape shape_of(const StudyContext& context, const JobsOptions& options, int npus) {
  const hw::Topology& topology = context.machine.topology;
  const auto refuse = [](const std::string& what) { throw InputError("run jobs: " + what); };
  if (topology.dies_per_node % topology.dies_per_package != 0)
    refuse(fmt::format("{} dies a node are no whole NPUs of {} dies", topology.dies_per_node,
                       topology.dies_per_package));
  cluster::PoolShape shape;
  shape.supernodes = topology.supernodes;
  shape.node_npus = topology.dies_per_node / topology.dies_per_package;
  if (npus == 0 || npus % shape.node_npus != 0)
    refuse(fmt::format("--npus {}: allowed: whole nodes of {} NPUs", npus, shape.node_npus));
  shape.nodes = npus / shape.node_npus;
  shape.granule = options.granule;
  shape.one_node = options.one_node;
  if (shape.node_npus % shape.granule != 0)
    refuse(
        fmt::format("--granule {}: allowed: what divides a node's {} NPUs", shape.granule, shape.node_npus));
  return shape;
}

void check_options(const StudyContext& context, const JobsOptions& options) {
  const auto without_effect = [&](std::initializer_list<const char*> names, const char* with) {
    for (const char* name : names)
      if (context.given.contains(name))
        throw InputError(fmt::format("run jobs: --{}: has no effect {}", name, with));
  };
  if (options.trace.empty()) {
    without_effect({"largest-block"}, "without --trace");
  } else {
    without_effect({"count", "block", "blocks", "duration", "load"}, "with --trace");
  }
  if (context.out_folder.empty()) without_effect({"at"}, "without --out");
  if (context.statistics != nullptr || context.observers != nullptr)
    throw InputError(
        "run jobs: no machine is simulated; allowed: without --stats, --record, --timeline, --explain, "
        "--wave");
}

cluster::JobTrace trace_of(const StudyContext& context, const JobsOptions& options,
                           const cluster::PoolShape& shape) {
  if (!options.trace.empty()) return cluster::read_jobs(options.trace, options.largest_block);
  cluster::DrawnJobs drawn;
  drawn.count = options.count;
  drawn.block = options.block;
  drawn.blocks = options.blocks;
  drawn.duration = options.duration;
  if (options.load > 0) {
    const double each = cluster::BlockSizes(options.block).mean() * options.blocks *
                        cluster::RunTimes(options.duration).mean_s();
    drawn.per_second = options.load * static_cast<double>(shape.npus()) / each;
  }
  return cluster::draw_jobs(drawn, context.seed);
}

// NPUs of a place, numbered through the pool: "0-7 12".
template <class Take>
void each_npu(const cluster::PoolShape& shape, const cluster::Place& place,
              std::vector<std::vector<char>>& taken, Take&& take) {
  for (const auto& [node, npus] : place.nodes) {
    auto& used = taken[static_cast<std::size_t>(place.supernode) * static_cast<std::size_t>(shape.nodes) +
                       static_cast<std::size_t>(node)];
    int left = npus;
    for (int k = 0; k < shape.node_npus && left > 0; ++k) {
      if (used[static_cast<std::size_t>(k)] != 0) continue;
      used[static_cast<std::size_t>(k)] = 1;
      --left;
      take((place.supernode * shape.nodes + node) * shape.node_npus + k);
    }
  }
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
      each_npu(shape, place, taken, [&](int npu) {
        for (int die = 0; die < dies_of_npu; ++die)
          text += fmt::format("{},{}\n", rank++, dies_of_npu * npu + die);
      });
    }
    written.push_back(fmt::format("map-{}.csv", k));
    write_file(folder + "/" + written.back(), text);
  }
  return written;
}

Row row_of(const cluster::JobTrace& trace, const cluster::AllocationResult& result,
           const cluster::PoolShape& shape) {
  std::vector<double> waits;
  double first = 0, second = 0, count = 0, nodes = 0, fewest = 0;
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
    }
  }
  Row row{{"supernodes", shape.supernodes}, {"npus", shape.supernode_npus()}};
  row.set("jobs", static_cast<std::int64_t>(trace.jobs.size()));
  row.set("block_mean", first / count).set("block_loss", second / first / 2);
  row.set("allocation_rate", result.allocation_rate).set("utilisation", result.utilisation);
  row.set("waiting_share", result.waiting_share).set("fragmentation", result.fragmentation);
  row.set("wait_s", to_row(summarise(std::move(waits)))).set("nodes_over_fewest", nodes / fewest);
  row.set("span_h", static_cast<double>(result.end_ms - trace.jobs.front().submit_ms) / 3.6e6);
  return row;
}

StudyResult run(const StudyContext& context, const JobsOptions& options) {
  StudyResult result;
  check_options(context, options);
  if (!options.trace.empty()) result.input_files.push_back(options.trace);
  std::vector<cluster::PoolShape> shapes;
  for (const int npus : options.npus) shapes.push_back(shape_of(context, options, npus));
  const auto fit = cluster::fit_of(options.fit).value();
  const auto order = options.order == "any" ? cluster::Order::any : cluster::Order::fcfs;
  for (std::size_t n = 0; n < shapes.size(); ++n) {
    const cluster::JobTrace trace = trace_of(context, options, shapes[n]);
    if (n == 0 && trace.left_out > 0)
      result.notes.push_back(fmt::format("{} records of {} are left out: without NPUs, or they never ran",
                                         trace.left_out, trace.format));
    const auto all = static_cast<double>(trace.jobs.size());
    const cluster::AllocationResult got =
        cluster::allocate(trace.jobs, shapes[n], fit, order, [&](std::size_t started, std::int64_t) {
          context.progress.update((static_cast<double>(n) + static_cast<double>(started) / all) /
                                      static_cast<double>(shapes.size()),
                                  Time{}, 0);
          return context.interrupted == 0;
        });
    if (!got.complete) {
      result.complete = false;
      break;
    }
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
    context.finish_row(result, row_of(trace, got, shapes[n]));
  }
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
    Field{"span_h", FieldType::number, "hours from the first submission to the last end"},
};

}  // namespace

const Study kJobsStudy{.name = "jobs",
                       .summary = "jobs of a cluster on supernodes: who waits, and what stays idle",
                       .fields = kJobsFields,
                       .options = options_of<JobsOptions, run>,
                       .coreless = true,
                       .supernodes = true};

}  // namespace cm384::studies
