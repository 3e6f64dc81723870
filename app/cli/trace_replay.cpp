// `cm384 trace replay`.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "app/cli/commands.h"
#include "app/cli/common_options.h"
#include "app/cli/exit_code.h"
#include "app/cli/progress.h"
#include "app/cli/replaced_trace.h"
#include "app/cli/replay_collectives.h"
#include "app/cli/replay_messages.h"
#include "app/cli/replay_sample.h"
#include "app/cli/watch_options.h"
#include "base/engine/worker.h"
#include "base/text/error.h"
#include "base/text/output_file.h"
#include "system/host/replay.h"
#include "system/machine/faults.h"
#include "system/observe/machine_profile.h"
#include "system/observe/profile.h"
#include "system/observe/statistics_file.h"
#include "system/observe/timeline.h"
#include "workloads/frame/result_json.h"
#include "workloads/frame/table.h"

namespace cm384::cli {
namespace {

using studies::Field;
using studies::FieldType;
using studies::Form;
using traces::TrafficRecord;

// What a replay's records come to.
struct Tally {
  std::uint64_t transactions = 0, bytes = 0, at_recorded_time = 0;
  Time recorded, replayed;  // end of the last one
  double worst = 0;         // of all: |replayed - recorded| / recorded, ends counted from the start
  std::uint64_t worst_record = 0;
  double latency_us = 0;  // sum, in the replay
  // A transfer took time when it was recorded, or a point behind some has one: imports say at most when they
  // begin. Of all time without traffic it is known when it was.
  bool timed = false, all_timed = true;
  std::set<std::pair<traces::Unit, int>> begun_at_zero;  // queues of dies
  std::vector<bool> ended_behind_zero;                   // of each record

  // Of time without traffic it is not recorded when it was: others import durations. At 0 may begin what
  // waits for nothing that takes time, one of each queue.
  bool has_no_time(const TrafficRecord& r) {
    if (r.kind != TrafficRecord::Kind::compute || r.start != Time{} || r.end == r.start) return false;
    const bool waits = std::ranges::any_of(r.dependencies, [this](const traces::TrafficDependency& d) {
      return d.delay > Time{} || (d.on < ended_behind_zero.size() && ended_behind_zero[d.on]);
    });
    return waits || (r.lane != 0 && !begun_at_zero.emplace(r.source, r.lane).second);
  }

