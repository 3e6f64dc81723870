// `cm384 run reliability`: a run on whole supernodes for weeks: what fails, what is lost, how often to save.
// No machine is simulated.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/text/error.h"
#include "base/text/nearest_name.h"
#include "system/machine/inventory.h"
#include "workloads/cluster/reliability.h"
#include "workloads/frame/confidence.h"
#include "workloads/studies.h"

namespace cm384::studies {
namespace {

constexpr double kDay = 86'400, kHour = 3'600;  // s

struct ReliabilityOptions {
  std::string rates = "default";
  double days = 40;
  Integers interval{0};
  Time write = Time{20'000'000'000'000};
  Integers spares{1};
  int runs = 20;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("rates", self.rates, Form{"default|FILE"},
          "what fails how often, and how a run comes back: a table of the form of "
          "hw/reliability/supernode.toml");
    visit("days", self.days, Range{0.01, 36'500.0}, "that are looked at");
    visit("interval", self.interval, Range{0, 100'000'000},
          "seconds of work between two checkpoints, a row each; 0: sqrt(2 M d) of the mean time M between "
          "interruptions and "
          "the time d of a checkpoint");
    visit("write", self.write, Range{Time{1'000'000'000}, Time{100'000'000'000'000'000}},
          "that a checkpoint stops the run");
    visit("spares", self.spares, Range{0, 100'000},
          "nodes of each supernode that the run leaves free, a row each");
    visit("runs", self.runs, Range{1, 100'000},
          "courses, each with numbers of its own, that a row is the mean of");
  }
  std::vector<std::string> inputs() const {
    return rates == "default" ? std::vector<std::string>{} : std::vector{rates};
  }
};

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
  made.write = options.write.us() * 1e-6;
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
                            level->restart});
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
  row.set(
      "daly_goodput",
      rate == 0 ? Value() : Value(cluster::daly_goodput(1 / rate, of.interval, of.write, mean_restart(of))));
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

StudyResult run(const StudyContext& context, const ReliabilityOptions& options) {
  if (context.statistics != nullptr || context.observers != nullptr)
    throw InputError(
        "run reliability: no machine is simulated; allowed: without --stats, --record, --timeline, "
        "--explain, --wave");
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
      one.interval = interval > 0 ? interval
                     : rate == 0  ? one.wall
                                  : cluster::young_interval(1 / rate, one.write);
    }
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
      runs.push_back(
          cluster::run_reliability(one, context.seed * 1'000'003 + static_cast<std::uint64_t>(n), go_on));
      if (!runs.back().complete) {
        result.complete = false;
        return result;
      }
    }
    const int npus =
        one.supernodes * (one.nodes - one.spares) * topology.dies_per_node / topology.dies_per_package;
    context.finish_row(result, row_of(one, runs, npus));
  }
  return result;
}

constexpr std::array kCauseParts{
    Field{"name", FieldType::text, "of the part"},
    Field{"failures", FieldType::number, "of a course, mean"},
    Field{"interruptions", FieldType::number, "of them, those that stopped the run"},
    Field{"lost_npu_h", FieldType::number, "NPU hours of work thrown away, of detection and of restart"},
};
constexpr std::array kReliabilityFields{
    Field{"supernodes", FieldType::integer, "of the run"}.as_condition(),
    Field{"npus", FieldType::integer, "of the run, spare nodes apart", true}.as_condition(),
    Field{"spares", FieldType::integer, "nodes of each supernode", true}.as_condition(),
    Field{"interval_s", FieldType::number, "of work between two checkpoints", true}.as_condition(),
    Field{"mtbf_h", FieldType::number,
          "mean time between interruptions by the rates; none: nothing interrupts", true},
    Field{"failures", FieldType::number, "of a course, spare nodes' as well"},
    Field{"interruptions", FieldType::number, "of a course", true},
    Field{"goodput", FieldType::object, "useful share of the time: work that was saved, at full speed", true,
          kSummaryParts},
    Field{"daly_goodput", FieldType::ratio, "the same by Daly's closed form: a node at hand, nothing slow",
          true},
    Field{"availability", FieldType::ratio, "share of time in which the run works or saves", true},
    Field{"redo", FieldType::ratio, "work and checkpoints thrown away", true},
    Field{"checkpoint", FieldType::ratio, "checkpoints", true},
    Field{"detection", FieldType::ratio, "from a fault until it is known"},
    Field{"restart", FieldType::ratio, "from then until the run computes again", true},
    Field{"waiting", FieldType::ratio, "for a node, with all spares away", true},
    Field{"slow", FieldType::ratio, "what slow parts took"},
    Field{"short_of_spares", FieldType::ratio, "in which a supernode has more nodes away than spares"},
    Field{"causes", FieldType::list, "by part", false, kCauseParts},
};

}  // namespace

const Study kReliabilityStudy{.name = "reliability",
                              .summary = "a run on whole supernodes for weeks: failures, spares, checkpoints",
                              .fields = kReliabilityFields,
                              .options = options_of<ReliabilityOptions, run>,
                              .coreless = true,
                              .supernodes = true};

}  // namespace cm384::studies
