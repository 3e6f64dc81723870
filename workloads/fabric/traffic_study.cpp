// `cm384 run traffic`.
#include <fmt/format.h>

#include <array>

#include "base/text/error.h"
#include "base/text/output_file.h"
#include "system/observe/observers.h"
#include "ub_fabric/topology/kinds.h"
#include "workloads/fabric/traffic_bench.h"
#include "workloads/fabric/traffic_bounds.h"
#include "workloads/frame/confidence.h"
#include "workloads/studies.h"

namespace cm384::studies {
namespace {

using namespace cm384::literals;

struct TrafficOptions {
  Texts patterns{"uniform"};
  Reals loads{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9}, level_loads{1};
  std::string operation = "write";
  Bytes bytes = 512_B;
  int hotspots = 1;
  Time warm_up = 5_us;
  std::string translation = "warm";
  Time duration = 20_us;
  std::string messages;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("pattern", self.patterns, OneOf{{pattern_names().begin(), pattern_names().end()}},
          "where messages go, as in BookSim; hotspot: a fifth to the hot dies; tornado, neighbor: in every "
          "dimension of a grid of chips; permutation: randperm");
    visit("hotspots", self.hotspots, Range{1, 65'535},
          "how many dies are hot, die 0 and others evenly spread", Needs{"pattern", {"hotspot"}});
    visit("load", self.loads, Range{0.001, 1.0},
          "offered, as a share of the payload that a die's ports can carry; FROM..TO goes in steps of 0.1");
    visit(
        "level-load", self.level_loads, Range{0.001, 1.0},
        "what dies of service levels 0, 1, .. (ub.qos.die_levels) offer, as a share of --load; the last one "
        "holds for the rest; one row for each level");
    visit("operation", self.operation, OneOf{{"write", "read"}}, "what messages do");
    visit("bytes", self.bytes, Range{1_B, 1_MiB}, "of a message, in requests of at most 512 B");
    visit("warm-up", self.warm_up, Range{0_ps, 10_ms},
          "time before messages count: as long again until two times in a row have the same throughput and "
          "mean latency, at most eight times");
    visit("translation", self.translation, OneOf{{"warm", "cold"}},
          "translation caches begin with the pages that the traffic uses, or empty");
    visit("duration", self.duration, Range{100_ns, 100_ms},
          "time in which the messages that count are created");
    visit("messages", self.messages, Form{"FILE"},
          "write one line of CSV per message that counts; ending in .gz: compressed");
  }
};

constexpr std::array kTrafficLatency{
    Field{"mean", FieldType::number, "mean", true},
    Field{"p50", FieldType::number, "median"},
    Field{"p99", FieldType::number, "99th percentile", true},
    Field{"max", FieldType::number, "largest"},
};
constexpr std::array kTrafficFields{
    Field{"topology", FieldType::text, "kind", true}.as_condition(),
    Field{"dies", FieldType::integer, "that send and receive"}.as_condition(),
    Field{"pattern", FieldType::text, "where messages go", true}.as_condition(),
    Field{"operation", FieldType::text, "write or read"}.as_condition(),
    Field{"message_bytes", FieldType::bytes, "of a message"}.as_condition(),
    Field{"load", FieldType::number, "offered, as a share of what a die's ports carry", true}.as_condition(),
    Field{"level", FieldType::integer, "of service, of the dies that this is of; with --level-load"}
        .as_condition(),
    Field{"offered_GBps", FieldType::number, "payload created per die that sends"},
    Field{"accepted_load", FieldType::number, "completed while measured, as the same share", true},
    Field{"accepted_GBps", FieldType::number, "payload completed per die that sends"},
    Field{"accepted_ci95_GBps", FieldType::number,
          "half width of the 95 % confidence interval of offered less accepted, from twenty parts of the "
          "measured time"},
    Field{"latency_us", FieldType::object,
          "from a message's creation to its last byte at the target (write) or back (read), of all messages "
          "created while measured; of unfinished ones until the run ended",
          true, kTrafficLatency},
    Field{"completion_us", FieldType::object, "from a message's creation to its last response, likewise",
          false, kTrafficLatency},
    Field{
        "saturated", FieldType::boolean,
        "accepted is below offered by more than its confidence interval and by more than 0.5 %, or messages "
        "were left when the run ended; queues before the network then grow, and latencies with the length of "
        "the run",
        true},
    Field{"unfinished", FieldType::integer, "messages that count and were not done when the run ended"},
    Field{"messages", FieldType::integer, "that count"},
    Field{"warm_up_us", FieldType::number, "until messages counted"},
    Field{"translation_misses", FieldType::ratio, "walks of translation tables per request while measured",
          true},
    Field{"link_bound_load", FieldType::number,
          "load at which the busiest link is full if shortest ways share packets evenly: no simulation",
          true},
    Field{"controller_bound_load", FieldType::number,
          "load at which a die's controller issues no more requests"},
    Field{
        "bisection_GBps", FieldType::number,
        "one way, by wire rate, between halves of the dies: the smallest cut across the dimensions, pods or "
        "groups, of a topology from files across the distances that were tried"},
};

Row row_of(const Summary& s) {
  return {{"mean", s.mean}, {"p50", s.p50}, {"p99", s.p99}, {"max", s.max}};
}

class TrafficRows {
 public:
  TrafficRows(const StudyContext& context, const TrafficOptions& options, StudyResult& result)
      : context_(context), options_(options), result_(result) {
    if (context.machine.topology.dies() < 2) throw InputError("run traffic: needs two dies or more");
    if (context.given.contains("level-load") && !has_levels(context.machine))
      throw InputError(
          "run traffic: --level-load: all dies have one service level; allowed with several in "
          "ub.qos.die_levels");
    if (!options.messages.empty())
      file_ = std::make_unique<OutputFile>(options.messages, OutputFile::Compression::by_name);
    if (file_) file_->write("pattern,load,source,destination,bytes,created_ns,arrived_ns,completed_ns\n");
  }