  void add(std::uint64_t number, const TrafficRecord& r, Time start, Time end) {
    all_timed = all_timed && !has_no_time(r);
    ended_behind_zero.push_back(r.end > Time{});
    at_recorded_time += r.at_recorded_time() ? 1 : 0;
    // The machine is found idle some time after the last thing has happened.
    if (r.kind == TrafficRecord::Kind::idle) return;
    timed = timed || (r.moves() ? r.end > r.start : r.kind == TrafficRecord::Kind::barrier && r.end > Time{});
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

constexpr std::array kTraceReplayFields{
    Field{"mode", FieldType::text, "what a transaction waits for", true}.as_condition(),
    Field{"records", FieldType::integer, "of the trace that were replayed", true},
    Field{"transactions", FieldType::integer, "records that move bytes", true},
    Field{"bytes", FieldType::bytes, "moved by them", true},
    Field{"recorded_us", FieldType::number,
          "end of the last record, as recorded; not of a sample, nor where that was not recorded, as in "
          "most imports",
          true},
    Field{"replayed_us", FieldType::number, "the same in the replay", true},
    Field{"ratio", FieldType::number, "replayed over recorded end", true},
    Field{"at_recorded_time", FieldType::ratio,
          "share of the records that begin at their recorded time, because what they waited for is not known",
          true},
    Field{"worst_error", FieldType::ratio, "largest difference of a record's end, over its recorded end",
          true},
    Field{"worst_record", FieldType::integer, "number of that record"},
    Field{"latency_us", FieldType::number, "mean latency of a transaction in the replay"},
};

// Of a sample nothing is known of when all of it ends; nor of a trace whose records have no times, when it
// would have.
studies::Row row_of(const std::string& mode, std::uint64_t finished, const Tally& tally, bool sample) {
  using studies::Value;
  const auto of_all = [sample](auto value) { return sample ? Value() : Value(value); };
  const bool timed = tally.all_timed && (tally.timed || tally.transactions == 0);
  const auto against = [&](auto value) { return timed ? of_all(value) : Value(); };
  return {{"mode", mode},
          {"records", finished},
          {"transactions", tally.transactions},
          {"bytes", tally.bytes},
          {"recorded_us", against(tally.recorded.us())},
          {"replayed_us", of_all(tally.replayed.us())},
          {"ratio", tally.recorded.ps == 0 ? Value() : against(tally.replayed.us() / tally.recorded.us())},
          {"at_recorded_time",
           mode == "time"  ? 1.0
           : finished == 0 ? 0.0
                           : static_cast<double>(tally.at_recorded_time) / static_cast<double>(finished)},
          {"worst_error", against(tally.worst)},
          {"worst_record", against(tally.worst_record)},
          {"latency_us", tally.transactions == 0
                             ? Value()
                             : Value(tally.latency_us / static_cast<double>(tally.transactions))}};
}

struct TraceReplayOptions {
  std::string trace, mode = "dependency", path = "recorded", write, messages, collectives, out;
  studies::Texts fault;
  int cores = 0, threads = 0;
  SamplingOptions sampling;
  WatchOptions watch;
  RowOptions rows;
  MachineOptions machine;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("trace", self.trace, Form{"FILE"}, "the trace");
    visit("mode", self.mode, studies::OneOf{{"dependency", "time"}},
          "a transaction waits for those it depended on, or for its recorded time");
    visit("path", self.path, studies::OneOf{{"recorded", "ub", "rdma"}},
          "how transfers between dies go: as each record says, or all by the Unified Bus or the RDMA plane");
    visit("cores", self.cores, studies::Range{0, 64},
          "cores of a die that share a transfer without a core; 0: all its AIVs");
    visit("write", self.write, Form{"FILE"}, "write the trace with the times of the replay");
    visit("messages", self.messages, Form{"FILE"},
          "write a line for each transfer to other memory: its times, its slowdown, and what held it up; "
          "compressed if the name ends in .gz");
    visit("collectives", self.collectives, Form{"FILE"},
          "as `trace from-timeline --collectives` wrote it: compare the times of collectives");
    visit("fault", self.fault, Form{"SELECTION,..."},
          "damage links or take parts out of order, as in `run p2p`");
    SamplingOptions::describe(self.sampling, visit);
    visit("threads", self.threads, studies::Range{0, static_cast<int>(sim::kMostWorkers)},
          "of the host, that run dies and sub-planes side by side; 0: one per core. Results do not depend on "
          "it. "
          "Host threads in the trace and --timeline force one thread");
    visit("out", self.out, Form{"DIR"}, "write result.json there, and what `cm384 report` shows beside it");
    WatchOptions::describe(self.watch, visit);
    RowOptions::describe(self.rows, visit);
    MachineOptions::describe(self.machine, visit);
  }
};

constexpr const char* kStudy = "trace replay";

// No output replaces the trace, or another output.
void check_outputs(const TraceReplayOptions& o) {
  namespace fs = std::filesystem;
  const auto file = [](const fs::path& path) { return fs::weakly_canonical(fs::absolute(path)); };
  std::map<fs::path, std::string> taken{{file(o.trace), "the trace"}};
  if (!o.out.empty()) {
    for (const char* name : {"result.json", "profile.json"})
      taken.emplace(file(fs::path(o.out) / name), "written by --out");
  }
  const std::pair<const char*, const std::string&> named[]{
      {"messages", o.messages}, {"stats", o.watch.stats}, {"timeline", o.watch.timeline}, {"write", o.write}};
  for (const auto& [option, path] : named) {
    if (path.empty() || (fs::exists(path) && !fs::is_regular_file(path))) continue;
    // A trace may be replaced by what it is replayed as.
    const auto [at, free] = taken.emplace(file(path), fmt::format("written by --{}", option));
    if (!free && !(at->second == "the trace" && option == std::string_view("write")))
      throw InputError(fmt::format("--{}: {} is {}", option, path, at->second));
  }
}

// Files that are open from before the replay on; they get their names after the row is printed.
struct Outputs {
  std::optional<OutputFile> result, profile_file, statistics_file;
  std::unique_ptr<traces::TrafficSink> sink;
  std::unique_ptr<observe::MachineProfile> profile;
  std::unique_ptr<observe::Timeline> timeline;
  std::unique_ptr<ReplayMessages> messages;

  Outputs(const TraceReplayOptions& options, const traces::TrafficHeader& recorded,
          const hw::Machine& machine) {
    if (!options.out.empty()) {
      result.emplace(options.out + "/result.json");
      profile_file.emplace(options.out + "/profile.json");
    }
    if (!options.watch.stats.empty())
      statistics_file.emplace(options.watch.stats, OutputFile::Compression::by_name);
    if (!options.messages.empty()) messages = std::make_unique<ReplayMessages>(options.messages);
    if (!options.write.empty()) {
      may_replace(options.write);
      sink = traces::create_traffic(options.write, {machine.name, recorded.study, recorded.shaped});
    }
  }

