// `cm384 run reliability`: a run on whole supernodes for weeks, or jobs that come and go for months: what
// fails, what is lost, how often to save. No machine is simulated.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text/error.h"
#include "base/text/nearest_name.h"
#include "system/machine/inventory.h"
#include "workloads/cluster/job_mix.h"
#include "workloads/cluster/job_options.h"
#include "workloads/cluster/pool_timeline.h"
#include "workloads/cluster/reliability.h"
#include "workloads/frame/confidence.h"
#include "workloads/studies.h"

namespace cm384::studies {
namespace {

constexpr double kDay = 86'400, kHour = 3'600;  // s
constexpr std::int64_t kMostJobs = 5'000'000;   // of a course

struct ReliabilityOptions {
  std::string rates = "default";
  double days = 40;
  Integers interval{0};
  Time write = Time{20'000'000'000'000};
  Time beside{};
  Bytes state{};
  Bandwidth card{25'000'000'000}, store{};
  Integers spares{1};
  int runs = 20;
  JobOptions jobs;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("rates", self.rates, Form{"default|FILE"},
          "what fails how often, and how a run comes back: a table of the form of "
          "hw/reliability/supernode.toml");
    visit("days", self.days, Range{0.01, 36'500.0}, "that are looked at");
    visit("interval", self.interval, Range{0, 100'000'000},
          "seconds of work between two checkpoints, a row each; 0: sqrt(2 M d) of the mean time M between "
          "interruptions and "
          "the time d that a checkpoint stops the run. Never shorter than what is written beside work");
    visit("write", self.write, Range{Time{1'000'000'000}, Time{100'000'000'000'000'000}},
          "that a checkpoint stops the run");
    visit("beside", self.beside, Range{Time{}, Time{100'000'000'000'000'000}},
          "that it is written after these, beside work; it counts from then on");
    visit("state", self.state, Range{Bytes{}, Bytes{1'000'000'000'000}},
          "bytes of an NPU's checkpoint, which nodes' cards write over the VPC plane (checkpoint_GB of `run "
          "train`): in place of --write, or with --write given in place of --beside; 0B: not by bytes");
    visit("card-rate", self.card, Range{Bandwidth{1'000'000}, Bandwidth{1'000'000'000'000}},
          "of a node's card that checkpoints get ([P] 3.2: 50 GB/s each way; half of it: assumed)");
    visit("store-rate", self.store, Range{Bandwidth{}, Bandwidth{1'000'000'000'000'000}},
          "that a job's checkpoint gets of the store behind the cards, such as 2.5GB/s of an OBS bucket ([P] "
          "table 2); 0GB/s: no limit");
    visit("spares", self.spares, Range{0, 100'000},
          "nodes of each supernode that the run leaves free, a row each");
    visit("runs", self.runs, Range{1, 100'000},
          "courses, each with random numbers of its own, that a row averages");
    JobOptions::describe(self.jobs, visit,
                         "NPU time that drawn jobs ask for over the NPU time available, arrivals as a "
                         "Poisson process; 0, and no --trace: no jobs, one run has all nodes but the spares");
  }
  void follow(const Given& given) { jobs.follow(given); }
  void settle(const hw::Machine& machine) { jobs.settle(machine); }
  std::vector<std::string> inputs() const {
    std::vector<std::string> files = jobs.files();
    if (rates != "default") files.push_back(rates);
    return files;
  }
  bool has_jobs() const { return jobs.load > 0 || !jobs.trace.empty(); }
};

double in_seconds(Time time) {
  return time.us() * 1e-6;
}

// What a checkpoint of `npus` takes, at most `npus_of_card` of a node.
struct CheckpointTime {
  double stops = 0, beside = 0;  // s
};
CheckpointTime checkpoint_time(const StudyContext& context, const ReliabilityOptions& options,
                               std::int64_t npus, int npus_of_card) {
  if (options.state.count == 0) return {in_seconds(options.write), in_seconds(options.beside)};
  const auto bytes = static_cast<double>(options.state.count);
  double written = bytes * npus_of_card / static_cast<double>(options.card.bytes_per_second);
  if (options.store.bytes_per_second > 0)
    written = std::max(
        written, bytes * static_cast<double>(npus) / static_cast<double>(options.store.bytes_per_second));
  if (context.given.contains("write")) return {in_seconds(options.write), written};
  return {written, 0};
}

void check_options(const StudyContext& context, const ReliabilityOptions& options) {
  const auto without_effect = [&](std::initializer_list<const char*> names, const char* with) {
    refuse_given(context.given, "run reliability: ", names, with);
  };
  if (options.state.count > 0) {
    without_effect({"beside"}, "with --state");
  } else {
    without_effect({"card-rate", "store-rate"}, "without --state");
  }
  if (!options.jobs.trace.empty()) {
    without_effect({"block", "blocks", "duration", "load"}, "with --trace");
  } else {
    without_effect({"largest-block"}, "without --trace");
  }
  if (!options.has_jobs())
    without_effect({"block", "blocks", "duration", "granule", "one-node", "fit", "order", "traffic"},
                   "without --load or --trace");
}

cluster::ReliabilityCase case_of(const StudyContext& context, const cluster::ReliabilityTable& table,
                                 const ReliabilityOptions& options, int spares) {
  const hw::Topology& topology = context.machine.topology;
  cluster::ReliabilityCase made;
  made.supernodes = topology.supernodes;
  made.nodes = topology.nodes;
  made.spares = spares;
  if (spares >= made.nodes)
    throw InputError(fmt::format(
        "run reliability: --spares {}: allowed: fewer than the {} nodes of a supernode", spares, made.nodes));
  made.wall = options.days * kDay;
  const int node_npus = topology.dies_per_node / topology.dies_per_package;
  const auto npus = std::int64_t{made.supernodes} * (made.nodes - spares) * node_npus;
  const CheckpointTime checkpoint = checkpoint_time(context, options, npus, node_npus);
  made.write = checkpoint.stops;
  made.beside = checkpoint.beside;
  const std::vector<supernode::Counted> counts = supernode::inventory(context.machine);
  for (const cluster::FailingPart& part : table.parts) {
    const auto count = std::ranges::find(counts, part.each, &supernode::Counted::name);
    if (count == counts.end()) {
      std::vector<std::string> names;
      for (const supernode::Counted& one : counts) names.push_back(one.name);
      throw InputError(fmt::format("{}: {}: '{}' is nothing that `cm384 machine count` shows{}", table.name,
                                   part.name, part.each, hw::suggestion(part.each, names)));
    }
    const auto level = std::ranges::find(table.levels, part.level, &cluster::RecoveryLevel::name);
    made.hazards.push_back({part.name, static_cast<double>(count->count) * part.fit * 1e-9 / kHour,
                            part.interrupts, part.slows, part.repair * kHour, level->detection,
                            level->restart,
                            part.each == "packages" || part.each == "dies" || part.each == "hbm_stacks"});
  }
  return made;
}

// Seconds of detection and restart, by how often each cause interrupts.
double mean_restart(const cluster::ReliabilityCase& of) {
  double sum = 0, weight = 0;
  for (const cluster::Hazard& hazard : of.hazards) {
    const double rate = hazard.per_second * hazard.interrupts;
    sum += rate * (hazard.detection + hazard.restart);
    weight += rate;
  }
  return weight == 0 ? 0 : sum / weight;
}

Row row_of(const cluster::ReliabilityCase& of, const std::vector<cluster::ReliabilityRun>& runs, int npus) {
  const auto count = static_cast<double>(runs.size());
  const double rate = cluster::interruptions_per_second(of);
  cluster::ReliabilityShares sum;
  std::vector<double> goodput;
  double stops = 0, failures = 0, without = 0;
  Rows causes;
  for (const cluster::ReliabilityRun& run : runs) {
    const cluster::ReliabilityShares& s = run.shares;
    goodput.push_back(s.useful);
    sum.redo += s.redo / count;
    sum.checkpoint += s.checkpoint / count;
    sum.detection += s.detection / count;
    sum.restart += s.restart / count;
    sum.waiting += s.waiting / count;
    sum.slow += s.slow / count;
    without += run.short_of_spares / count;
  }
  for (std::size_t n = 0; n < of.hazards.size(); ++n) {
    double failed = 0, stopped = 0, lost = 0;
    for (const cluster::ReliabilityRun& run : runs) {
      failed += static_cast<double>(run.failures[n]) / count;
      stopped += static_cast<double>(run.interruptions[n]) / count;
      lost += run.lost[n] / count;
    }
    failures += failed;
    stops += stopped;
    causes.push_back(Row{{"name", of.hazards[n].name},
                         {"failures", failed},
                         {"interruptions", stopped},
                         {"lost_npu_h", lost / kHour * npus}});
  }
  Row row{{"supernodes", of.supernodes}, {"npus", npus}, {"spares", of.spares}, {"interval_s", of.interval}};
  row.set("mtbf_h", rate == 0 ? Value() : Value(1 / rate / kHour))
      .set("failures", failures)
      .set("interruptions", stops);
  row.set("goodput", to_row(summarise(std::move(goodput))));
  row.set("daly_goodput", rate == 0 ? Value()
                                    : Value(cluster::daly_goodput(1 / rate, of.interval, of.write,
                                                                  mean_restart(of), of.beside)));
  row.set("availability", 1 - sum.detection - sum.restart - sum.waiting);
  row.set("redo", sum.redo)
      .set("checkpoint", sum.checkpoint)
      .set("detection", sum.detection)
      .set("restart", sum.restart);
  row.set("waiting", sum.waiting)
      .set("slow", sum.slow)
      .set("short_of_spares", without)
      .set("causes", std::move(causes));
  return row;
}

struct MixRow {
  std::vector<cluster::JobMixRun> runs;
  const cluster::JobMixCase& of;
  double interval;  // s; 0: each job's own

  // Mean over runs.
  template <class Get>
  double mean(Get&& get) const {
    double sum = 0;
    for (const cluster::JobMixRun& run : runs) sum += get(run);
    return sum / static_cast<double>(runs.size());
  }
  template <class Get>
  double mean_of_classes(Get&& get) const {
    return mean([&](const cluster::JobMixRun& run) {
      double sum = 0;
      for (const cluster::MixClass& one : run.classes) sum += static_cast<double>(get(one));
      return sum;
    });
  }

  Row row() const;
  Rows sizes() const;
  Rows causes() const;
};

Rows MixRow::sizes() const {
  std::map<int, cluster::MixClass> sums;
  for (const cluster::JobMixRun& run : runs) {
    for (const cluster::MixClass& one : run.classes) {
      cluster::MixClass& sum = sums[one.npus];
      sum.started += one.started;
      sum.finished += one.finished;
      sum.interruptions += one.interruptions;
      sum.useful += one.useful;
      sum.redo += one.redo;
      sum.checkpoint += one.checkpoint;
      sum.detection += one.detection;
      sum.restart += one.restart;
      sum.slow += one.slow;
      sum.waiting += one.waiting;
      sum.queued += one.queued;
    }
  }
  const auto count = static_cast<double>(runs.size());
  Rows rows;
  for (const auto& [npus, one] : sums) {
    const double time = one.held() + one.waiting, down = one.detection + one.restart + one.waiting;
    Row row{{"npus", npus}, {"jobs", static_cast<double>(one.started) / count}};
    row.set("finished", static_cast<double>(one.finished) / count);
    row.set("interruptions", static_cast<double>(one.interruptions) / count);
    row.set("goodput", time == 0 ? Value() : Value(one.useful / time));
    row.set("availability", time == 0 ? Value() : Value(1 - down / time));
    row.set("lost_npu_h", (one.redo + one.detection + one.restart) / count / kHour);
    row.set("waiting_npu_h", one.waiting / count / kHour);
    row.set("queue_s", one.started == 0 ? Value() : Value(one.queued / static_cast<double>(one.started)));
    rows.push_back(std::move(row));
  }
  return rows;
}

Rows MixRow::causes() const {
  Rows rows;
  for (std::size_t n = 0; n < of.hazards.size(); ++n)
    rows.push_back(Row{
        {"name", of.hazards[n].name},
        {"failures", mean([&](const auto& run) { return static_cast<double>(run.failures[n]); })},
        {"interruptions", mean([&](const auto& run) { return static_cast<double>(run.interruptions[n]); })},
        {"lost_npu_h", mean([&](const auto& run) { return run.lost[n] / kHour; })}});
  return rows;
}

Row MixRow::row() const {
  using cluster::MixClass;
  const double all = of.wall * static_cast<double>(of.shape.npus());
  std::vector<double> goodput;
  for (const cluster::JobMixRun& run : runs) {
    double useful = 0;
    for (const MixClass& one : run.classes) useful += one.useful;
    goodput.push_back(useful / all);
  }
  const auto share = [&](double MixClass::*part) {
    return mean_of_classes([&](const MixClass& one) { return one.*part; }) / all;
  };
  const double held = mean_of_classes([](const MixClass&one) { return one.held(); }) / all,
               detection = share(&MixClass::detection), restart = share(&MixClass::restart),
               waiting = share(&MixClass::waiting);
  Row row{{"supernodes", of.shape.supernodes}, {"npus", of.shape.npus()}, {"spares", of.spares}};
  if (interval > 0) row.set("interval_s", interval);
  row.set("failures", mean([](const auto& run) {
            return static_cast<double>(
                std::accumulate(run.failures.begin(), run.failures.end(), std::int64_t{0}));
          }));
  row.set("interruptions", mean_of_classes([](const MixClass& one) { return one.interruptions; }));
  row.set("goodput", to_row(summarise(std::move(goodput))));
  row.set("availability",
          held == 0 ? Value() : Value(1 - (detection + restart + waiting) / (held + waiting)));
  row.set("redo", share(&MixClass::redo)).set("checkpoint", share(&MixClass::checkpoint));
  row.set("detection", detection).set("restart", restart).set("waiting", waiting);
  row.set("slow", share(&MixClass::slow)).set("utilisation", held);
  row.set("idle", mean([](const auto& run) { return run.idle; }));
  row.set("away", mean([](const auto& run) { return run.away; }));
  row.set("jobs", mean_of_classes([](const MixClass& one) { return one.started; }));
  row.set("finished", mean_of_classes([](const MixClass& one) { return one.finished; }));
  row.set("causes", causes()).set("sizes", sizes());
  return row;
}

// Jobs of a course: the trace's, or as many as arrive until its end.
std::vector<cluster::Job> jobs_of(const ReliabilityOptions& options, const cluster::JobMixCase& of,
                                  const std::vector<cluster::Job>& recorded, std::uint64_t seed) {
  if (!recorded.empty()) return recorded;
  const double per_second = options.jobs.arrivals(of.shape), mean = per_second * of.wall,
               most = mean + 6 * std::sqrt(mean) + 6;
  if (most > static_cast<double>(kMostJobs))
    throw InputError(
        fmt::format("run reliability: about {:.0f} jobs arrive in {:g} days; allowed: {}: fewer days, a "
                    "smaller --load, or "
                    "longer or larger jobs",
                    mean, options.days, kMostJobs));
  std::vector<cluster::Job> jobs = options.jobs.draw(static_cast<std::int64_t>(most), per_second, seed).jobs;
  std::erase_if(
      jobs, [&](const cluster::Job& job) { return static_cast<double>(job.submit_ms) * 1e-3 >= of.wall; });
  return jobs;
}

// `timeline` of the first course of the first row; null: nobody asked.
void run_jobs(const StudyContext& context, const ReliabilityOptions& options,
              const std::vector<cluster::ReliabilityCase>& cases, LaneTimeline* timeline,
              StudyResult& result) {
  const hw::Topology& topology = context.machine.topology;
  std::vector<cluster::Job> recorded;
  for (const std::string& file : options.jobs.files()) result.input_files.push_back(file);
  const cluster::BlockTraffic traffic(options.jobs.traffic);
  if (!options.jobs.trace.empty()) {
    recorded = cluster::read_jobs(options.jobs.trace, options.jobs.largest_block).jobs;
  }
  const double all = static_cast<double>(cases.size()) * options.runs;
  double done = 0;
  for (const cluster::ReliabilityCase& one : cases) {
    cluster::JobMixCase of;
    of.hazards = one.hazards;
    of.shape = options.jobs.shape(context.machine,
                                  topology.nodes * topology.dies_per_node / topology.dies_per_package,
                                  "run reliability");
    of.fit = options.jobs.chosen_fit();
    of.order = options.jobs.chosen_order();
    of.traffic = &traffic;
    of.spares = one.spares;
    of.wall = one.wall;
    of.save = [&](const cluster::Job& job) -> cluster::SaveTimes {
      const CheckpointTime time =
          checkpoint_time(context, options, job.npus(), std::min(job.block, of.shape.node_npus));
      const double rate = cluster::interruptions_per_second(of, job);
      const double interval = one.interval > 0 ? one.interval
                              : rate == 0      ? one.wall
                                               : cluster::young_interval(1 / rate, time.stops);
      return {std::max(interval, time.beside), time.stops, time.beside};
    };
    MixRow row{{}, of, one.interval};
    for (int n = 0; n < options.runs; ++n, ++done) {
      const auto go_on = [&] {
        context.progress.update(done / all, Time{}, 0);
        return context.interrupted == 0;
      };
      const std::uint64_t seed = context.seed * 1'000'003 + static_cast<std::uint64_t>(n);
      const std::vector<cluster::Job> jobs = jobs_of(options, of, recorded, seed);
      options.jobs.check_blocks(jobs, traffic, "run reliability");
      std::optional<PoolTimeline> drawn;
      if (timeline != nullptr && done == 0) drawn.emplace(*timeline, of.shape);
      row.runs.push_back(cluster::run_job_mix(jobs, of, seed, go_on, drawn ? &drawn->watch() : nullptr));
      if (drawn) drawn->write([&](std::size_t job) { return jobs[job].id; });
      if (!row.runs.back().complete) {
        result.complete = false;
        return;
      }
    }
    context.finish_row(result, row.row());
  }
}

void finish_timeline(std::optional<LaneTimeline>& timeline, std::size_t rows,
                     const ReliabilityOptions& options, StudyResult& result) {
  if (!timeline || !result.complete) return;
  timeline->finish();
  if (rows > 1 || options.runs > 1)
    result.notes.push_back(
        fmt::format("the timeline shows the first course{}", rows > 1 ? " of the first row" : ""));
  if (time_of_seconds(options.days * 86'400) == Time::never())
    result.notes.emplace_back("the timeline ends after 106 days");
}

StudyResult run(const StudyContext& watched, const ReliabilityOptions& options) {
  check_options(watched, options);
  StudyContext context = watched;
  std::optional<LaneTimeline> timeline = open_own_timeline(context, "reliability", "what a run or jobs did");
  StudyResult result;
  if (options.rates != "default") result.input_files.push_back(options.rates);
  const cluster::ReliabilityTable table = cluster::ReliabilityTable::load(options.rates);
  if (!table.note.empty()) result.notes.push_back(table.note);
  const hw::Topology& topology = context.machine.topology;
  std::vector<cluster::ReliabilityCase> cases;
  // A single node has none to spare, where nobody asks for it.
  const bool alone = topology.nodes < 2 && !context.given.contains("spares");
  for (const int spares : alone ? Integers{0} : options.spares) {
    for (const int interval : options.interval) {
      cluster::ReliabilityCase& one = cases.emplace_back(case_of(context, table, options, spares));
      const double rate = cluster::interruptions_per_second(one);
      one.interval = interval > 0 ? std::max<double>(interval, one.beside)
                     : rate == 0  ? std::max(one.wall, one.beside)
                                  : cluster::best_interval(1 / rate, one.write, one.beside);
      if (options.has_jobs()) one.interval = interval;
    }
  }
  if (options.has_jobs()) {
    run_jobs(context, options, cases, timeline ? &*timeline : nullptr, result);
    finish_timeline(timeline, cases.size(), options, result);
    return result;
  }
  const double all = static_cast<double>(cases.size()) * options.runs;
  double done = 0;
  for (const cluster::ReliabilityCase& one : cases) {
    std::vector<cluster::ReliabilityRun> runs;
    for (int n = 0; n < options.runs; ++n, ++done) {
      const auto go_on = [&] {
        context.progress.update(done / all, Time{}, 0);
        return context.interrupted == 0;
      };
      // The same courses for all rows, so that they differ by what the rows are of.
      std::optional<CourseTimeline> drawn;
      if (timeline && done == 0) drawn.emplace(*timeline, one);
      runs.push_back(cluster::run_reliability(one, context.seed * 1'000'003 + static_cast<std::uint64_t>(n),
                                              go_on, drawn ? &drawn->watch() : nullptr));
      if (drawn) drawn->write();
      if (!runs.back().complete) {
        result.complete = false;
        return result;
      }
    }
    const int npus =
        one.supernodes * (one.nodes - one.spares) * topology.dies_per_node / topology.dies_per_package;
    context.finish_row(result, row_of(one, runs, npus));
  }
  finish_timeline(timeline, cases.size(), options, result);
  return result;
}

constexpr std::array kCauseParts{
    Field{"name", FieldType::text, "of the part"},
    Field{"failures", FieldType::number, "of a course, mean"},
    Field{"interruptions", FieldType::number, "of them, those that stopped the run"},
    Field{"lost_npu_h", FieldType::number, "NPU hours of work thrown away, of detection and of restart"},
};
constexpr std::array kSizeParts{
    Field{"npus", FieldType::integer, "of a job at most, more than half of it"},
    Field{"jobs", FieldType::number, "that started in a course"},
    Field{"finished", FieldType::number, "of them, that ended"},
    Field{"interruptions", FieldType::number, "of a course"},
    Field{"goodput", FieldType::ratio, "useful share of their NPU time from their starts on"},
    Field{"availability", FieldType::ratio, "share of it in which they work or save"},
    Field{"lost_npu_h", FieldType::number, "NPU hours of work thrown away, of detection and of restart"},
    Field{"waiting_npu_h", FieldType::number, "NPU hours without nodes after interruptions"},
    Field{"queue_s", FieldType::number, "from submission to the first start, mean"},
};
constexpr std::array kReliabilityFields{
    Field{"supernodes", FieldType::integer, "of the run, or of the pool that jobs come to"}.as_condition(),
    Field{"npus", FieldType::integer, "of the run, spare nodes apart; of the pool, all", true}.as_condition(),
    Field{"spares", FieldType::integer, "nodes of each supernode", true}.as_condition(),
    Field{"interval_s", FieldType::number,
          "of work between two checkpoints; none: each job has one of its own", true}
        .as_condition(),
    Field{"mtbf_h", FieldType::number,
          "mean time between interruptions by the rates; none: nothing interrupts", true},
    Field{"failures", FieldType::number, "of a course, spare nodes' as well"},
    Field{"interruptions", FieldType::number, "of a course", true},
    Field{"goodput", FieldType::object,
          "useful share of the time: work that was saved, at full speed; of jobs: of all NPU time, as the "
          "other shares",
          true, kSummaryParts},
    Field{"daly_goodput", FieldType::ratio, "the same by Daly's closed form: a node at hand, nothing slow",
          true},
    Field{"availability", FieldType::ratio,
          "share of time in which the run works or saves; of jobs: of their time from their starts on", true},
    Field{"redo", FieldType::ratio, "work and checkpoints thrown away", true},
    Field{"checkpoint", FieldType::ratio, "checkpoints", true},
    Field{"detection", FieldType::ratio, "from a fault until it is known"},
    Field{"restart", FieldType::ratio, "from then until the run computes again", true},
    Field{"waiting", FieldType::ratio, "for a node, with all spares away", true},
    Field{"slow", FieldType::ratio, "what slow parts took"},
    Field{"short_of_spares", FieldType::ratio, "in which a supernode has more nodes away than spares"},
    Field{"utilisation", FieldType::ratio, "held by jobs"},
    Field{"idle", FieldType::ratio, "held by no job, spare nodes as well"},
    Field{"away", FieldType::ratio, "of nodes that are repaired or wait for it"},
    Field{"jobs", FieldType::number, "that started in a course"},
    Field{"finished", FieldType::number, "of them, that ended"},
    Field{"causes", FieldType::list, "by part", false, kCauseParts},
    Field{"sizes", FieldType::list, "of jobs, by powers of two", false, kSizeParts},
};

}  // namespace

const Study kReliabilityStudy{
    .name = "reliability",
    .summary = "a run, or jobs, on supernodes for weeks: failures, spares, checkpoints",
    .fields = kReliabilityFields,
    .options = options_of<ReliabilityOptions, run>,
    .coreless = true,
    .supernodes = true,
    .own_timeline = true,
    .dies = false};

}  // namespace cm384::studies