  void run() {
    const double work = static_cast<double>(options_.patterns.size() * options_.loads.size());
    double done = 0;
    for (const std::string& name : options_.patterns) {
      const auto dies = static_cast<unsigned>(context_.machine.topology.dies());
      const Destinations destinations(pattern(name),
                                      {dies, context_.seed, static_cast<unsigned>(options_.hotspots),
                                       ub::grid_lengths(context_.machine.topology)});
      const TrafficBounds bounds =
          traffic_bounds(context_.machine, destinations, options_.operation == "write",
                         static_cast<int>(options_.bytes.count));
      for (const double load : options_.loads) {
        const TrafficReading reading = measure(destinations, load * bounds.capacity_GBps, done / work);
        count(reading);
        done += 1;
        context_.progress.update(done / work, result_.simulator.simulated, result_.simulator.events);
        if (!reading.complete) {
          result_.complete = false;
          return;
        }
        if (reading.messages.empty())
          throw InputError(
              "run traffic: no message was created in the time that counts; allowed: a longer --duration");
        add_rows(name, load, bounds, reading);
      }
    }
    if (file_) file_->finish();
  }

 private:
  TrafficReading measure(const Destinations& destinations, double offered, double before) {
    TrafficCase setting;
    setting.destinations = &destinations;
    setting.offered_GBps = offered;
    setting.writes = options_.operation == "write";
    setting.bytes = static_cast<int>(options_.bytes.count);
    setting.level_loads = options_.level_loads;
    setting.warm_up = options_.warm_up;
    setting.warm_translation = options_.translation == "warm";
    setting.measured = options_.duration;
    setting.drain = (options_.warm_up + options_.duration) * 8;
    setting.seed = context_.seed;
    setting.threads = context_.threads;
    setting.threads_why = context_.threads_why;
    setting.what_if_threads = context_.what_if_threads;
    setting.interrupted = &context_.interrupted;
    setting.progress = [this, before](Time now, std::uint64_t events) {
      context_.progress.update(before, result_.simulator.simulated + now, result_.simulator.events + events);
    };
    return run_traffic(context_.machine, setting);
  }
  void count(const TrafficReading& reading) {
    result_.simulator.events += reading.events;
    result_.simulator.packet_hops += reading.packet_hops;
    result_.simulator.simulated += reading.simulated;
    result_.simulator.count_threads(reading.threads, reading.threads_why);
    result_.simulator.count_what_if(reading.what_if);
  }