  void attach(supernode::Supernode& supernode, const host::TrafficUnits& units,
              const TraceReplayOptions& options, host::ReplayOptions& how) {
    if (messages) messages->attach(supernode, how);
    observe::StatisticsFile(false, options.watch.parts())
        .check(supernode.plane(0).network(), supernode.parameters().topology.sub_planes);
    if (profile_file)
      profile = std::make_unique<observe::MachineProfile>(
          supernode, options.trace, std::vector<int>(units.dies.begin(), units.dies.end()),
          std::vector<int>(units.sockets.begin(), units.sockets.end()));
    if (options.watch.timeline.empty()) return;
    timeline = std::make_unique<observe::Timeline>(supernode, options.watch.timeline, options.watch.shown());
    supernode.trace_links([this](const supernode::LinkName& link) { return timeline->shows(link); });
  }

  void finish(supernode::Supernode& supernode, const TraceReplayOptions& options, const Json& document) {
    const auto put = [](OutputFile& file, const Json& json, int indent) {
      file.write(json.dump(indent) + "\n");
      file.finish();
    };
    if (result) put(*result, document, 2);
    if (profile) {
      observe::Profile all;
      all.add(profile->to_json());
      put(*profile_file, all.to_document(kStudy, supernode.parameters()), -1);
    }
    if (statistics_file) {
      observe::StatisticsFile all(options.watch.stats_detail, options.watch.parts());
      all.begin(options.trace, supernode.earliest());
      supernode.visit_statistics([&](const sim::Statistics& part) { all.add(part); });
      put(*statistics_file, all.to_document(kStudy), 1);
    }
    if (timeline) timeline->finish();
    if (messages) messages->finish();
    if (sink) sink->finish();
  }
};

supernode::SupernodeOptions machine_options(const host::TrafficUnits& units, const hw::Machine& machine,
                                            bool rdma) {
  supernode::SupernodeOptions made;
  made.dies = {units.dies.begin(), units.dies.end()};
  made.sockets = {units.sockets.begin(), units.sockets.end()};
  made.patience = Time::never();
  made.rdma = rdma;
  made.die.cube_cores = units.cores > machine.die.aiv;
  made.interrupted = &interrupted();
  return made;
}

int replay(const Program& program, const TraceReplayOptions& asked, const studies::Given& given) {
  TraceReplayOptions options = asked;
  if (options.trace.empty()) throw InputError("trace replay: no trace given");
  check_outputs(options);
  studies::TablePrinter printer(kTraceReplayFields, options.rows.columns);
  const hw::Machine machine = options.machine.load();
  studies::all_if_zero(options.cores, machine.die.aiv);
  const bool sampled = options.sampling.sample != 0;
  if (sampled && !options.write.empty())
    throw InputError("trace replay: --write: not together with --sample; allowed: the whole trace");
  if (!sampled && given.contains("seed"))
    throw InputError("trace replay: --seed: has an effect only with --sample");
  std::optional<ReplaySample> sample;
  if (sampled) sample.emplace(options.trace, options.sampling);
  const auto whole = sample ? nullptr : traces::open_traffic(options.trace);
  traces::TrafficSource& source = sample ? sample->open() : *whole;
  const host::TrafficUnits units =
      sample ? sample->units() : host::units_of(*traces::open_traffic(options.trace));

  if (!machine.accelerator.has_cores() && given.contains("cores"))
    throw InputError(fmt::format("trace replay: --cores: accelerator.kind is {}, without cores",
                                 machine.accelerator.kind));
  if (!machine.accelerator.has_cores() && !options.messages.empty())
    throw InputError(fmt::format("trace replay: --messages: accelerator.kind is {}; allowed: one with cores",
                                 machine.accelerator.kind));
  if (!machine.accelerator.has_cores() && units.host && options.mode == "dependency")
    throw InputError(
        fmt::format("trace replay: {}: host threads, streams and kernels need cores, and accelerator.kind is "
                    "{}; allowed: --mode time",
                    options.trace, machine.accelerator.kind));

  std::optional<ReplayCollectives> collectives;
  if (!options.collectives.empty()) {
    if (sampled)
      throw InputError("trace replay: --collectives: not together with --sample; allowed: the whole trace");
    collectives.emplace(options.collectives);
  }
  Outputs outputs(options, source.header(), machine);
  ConsoleProgress progress;
  Tally tally;
  std::uint64_t finished = 0;
  const bool rdma = options.path == "rdma" || (options.path == "recorded" && units.rdma);
  supernode::SupernodeOptions made = machine_options(units, machine, rdma);
  made.progress = [&](Time simulated, std::uint64_t events) {
    progress.update(
        static_cast<double>(finished) / static_cast<double>(std::max<std::uint64_t>(1, units.records)),
        simulated, events);
  };
  const ThreadsChosen chosen = choose_threads(options.threads);
  made.threads = chosen.threads;
  made.threads_why = chosen.why;
  if (outputs.profile_file) made.sample = [&](Time now) { outputs.profile->sample(now); };
  supernode::Supernode supernode(machine, made);
  supernode::Faults faults(supernode);
  for (const std::string& text : options.fault) {
    try {
      faults.attach(supernode::parse_fault(text));
    } catch (const InputError& error) {
      throw InputError(fmt::format("--fault: {}", error.what()));
    }
  }
  faults.apply_breaks();
  host::ReplayOptions how;
  how.mode = options.mode == "time" ? host::ReplayOptions::Mode::time : host::ReplayOptions::Mode::dependency;
  how.path = options.path == "rdma" ? host::ReplayOptions::Path::rdma
             : options.path == "ub" ? host::ReplayOptions::Path::ub
                                    : host::ReplayOptions::Path::recorded;
  how.cores = std::min(options.cores, machine.die.aiv);
  how.reach = units.reach;
  how.host = units.host;
  outputs.attach(supernode, units, options, how);
  const host::Replay* running = nullptr;
  if (sample || outputs.messages) {
    how.message = [&](host::ReplayedMessage message) {
      const bool told = !sample || sample->message(message);
      if (!outputs.messages) return;
      told ? outputs.messages->add(message, running->origin()) : outputs.messages->leave_out(message);
    };
  }
  how.finished = [&](const TrafficRecord& record, Time start, Time end) {
    start = start - running->origin();
    end = end - running->origin();
    if (collectives) collectives->finished(finished, record, start, end);
    tally.add(finished++, record, start, end);
    if (sample) sample->finished(start);
    if (!outputs.sink) return;
    TrafficRecord replayed = record;
    replayed.start = start;
    replayed.end = end;
    outputs.sink->add(replayed);
  };
  host::Replay replay(supernode, source, how);
  running = &replay;
  studies::StudyResult result;
  result.complete = replay.run();
  progress.clear();

  TraceReplayOptions described = options;
  result.parameters = studies::effective_options(hw::list_parameters(described));
  result.rows.push_back(row_of(options.mode, finished, tally, sampled));
  studies::check_row(result.rows.back(), kTraceReplayFields);
  result.input_files.push_back(options.trace);
  const supernode::SupernodeCounts counts = supernode.counts();
  result.simulator = {supernode.earliest(), counts.instructions, counts.packet_hops, counts.events,
                      counts.memory_requests};
  result.simulator.count_threads(supernode.thread_choice().threads(), supernode.thread_choice().why());
  Json document = studies::to_document(result, machine,
                                       {.study = kStudy,
                                        .wall_s = progress.seconds(),
                                        .arguments = program.arguments,
                                        .date = studies::date_now()});
  document["conditions"] = studies::condition_names(kTraceReplayFields);
  document["simulator"]["records_per_s"] = static_cast<double>(finished) / progress.seconds();
  if (sample && result.complete) document["sample"] = sample->result();
  if (outputs.messages) document["messages"] = outputs.messages->summary();
  if (collectives && result.complete) document["collectives"] = collectives->result();
  if (!options.fault.empty()) document["simulator"]["damaged_transmissions"] = faults.strikes();
  const std::string& format = options.rows.format;
  print_now(format == "json"  ? document.dump(2) + "\n"
            : format == "csv" ? studies::to_csv(result.rows)
                              : printer.add(result.rows.front()));
  if (format == "table" && document.contains("sample")) print_now(text_of_sample(document["sample"]));
  if (outputs.messages && format == "table") print_now(text_of_messages(document["messages"]));
  if (format == "table" && document.contains("collectives"))
    print_now(text_of_collectives(document["collectives"]));
  outputs.finish(supernode, options, document);
  return result.complete ? kDone : kInterrupted;
}

}  // namespace

constinit const Command kTraceReplayCommand = make_command<TraceReplayOptions, replay>(
    "trace replay", "FILE", "run a traffic trace on a machine", "trace");

}  // namespace cm384::cli
