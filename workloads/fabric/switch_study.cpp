// `cm384 run switch`.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text/error.h"
#include "system/observe/observers.h"
#include "workloads/fabric/switch_bench.h"
#include "workloads/studies.h"

namespace cm384::studies {
namespace {

// Packets for one measurement of the saturation throughput.
constexpr std::uint64_t kSaturationPackets = 40'000;

struct SwitchOptions {
  std::string model = "tlm";
  Texts patterns{"uniform"};
  Reals loads{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9};
  int ports = 16;
  int lanes = 2;
  Bytes bytes = 512_B;
  int packets = 20'000;
  bool isolation = false;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("model", self.model, OneOf{{"tlm", "rtl", "both"}},
          "transaction-level chip, RTL, or both and the difference");
    visit("pattern", self.patterns, OneOf{{pattern_names().begin(), pattern_names().end()}},
          "where packets go; hotspot: a fifth to port 0; tornado: half way round; permutation: randperm");
    visit("load", self.loads, Range{0.01, 1.0},
          "as a share of the model's own saturation throughput; FROM..TO goes in steps of 0.1");
    visit("ports", self.ports, Range{2, 48}, "of the chip");
    visit("lanes", self.lanes, Range{1, 8}, "virtual lanes");
    visit("bytes", self.bytes, Range{1_B, 512_B}, "written by each packet");
    visit("packets", self.packets, Range{100, 100'000'000}, "counted in each row");
    visit("isolation", self.isolation,
          "measure each row once more while lane 0's receivers return no credits");
  }
};

constexpr std::array kSwitchLatency{
    Field{"mean", FieldType::number, "mean", true},
    Field{"p50", FieldType::number, "median"},
    Field{"p99", FieldType::number, "99th percentile", true},
};
constexpr std::array kDifference{
    Field{"mean", FieldType::ratio, "of the means", true},
    Field{"p50", FieldType::ratio, "of the medians"},
    Field{"p99", FieldType::ratio, "of the 99th percentiles", true},
};
constexpr std::array kSwitchFields{
    Field{"model", FieldType::text, "tlm or rtl", true}.as_condition(),
    Field{"pattern", FieldType::text, "where packets go", true}.as_condition(),
    Field{"ports", FieldType::integer, "of the chip"}.as_condition(),
    Field{"lanes", FieldType::integer, "virtual lanes"}.as_condition(),
    Field{"load", FieldType::number, "offered, as a share of the saturation throughput", true}.as_condition(),
    Field{"latency_ns", FieldType::object,
          "of a packet from its creation to its last flit's leaving the chip", true, kSwitchLatency},
    Field{"chip_latency_ns", FieldType::object, "of that, from its head at the chip", false, kSwitchLatency},
    Field{"throughput", FieldType::number, "flits delivered, as a share of what all links carry", true},
    Field{"saturation", FieldType::number, "throughput under unlimited load", true},
    Field{"jain", FieldType::number, "Jain's fairness index over the ports that send"},
    Field{"isolation", FieldType::number,
          "mean latency of the other lanes while lane 0 stands, over what it was"},
    Field{"difference", FieldType::object, "latency of RTL over that of the model, less 1", true,
          kDifference},
    Field{"saturation_difference", FieldType::ratio, "saturation of RTL over that of the model, less 1"},
};

Row latencies(const Summary& s) {
  return {{"mean", s.mean}, {"p50", s.p50}, {"p99", s.p99}};
}

Row difference(const Summary& of, const Summary& to) {
  return {{"mean", of.mean / to.mean - 1}, {"p50", of.p50 / to.p50 - 1}, {"p99", of.p99 / to.p99 - 1}};
}

class SwitchRows {
 public:
  SwitchRows(const StudyContext& context, const SwitchOptions& options, StudyResult& result)
      : context_(context), options_(options), result_(result) {
    if (options.model != "rtl") models_.push_back(false);
    if (options.model != "tlm") models_.push_back(true);
    setting_.ports = static_cast<unsigned>(options.ports);
    setting_.lanes = static_cast<unsigned>(options.lanes);
    setting_.bytes = static_cast<int>(options.bytes.count);
    if (options.isolation && setting_.lanes < 2)
      throw InputError("run switch: --isolation needs two lanes or more");
    setting_.seed = context.seed;
    if (context.observers != nullptr) watch(context.observers->request());
    work_ = static_cast<double>(options.patterns.size() * models_.size() * (options.loads.size() + 1));
  }