  void add_rows(const std::string& name, double load, const TrafficBounds& bounds,
                const TrafficReading& reading) {
    for (const TrafficMessage& m : reading.messages) {
      if (file_) write(name, load, m);
    }
    if (!context_.given.contains("level-load")) {
      context_.finish_row(result_, traffic_row(name, load, bounds, reading));
      return;
    }
    for (const TrafficReading::OfLevel& of : reading.levels) {
      Row row = traffic_row(name, of.offered_GBps / bounds.capacity_GBps, bounds, of.reading);
      row.set("level", of.level);
      context_.finish_row(result_, std::move(row));
    }
  }
  Row traffic_row(const std::string& name, double load, const TrafficBounds& bounds,
                  const TrafficReading& reading) const {
    return {{"topology", context_.machine.topology.kind},
            {"dies", context_.machine.topology.dies()},
            {"pattern", name},
            {"operation", options_.operation},
            {"message_bytes", options_.bytes.count},
            {"load", load},
            {"offered_GBps", reading.created_GBps},
            {"accepted_load", reading.accepted_GBps / bounds.capacity_GBps},
            {"accepted_GBps", reading.accepted_GBps},
            {"accepted_ci95_GBps", reading.accepted_ci95_GBps},
            {"latency_us", row_of(summarise(reading.latencies_us()))},
            {"completion_us", row_of(summarise(reading.completions_us()))},
            {"saturated", reading.saturated()},
            {"unfinished", static_cast<std::int64_t>(reading.unfinished())},
            {"messages", static_cast<std::int64_t>(reading.messages.size())},
            {"warm_up_us", reading.began.us()},
            {"translation_misses", reading.miss_share},
            {"link_bound_load", bounds.busiest_link_load < 0 ? Value() : Value(bounds.busiest_link_load)},
            {"controller_bound_load", bounds.controller_load > 1e6 ? Value() : Value(bounds.controller_load)},
            {"bisection_GBps", bounds.bisection_GBps}};
  }
  void write(const std::string& name, double load, const TrafficMessage& m) {
    const auto ns = [](Time t) { return t == Time::never() ? std::string() : fmt::format("{:.3f}", t.ns()); };
    file_->write(fmt::format("{},{},{},{},{},{},{},{}\n", name, load, m.source, m.destination,
                             options_.bytes.count, ns(m.created), ns(m.arrived), ns(m.completed)));
  }

  static bool has_levels(const hw::Machine& machine) {
    for (int die = 1; die < machine.topology.dies(); ++die) {
      if (machine.ub.qos.die_level(die) != machine.ub.qos.die_level(0)) return true;
    }
    return false;
  }

  const StudyContext& context_;
  const TrafficOptions& options_;
  StudyResult& result_;
  std::unique_ptr<OutputFile> file_;
};

StudyResult run(const StudyContext& context, const TrafficOptions& options) {
  StudyResult result;
  TrafficRows(context, options, result).run();
  return result;
}

}  // namespace

const Study kTrafficStudy{
    .name = "traffic",
    .summary = "synthetic traffic over the fabric alone: latency against load, saturation, bounds",
    .fields = kTrafficFields,
    .options = options_of<TrafficOptions, run>,
    .coreless = true,
    .dies = false};

}  // namespace cm384::studies
