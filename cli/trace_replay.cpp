// `cm384 trace replay`.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/exit_code.h"
#include "cli/progress.h"
#include "host/replay.h"
#include "hw/error.h"
#include "sim/output_file.h"
#include "studies/options.h"
#include "studies/result.h"

namespace cm384::cli {
namespace {

namespace po = boost::program_options;
using traces::TrafficRecord;

// What a replay's records come to.
struct Tally {
  std::uint64_t transactions = 0, bytes = 0;
  Time recorded, replayed;  // end of the last one
  double worst = 0;         // of all: |replayed - recorded| / recorded, ends counted from the start
  std::uint64_t worst_record = 0;
  double latency_us = 0;  // sum, in the replay

  void add(std::uint64_t number, const TrafficRecord& r, Time start, Time end) {
    recorded = std::max(recorded, r.end);
    replayed = std::max(replayed, end);
    if (r.end.ps > 0) {
      const double off = static_cast<double>(end.ps > r.end.ps ? end.ps - r.end.ps : r.end.ps - end.ps) /
                         static_cast<double>(r.end.ps);
      if (off > worst) {
        worst = off;
        worst_record = number;
      }
    }
    if (r.kind != TrafficRecord::Kind::transfer) return;
    ++transactions;
    bytes += r.total_bytes();
    latency_us += (end - start).us();
  }
};

Json row_of(const std::string& mode, std::uint64_t finished, const Tally& tally) {
  Json row;
  row["mode"] = mode;
  row["records"] = finished;
  row["transactions"] = tally.transactions;
  row["bytes"] = tally.bytes;
  row["recorded_us"] = tally.recorded.us();
  row["replayed_us"] = tally.replayed.us();
  row["ratio"] = tally.recorded.ps == 0 ? Json() : Json(tally.replayed.us() / tally.recorded.us());
  row["worst_error"] = tally.worst;
  row["worst_record"] = tally.worst_record;
  row["latency_us"] =
      tally.transactions == 0 ? Json() : Json(tally.latency_us / static_cast<double>(tally.transactions));
  return row;
}

po::options_description options_of() {
  po::options_description options("options of `trace replay`", 110);
  options.add_options()("trace", studies::required_text_option("FILE"),
                        "the trace, by name or as bare argument")(
      "mode", studies::choice_option("dependency", {"dependency", "time"}),
      "a transaction waits for those it depended on, or for its recorded time")(
      "cores", studies::integer_option(48, 1, 64), "cores of a die that share a transfer without a core")(
      "write", studies::required_text_option("FILE"), "write the trace with the times of the replay")(
      "out", studies::required_text_option("DIR"), "write result.json there")(
      "format", studies::choice_option("table", {"table", "json", "csv"}), "of the row on standard output");
  add_machine_options(options);
  add_help_option(options);
  return options;
}

}  // namespace

int trace_replay_command(const Arguments& arguments) {
  const po::options_description options = options_of();
  const po::variables_map values = studies::parse_options(options, arguments, "trace");
  if (values["help"].as<bool>()) {
    fmt::print("cm384 trace replay FILE [options]: run a traffic trace on a machine\n\n{}", help_of(options));
    return kDone;
  }
  if (values.count("trace") == 0) throw InputError("trace replay: names no trace");
  const std::string path = values["trace"].as<std::string>();
  const hw::Machine machine = machine_of(values);
  ConsoleProgress progress;
  const host::TrafficUnits units = host::units_of(*traces::open_traffic(path));
  const auto source = traces::open_traffic(path);

  supernode::SupernodeOptions made;
  made.dies = {units.dies.begin(), units.dies.end()};
  made.sockets = {units.sockets.begin(), units.sockets.end()};
  made.patience = Time::never();
  made.die.cube_cores = units.cores > machine.die.aiv;
  made.interrupted = &interrupted();
  Tally tally;
  std::uint64_t finished = 0;
  made.progress = [&](Time simulated, std::uint64_t events) {
    progress.update(
        static_cast<double>(finished) / static_cast<double>(std::max<std::uint64_t>(1, units.records)),
        simulated, events);
  };
  supernode::Supernode supernode(machine, made);
  std::unique_ptr<traces::TrafficSink> sink;
  if (values.count("write") != 0)
    sink = traces::create_traffic(values["write"].as<std::string>(), {machine.name, source->header().study});
  host::ReplayOptions how;
  const std::string mode = values["mode"].as<std::string>();
  how.mode = mode == "time" ? host::ReplayOptions::Mode::time : host::ReplayOptions::Mode::dependency;
  how.cores = values["cores"].as<int>();
  how.finished = [&](const TrafficRecord& record, Time start, Time end) {
    tally.add(finished++, record, start, end);
    if (!sink) return;
    TrafficRecord replayed = record;
    replayed.start = start;
    replayed.end = end;
    sink->add(replayed);
  };
  host::Replay replay(supernode, *source, how);
  studies::StudyResult result;
  result.complete = replay.run();
  if (sink) sink->finish();

  result.parameters = studies::effective_options(options, values);
  result.rows.push_back(row_of(mode, finished, tally));
  result.input_files.push_back(path);
  const supernode::SupernodeCounts counts = supernode.counts();
  result.simulator = {supernode.earliest(), counts.instructions,    counts.packet_hops,
                      counts.events,        counts.memory_requests, 0};
  const Json document = studies::to_document(result, machine, {"trace replay", 1, progress.seconds()});
  if (values.count("out") != 0)
    write_file(values["out"].as<std::string>() + "/result.json", document.dump(2) + "\n");
  const std::string& format = values["format"].as<std::string>();
  fmt::print("{}", format == "json"  ? document.dump(2) + "\n"
                   : format == "csv" ? studies::to_csv(result.rows)
                                     : studies::to_table(result.rows));
  return result.complete ? kDone : kInterrupted;
}

}  // namespace cm384::cli