  void run() {
    for (const auto& name : options_.patterns) {
      setting_.pattern = pattern(name);
      std::vector<double> saturation;
      for (const bool rtl : models_) {
        saturation.push_back(measure_saturation(rtl));
        if (stopped()) return;
      }
      for (const double load : options_.loads) {
        std::vector<SwitchReading> readings;
        for (std::size_t m = 0; m < models_.size(); ++m) {
          if (models_[m] && !waves_.empty()) setting_.waves = fmt::format("{}.{}-{}.fst", waves_, name, load);
          readings.push_back(measure(models_[m], load * saturation[m]));
          setting_.waves.clear();
          add_row(name, load, saturation, readings);
          if (stopped()) return;
        }
      }
    }
  }

 private:
  // There is no machine here: what can be watched is the RTL.
  void watch(const observe::ObserverRequest& request) {
    if (std::find(models_.begin(), models_.end(), true) == models_.end())
      throw InputError("run switch: --wave shows the RTL's signals; allowed: with --model rtl or both");
    waves_ = observe::stem_of(request.wave);
  }

  bool stopped() {
    context_.progress.update(++done_ / work_, result_.simulator.simulated, result_.simulator.events);
    if (context_.interrupted != 0) result_.complete = false;
    return context_.interrupted != 0;
  }

  SwitchReading measure(bool rtl, double offered) {
    setting_.rtl = rtl;
    setting_.offered = offered;
    setting_.packets = static_cast<std::uint64_t>(options_.packets);
    return counted(run_switch(context_.machine, setting_));
  }
  double measure_saturation(bool rtl) {
    setting_.rtl = rtl;
    setting_.offered = 0;
    setting_.packets = kSaturationPackets;
    return counted(run_switch(context_.machine, setting_)).accepted;
  }
  SwitchReading counted(SwitchReading reading) {
    result_.simulator.events += reading.events;
    result_.simulator.packet_hops += 2 * reading.delivered;
    result_.simulator.rtl_cycles += reading.rtl_cycles;
    if (setting_.rtl) result_.simulator.rtl_packets += reading.delivered;
    result_.simulator.simulated += reading.simulated;
    if (reading.wrong != 0 || reading.sent != reading.delivered) {
      result_.passed = false;
      result_.notes.push_back(fmt::format("{} packets sent, {} delivered, {} of them out of order or twice",
                                          reading.sent, reading.delivered, reading.wrong));
    }
    return reading;
  }

  void add_row(const std::string& name, double load, const std::vector<double>& saturation,
               const std::vector<SwitchReading>& readings) {
    const std::size_t m = readings.size() - 1;
    const SwitchReading& r = readings[m];
    Row row{{"model", models_[m] ? "rtl" : "tlm"},
            {"pattern", name},
            {"ports", setting_.ports},
            {"lanes", setting_.lanes},
            {"load", load},
            {"latency_ns", latencies(r.latency_ns)},
            {"chip_latency_ns", latencies(r.chip_latency_ns)},
            {"throughput", r.throughput},
            {"saturation", saturation[m]},
            {"jain", r.jain}};
    if (options_.isolation) row.set("isolation", isolation(r));
    if (models_.size() == 2) {
      row.set("difference", m == 0 ? Value() : Value(difference(r.latency_ns, readings[0].latency_ns)));
      row.set("saturation_difference", m == 0 ? Value() : Value(saturation[1] / saturation[0] - 1));
    }
    context_.finish_row(result_, row);
  }
  // Mean latency of the other lanes while lane 0 stands, over what it was.
  double isolation(const SwitchReading& free) {
    SwitchCase blocked = setting_;
    blocked.block_lane_0 = true;
    const SwitchReading r = run_switch(context_.machine, blocked);
    double with = 0, without = 0;
    for (unsigned lane = 1; lane < setting_.lanes; ++lane) {
      with += r.lane_mean_ns[lane];
      without += free.lane_mean_ns[lane];
    }
    return with / without;
  }

  const StudyContext& context_;
  const SwitchOptions& options_;
  StudyResult& result_;
  SwitchCase setting_;
  std::vector<bool> models_;  // RTL?
  std::string waves_;         // files, but for their endings; empty: not asked for
  double done_ = 0, work_ = 1;
};

StudyResult run(const StudyContext& context, const SwitchOptions& options) {
  StudyResult result;
  SwitchRows(context, options, result).run();
  return result;
}

}  // namespace

const Study kSwitchStudy{
    .name = "switch",
    .summary = "one switch chip under load: latency, throughput, fairness; model and RTL",
    .fields = kSwitchFields,
    .options = options_of<SwitchOptions, run>,
    .coreless = true,
    .own_wave = true,
    .dies = false};

}  // namespace cm384::studies
