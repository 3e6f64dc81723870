// `cm384 run switch`.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "hw/error.h"
#include "hw/quantity.h"
#include "observe/observers.h"
#include "studies/options.h"
#include "studies/studies.h"
#include "studies/switch_bench.h"

namespace cm384::studies {
namespace {

// Packets for one measurement of the saturation throughput.
constexpr std::uint64_t kSaturationPackets = 40'000;

// "0.5", "0.1,0.5,0.9" or "0.1..0.9", the last in steps of 0.1.
std::vector<double> parse_loads(std::string_view text) {
  const auto number = [text](std::string_view part) {
    const double value = hw::parse_real(part);
    if (value < 0.01 || value > 1) {
      throw InputError(fmt::format("{}: allowed: loads from 0.01 to 1, as in 0.1..0.9 or 0.5,0.7", text));
    }
    return value;
  };
  std::vector<double> loads;
  if (const auto dots = text.find(".."); dots != std::string_view::npos) {
    const double first = number(text.substr(0, dots)), last = number(text.substr(dots + 2));
    const long from = std::lround(first * 1000), to = std::lround(last * 1000);
    for (long load = from; load <= to; load += 100) loads.push_back(static_cast<double>(load) / 1000);
    if (loads.empty()) throw InputError(fmt::format("{}: an empty range", text));
    return loads;
  }
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t comma = std::min(text.find(',', from), text.size());
    loads.push_back(number(text.substr(from, comma - from)));
    from = comma + 1;
  }
  return loads;
}

void add_options(boost::program_options::options_description& options) {
  options.add_options()("model", choice_option("tlm", {"tlm", "rtl", "both"}),
                        "transaction-level chip, RTL, or both and the difference")(
      "pattern", choices_option("uniform", pattern_names()),
      "where packets go; hotspot: a fifth to port 0; tornado: half way round")(
      "load", checked_text_option("0.1..0.9", "X,..|X..Y", [](std::string_view text) { parse_loads(text); }),
      "as a share of the model's own saturation throughput; X..Y goes in steps of 0.1")(
      "ports", integer_option(16, 2, 48), "of the chip")("lanes", integer_option(2, 1, 8), "virtual lanes")(
      "bytes", size_option(512_B), "written by each packet; at most 512 B")(
      "packets", integer_option(20'000, 100, 100'000'000), "counted in each row")(
      "isolation", boost::program_options::bool_switch(),
      "measure each row once more while lane 0's receivers give no credits back");
}

Json latencies(const Summary& s) {
  return {{"mean", s.mean}, {"p50", s.p50}, {"p99", s.p99}};
}

Json difference(const Summary& of, const Summary& to) {
  return {{"mean", of.mean / to.mean - 1}, {"p50", of.p50 / to.p50 - 1}, {"p99", of.p99 / to.p99 - 1}};
}

class SwitchRows {
 public:
  SwitchRows(const StudyContext& context, StudyResult& result) : context_(context), result_(result) {
    const auto& model = context.option<std::string>("model");
    if (model != "rtl") models_.push_back(false);
    if (model != "tlm") models_.push_back(true);
    loads_ = parse_loads(context.option<std::string>("load"));
    patterns_ = context.option<Names>("pattern").values;
    setting_.ports = static_cast<unsigned>(context.option<int>("ports"));
    setting_.lanes = static_cast<unsigned>(context.option<int>("lanes"));
    setting_.bytes = static_cast<int>(context.option<Bytes>("bytes").count);
    if (setting_.bytes < 1 || setting_.bytes > 512)
      throw InputError(fmt::format("run switch: --bytes {}: allowed: 1 B to 512 B", setting_.bytes));
    isolation_ = context.option<bool>("isolation");
    if (isolation_ && setting_.lanes < 2) throw InputError("run switch: --isolation needs two lanes or more");
    setting_.seed = context.seed;
    if (context.observers != nullptr) watch(context.observers->request());
    work_ = static_cast<double>(patterns_.size() * models_.size() * (loads_.size() + 1));
  }

  void run() {
    for (const auto& name : patterns_) {
      setting_.pattern = pattern(name);
      std::vector<double> saturation;
      for (const bool rtl : models_) {
        saturation.push_back(measure_saturation(rtl));
        if (stopped()) return;
      }
      for (const double load : loads_) {
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
    if (!request.record.empty() || !request.timeline.empty() || !request.links.empty())
      throw InputError(
          "run switch: --record, --timeline and --wave-links show a machine; here is one chip only");
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
    setting_.packets = static_cast<std::uint64_t>(context_.option<int>("packets"));
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
    Json row;
    row["model"] = models_[m] ? "rtl" : "tlm";
    row["pattern"] = name;
    row["ports"] = setting_.ports;
    row["lanes"] = setting_.lanes;
    row["load"] = load;
    row["latency_ns"] = latencies(r.latency_ns);
    row["chip_latency_ns"] = latencies(r.chip_latency_ns);
    row["throughput"] = r.throughput;
    row["saturation"] = saturation[m];
    row["jain"] = r.jain;
    if (isolation_) row["isolation"] = isolation(r);
    if (models_.size() == 2) {
      row["difference"] = m == 0 ? Json() : difference(r.latency_ns, readings[0].latency_ns);
      row["saturation_difference"] = m == 0 ? Json() : Json(saturation[1] / saturation[0] - 1);
    }
    result_.rows.push_back(row);
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
  StudyResult& result_;
  SwitchCase setting_;
  std::vector<bool> models_;  // RTL?
  std::vector<double> loads_;
  std::vector<std::string> patterns_;
  std::string waves_;  // files, but for their endings; empty: not asked for
  bool isolation_ = false;
  double done_ = 0, work_ = 1;
};

StudyResult run(const StudyContext& context) {
  StudyResult result;
  SwitchRows(context, result).run();
  return result;
}

}  // namespace

const Study kSwitchStudy{"switch", "one switch chip under load: latency, throughput, fairness; model and RTL",
                         add_options, run};

}  // namespace cm384::studies
