#include "app/cli/study_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "app/cli/commands.h"
#include "app/cli/examples.h"
#include "app/cli/exit_code.h"
#include "app/cli/gdb_place.h"
#include "app/cli/help.h"
#include "app/cli/progress.h"
#include "base/engine/hang.h"
#include "base/engine/peers.h"
#include "base/engine/worker.h"
#include "base/text/error.h"
#include "base/text/nearest_name.h"
#include "base/text/output_file.h"
#include "base/text/run_files.h"
#include "system/machine/statistics.h"
#include "system/machine/workers.h"
#include "system/observe/line_files.h"
#include "system/observe/observers.h"
#include "system/observe/profile.h"
#include "system/observe/statistics_file.h"
#include "workloads/frame/published.h"
#include "workloads/frame/result_json.h"

namespace cm384::cli {
namespace {

using studies::Form;
using studies::Needs;
using studies::Range;
using studies::Study;

// What several processes cannot do (docs/scale.md).
void check_processes(std::string_view study, const RunOptions& options,
                     const studies::FabricOptions& fabric) {
  if (!runs_over_processes(study)) sim::peers().needs_one(fmt::format("run {}", study));
  for (const auto& [name, given] : {std::pair{"--explain", options.explain},
                                    {"--record", !options.record.empty()},
                                    {"--timeline", !options.watch.timeline.empty()},
                                    {"--wave", !options.wave.empty()},
                                    {"--profile", !options.profile.empty()},
                                    {"--gdb", options.gdb != 0},
                                    {"--ensemble", options.on_ensemble.ensemble > 0},
                                    {"--rtl", !fabric.rtl.empty()}}) {
    if (given) sim::peers().needs_one(name);
  }
}

// Links, chips and messages have names of one supernode.
void check_supernodes(const Study& study, const hw::Machine& machine, const RunOptions& options,
                      const studies::FabricOptions& fabric) {
  if (machine.topology.supernodes == 1) return;
  const bool first = study.first_server && !machine.accelerator.has_cores();
  if (!study.supernodes && !first)
    throw InputError(
        fmt::format("run {}: topology.supernodes is {}, and nothing that it simulates crosses to "
                    "another one; allowed: 1",
                    study.name, machine.topology.supernodes));
  for (const auto& [name, given] : {std::pair{"--explain", options.explain},
                                    {"--record", !options.record.empty()},
                                    {"--timeline", !options.watch.timeline.empty() && !study.own_timeline},
                                    {"--wave", !options.wave.empty()},
                                    {"--fault", !fabric.fault.empty()},
                                    {"--rtl", !fabric.rtl.empty()}}) {
    if (given)
      throw InputError(fmt::format("{}: not with several supernodes; allowed: topology.supernodes=1", name));
  }
}

// What looks at dies at work.
void check_dies(const Study& study, const RunOptions& options) {
  if (study.dies) return;
  const WatchOptions& watch = options.watch;
  for (const auto& [name, given] : {std::pair{"--stats", !watch.stats.empty()},
                                    {"--energy", !options.energy.empty()},
                                    {"--record", !options.record.empty()},
                                    {"--explain", options.explain},
                                    {"--profile", !options.profile.empty()},
                                    {"--gdb", options.gdb != 0},
                                    {"--time-limit", options.time_limit > Time{}},
                                    {"--timeline", !watch.timeline.empty() && !study.own_timeline},
                                    {"--timeline-dies", !watch.timeline_dies.empty()},
                                    {"--timeline-cores", !watch.timeline_cores.empty()},
                                    {"--wave", !options.wave.empty() && !study.own_wave},
                                    {"--wave-links", !options.wave_links.empty()}}) {
    if (given)
      throw InputError(
          fmt::format("{}: observes dies, and run {} simulates none; allowed: without it", name, study.name));
  }
}

// The first of several processes opens outputs; where it cannot, none goes on.
template <class Open>
void open_together(Open&& open) {
  std::exception_ptr failure;
  try {
    open();
  } catch (const OutputError&) {
    failure = std::current_exception();
  }
  const bool failed = sim::peers().sum(failure ? 1 : 0) != 0;
  if (failure) std::rethrow_exception(failure);
  if (failed) throw OutputError("an output of the first process cannot be written");
}

// Of a run that has ended before its end: the rows until then, and why, in a line.
void keep_rows(studies::StudyResult& result, const studies::Rows& known, std::string_view why) {
  result.rows = known;
  result.complete = false;
  result.notes.emplace_back(why.substr(0, why.find('\n')));
}

// Why the simulated machine did not come to its end.
Json stopped_by(const MachineError& error) {
  const char* kind = "fault";
  if (dynamic_cast<const sim::MachineHang*>(&error) != nullptr) kind = "hang";
  if (dynamic_cast<const sim::TimeLimitReached*>(&error) != nullptr) kind = "time limit";
  return {{"kind", kind}, {"report", error.what()}};
}

std::string what_if_note(const studies::SimulatorCounts& counts) {
  if (counts.what_if_longest == 0)
    return "--threads-what-if: no machine was run whose parts threads could share";
  return fmt::format(
      "{} thread{} would be at most {:.1f} times as fast as one: in each window the busiest has {:.1f} % of "
      "the events on average",
      counts.what_if_threads, counts.what_if_threads == 1 ? "" : "s", counts.what_if_speedup(),
      100 / counts.what_if_speedup());
}

observe::ObserverRequest observers_of(const RunOptions& options) {
  observe::ObserverRequest asked;
  asked.record = options.record;
  asked.timeline = options.watch.timeline;
  asked.shown = options.watch.shown();
  asked.wave = options.wave;
  asked.explain = options.explain;
  asked.lines = options.profile;
  for (const std::string& link : options.wave_links)
    asked.links.push_back(supernode::parse_link_selection(link));
  return asked;
}

}  // namespace

template <class Self, class Visitor>
void RunOptions::describe(Self& self, Visitor&& visit) {
  MachineOptions::describe(self.machine, visit);
  visit("supernodes", self.supernodes, Range{0, 1024},
        "supernodes that the RDMA plane joins, as --set topology.supernodes; 0: as the machine says");
  SeedOption::describe(self.seed, visit);
  visit("out", self.out, Form{"DIR"}, "write result.json there, and what `cm384 report` shows beside it");
  RowOptions::describe(self.rows, visit);
  WatchOptions::describe(self.watch, visit);
  visit("record", self.record, Form{"FILE"},
        "record every transaction: a traffic trace for `cm384 trace`, as CSV if the name ends in .csv");
  visit("wave", self.wave, Form{"FILE"},
        "write link signals for GTKWave, as FST if the name ends in .fst, otherwise as VCD, compressed if it "
        "ends in "
        ".gz; and beside it the signals inside RTL chips as FST");
  visit("wave-links", self.wave_links, Form{"die=N|plane=N,node=N,l2=N", check_parts},
        "links that it shows, with all that is inside the named ones; may be repeated; default: the ports of "
        "the first die",
        Needs{"wave", {}});
  visit("profile", self.profile, Form{"DIR"},
        "say where the kernels' time went, by source line and by instruction: CSV files there, the hottest "
        "lines under the rows");
  visit("explain", self.explain,
        "say what bound the run: its critical path, its busiest resources, and what each would give at twice "
        "its speed");
  visit("explain-check", self.explain_check, "confirm what that predicts by runs with the parameters changed",
        Needs{"explain", {}});
  visit("energy", self.energy, Form{"default|FILE"},
        "say which part took how much energy, by what was counted and a table of coefficients (hw/energy/)");
  visit("threads", self.threads, Range{0, static_cast<int>(sim::kMostWorkers)},
        "of the host, that run dies and sub-planes side by side; 0: one per core. Rows do not depend on it. "
        "Observers "
        "(--explain, --record, --timeline, --wave, --gdb) and --rtl force one thread");
  visit(
      "threads-what-if", self.what_if_threads, Range{0, 1024},
      "say how much faster so many threads of a larger host could be at most: from the events that dies and "
      "sub-planes have in each window; 0: nothing is said");
  visit(
      "time-limit", self.time_limit, Range{0_ps, 140_s},
      "simulated time, of each machine that the study builds, after which the run ends with a report of what "
      "has not finished; 0ps: none");
  EnsembleOptions::describe(self.on_ensemble, visit);
  visit("gdb", self.gdb, Range{0, 65'535}, "TCP port where a debugger may attach to a core; 0: none");
  visit("gdb-at", self.gdb_at,
        Form{"die=D,core=C|fault", [](std::string_view text) { parse_gdb_place(text); }},
        "which core waits for it before its first instruction: default die and core 0 of those that run; or "
        "fault: the first that faults, where it faults",
        Needs{"gdb", {}});
}

void RunOptions::settle() {
  if (supernodes > 0) machine.set.push_back(fmt::format("topology.supernodes={}", supernodes));
}

// Files that are open from before the simulation on.
struct StudyRun::Outputs {
  std::optional<OutputFile> result, profile_file, statistics_file;
  observe::StatisticsFile statistics;
  observe::Profile profile;
  observe::Observers observers;

  Outputs(const RunOptions& options, observe::ObserverRequest request)
      : statistics(options.watch.stats_detail, options.watch.parts()), observers(std::move(request)) {
    if (!options.out.empty()) {
      result.emplace(options.out + "/result.json");
      // Over several processes nobody sees all of the machine as it runs.
      if (!sim::peers().several()) profile_file.emplace(options.out + "/profile.json");
    }
    const std::string& stats = options.watch.stats;
    if (!stats.empty()) statistics_file.emplace(stats, OutputFile::Compression::by_name);
  }
};

bool runs_over_processes(std::string_view study) {
  constexpr std::array<std::string_view, 6> kStudies{"dispatch", "combine", "moe",
                                                     "traffic",  "p2p",     "copies"};
  return std::ranges::find(kStudies, study) != kStudies.end();
}

const Study& find_study(std::span<const Study> all, const std::string& name) {
  const auto study = std::ranges::find(all, name, &Study::name);
  if (study != all.end()) return *study;
  std::vector<std::string> names;
  for (const Study& known : all) names.emplace_back(known.name);
  throw InputError(fmt::format("run {}: no such study{}; allowed: {}", name, hw::suggestion(name, names),
                               fmt::join(names, ", ")));
}

StudyCommandLine::StudyCommandLine(const Study& of) : study(of), own(of.options()) {
  groups.push_back({fmt::format("options of `run {}`", study.name), own->list()});
  const auto add = [this](std::vector<hw::Parameter> options) {
    groups.back().options.insert(groups.back().options.end(), options.begin(), options.end());
  };
  if (study.fabric) add(hw::list_parameters(fabric));
  groups.push_back({"options of every run", hw::list_parameters(run)});
  add(hw::list_parameters(help));
}

std::string help_of_study(const Study& study) {
  const StudyCommandLine line(study);
  const std::string bare = study.positional.empty() ? "" : fmt::format(" [{}]", study.positional);
  return fmt::format("{}\n{}{}", help_head(fmt::format("cm384 run {}{}", study.name, bare), study.summary),
                     studies::help_of(line.groups), examples_text(fmt::format("run {}", study.name)));
}

StudyRun::StudyRun(std::span<const Study> all, const Arguments& arguments)
    : arguments_(arguments),
      line_(find_study(all, arguments.front())),
      given_(studies::parse_options(line_.groups, Arguments(arguments.begin() + 1, arguments.end()),
                                    line_.study.positional)) {
  line_.own->follow(given_);
  line_.run.settle();
  arguments_.insert(arguments_.begin(), "run");
}

StudyRun::~StudyRun() = default;

// They follow the same log and the same links.
void StudyRun::check_explain() const {
  const RunOptions& options = line_.run;
  if (!options.explain) return;
  for (const auto& [name, given] : {std::pair{"--record", !options.record.empty()},
                                    {"--timeline", !options.watch.timeline.empty()},
                                    {"--wave", !options.wave.empty()}}) {
    if (given) throw InputError(fmt::format("--explain: not together with {}; run twice", name));
  }
}

FinishedRun StudyRun::run(const std::function<void(const studies::Row&)>& row_done) {
  const RunOptions& options = line_.run;
  check_explain();
  check_processes(line_.study.name, options, line_.fabric);
  const hw::Machine machine = options.machine.load();
  if (!machine.accelerator.has_cores() && !line_.study.coreless)
    throw InputError(fmt::format("run {}: needs cores, and accelerator.kind is {}; allowed: ascend",
                                 line_.study.name, machine.accelerator.kind));
  check_supernodes(line_.study, machine, options, line_.fabric);
  check_dies(line_.study, options);
  for (const auto& [name, given] :
       {std::pair{"--explain", options.explain}, {"--profile", !options.profile.empty()}}) {
    if (given && !machine.accelerator.has_cores())
      throw InputError(fmt::format("{}: needs cores, and accelerator.kind is {}; allowed: ascend", name,
                                   machine.accelerator.kind));
  }
  line_.own->settle(machine);
  studies::RunFacts facts{.study = std::string(line_.study.name),
                          .seed = options.seed.value(),
                          .arguments = arguments_,
                          .date = studies::date_now()};
  std::optional<observe::EnergyTable> energy;
  if (!options.energy.empty()) {
    if (!options.watch.stats_parts.empty())
      throw InputError("--energy: needs all counters; allowed: without --stats-parts");
    energy = observe::EnergyTable::load(options.energy, machine);
    energy->check(supernode::statistic_patterns(machine));
  }
  observe::ObserverRequest asked = observers_of(options);
  asked.study = facts.study;
  asked.machine = machine.name;
  const bool watched = asked.any();
  if (options.what_if_threads > 0 && sim::peers().several())
    throw InputError(
        "--threads-what-if: counts the events of one process; allowed: without several processes");
  open_together([&] { outputs_ = std::make_unique<Outputs>(options, std::move(asked)); });
  if (RunFiles* files = RunFiles::current()) files->begin_work();
  FinishedRun finished;
  Json stopped;  // null: the machine came to its end
  {
    ConsoleProgress progress;
    studies::Rows known;  // of a run that hangs
    studies::StudyContext context{machine, facts.seed, progress, interrupted()};
    context.gdb_port = options.gdb;
    const GdbPlace place = parse_gdb_place(options.gdb_at);
    context.gdb_at_fault = place.at_fault;
    context.gdb_die = place.die;
    context.gdb_core = place.core;
    context.out_folder = options.out;
    if (outputs_->statistics_file || energy) context.statistics = &outputs_->statistics;
    if (outputs_->profile_file) context.profile = &outputs_->profile;
    if (watched) context.observers = &outputs_->observers;
    const ThreadsChosen chosen = choose_threads(options.threads);
    context.threads = chosen.threads;
    context.threads_why = chosen.why;
    context.what_if_threads = static_cast<unsigned>(options.what_if_threads);
    context.fabric = line_.fabric;
    context.given = given_;
    const studies::PublishedFigures published(
        line_.study, studies::to_json(studies::effective_options(line_.groups.front().options)),
        machine.overrides.empty() ? machine.name : "");
    context.published = &published;
    context.row_done = [&](const studies::Row& row) {
      studies::check_row(row, line_.study.fields);
      known.push_back(row);
      progress.clear();
      if (row_done) row_done(row);
    };
    if (options.time_limit > Time{}) context.time_limit = options.time_limit;
    try {
      finished.result = line_.own->run(context);
    } catch (const MachineError& error) {
      hung_ = error.what();
      stopped = stopped_by(error);
      keep_rows(finished.result, known, *hung_);
    } catch (const std::exception& error) {
      // Writes the rows that are there; the error that ended the run follows them.
      if (known.empty()) throw;
      failure_ = std::current_exception();
      keep_rows(finished.result, known, error.what());
    }
    facts.wall_s = progress.seconds();
  }
  if (!line_.fabric.rtl.empty() && finished.result.complete && finished.result.simulator.rtl_packets == 0)
    finished.result.notes.emplace_back("--rtl: no packet passed through it");
  if (options.what_if_threads > 0) finished.result.notes.push_back(what_if_note(finished.result.simulator));
  for (const observe::Explanation& why : outputs_->observers.explanations())
    finished.explanations.push_back(why);
  for (const observe::LineReport& lines : outputs_->observers.line_reports())
    finished.lines.push_back(observe::text_of(lines));
  if (options.explain_check && !finished.explanations.empty() && finished.result.complete)
    check(finished.explanations, machine);
  if (finished.result.parameters.empty())
    finished.result.parameters = studies::effective_options(line_.groups.front().options);
  finished.document = studies::to_document(finished.result, machine, facts);
  finished.document["conditions"] = studies::condition_names(line_.study.fields);
  if (!stopped.is_null()) finished.document["stopped"] = stopped;
  if (!options.out.empty()) finished.document["files"] = finished.result.files;
  if (energy) add_energy(finished, machine, *energy);
  for (const observe::LineReport& lines : outputs_->observers.line_reports())
    finished.document["lines"].push_back(observe::to_json(lines));
  if (!finished.explanations.empty()) {
    finished.document["explanations"] = Json::array();
    for (const observe::Explanation& why : finished.explanations)
      finished.document["explanations"].push_back(why.to_json());
    // A machine for each row, or one for all.
    Json& rows = finished.document["rows"];
    const std::size_t machines = finished.explanations.size();
    for (std::size_t n = 0; n < rows.size() && (machines == 1 || machines == rows.size()); ++n)
      rows[n]["explain"] = finished.explanations[machines == 1 ? 0 : n].of_row();
  }
  return finished;
}

void StudyRun::add_energy(FinishedRun& finished, const hw::Machine& machine,
                          const observe::EnergyTable& table) const {
  const Json rows = outputs_->statistics.to_document(std::string(line_.study.name)).at("rows");
  Json& all = finished.document["energy"] = Json::array();
  for (const Json& row : rows) {
    const observe::Energy energy = observe::energy_of(row, machine, table);
    all.push_back(energy.to_json(machine, table));
    all.back()["run"] = row.at("run");
    finished.energies.push_back(
        fmt::format("energy of {}\n{}", row.at("run").get<std::string>(), energy.text(machine)));
  }
  if (rows.empty()) return;
  std::string note = fmt::format("table {}: {}\n", table.name, table.note);
  const Json& parameters = finished.document.at("parameters");
  if (machine.accelerator.has_cores() && parameters.contains("grade") && parameters.at("grade") != "firmware")
    note += fmt::format("what operators at grade {} would count is missing\n",
                        parameters.at("grade").get<std::string>());
  finished.energies.push_back(std::move(note));
}

void StudyRun::check(std::vector<observe::Explanation>& explanations, const hw::Machine& machine) {
  const auto& gains = explanations.front().gains;
  for (const std::size_t k : explanations.front().to_check()) {
    hw::Machine changed = machine;
    hw::override_parameters(changed, gains[k].changes);
    hw::check_machine(changed);
    ConsoleProgress progress;
    observe::ObserverRequest request;
    request.span = true;
    observe::Observers observers(request);
    studies::StudyContext context{changed, line_.run.seed.value(), progress, interrupted()};
    context.observers = &observers;
    context.fabric = line_.fabric;
    context.given = given_;
    if (!line_.own->run(context).complete) return;
    for (std::size_t n = 0; n < explanations.size(); ++n) {
      const observe::Resource resource = gains[k].resource;
      const auto gain =
          std::ranges::find(explanations[n].gains, resource, &observe::Explanation::Gain::resource);
      gain->measured_us = explanations[n].span_us - observers.spans_us().at(n);
      gain->checked = true;
    }
  }
}

void StudyRun::write(const FinishedRun& finished) {
  Outputs& outputs = *outputs_;
  if (outputs.result) {
    outputs.result->write(finished.document.dump(2) + "\n");
    outputs.result->finish();
  }
  // Of an older run in the folder: what this one has not made is not its own.
  if (outputs.profile_file && outputs.profile.empty()) {
    std::error_code none;
    std::filesystem::remove(line_.run.out + "/profile.json", none);
  }
  if (outputs.profile_file && !outputs.profile.empty()) {
    const hw::Machine machine = line_.run.machine.load();
    outputs.profile_file->write(outputs.profile.to_document(std::string(line_.study.name), machine).dump() +
                                "\n");
    outputs.profile_file->finish();
  }
  if (outputs.statistics_file) {
    outputs.statistics_file->write(outputs.statistics.to_document(std::string(line_.study.name)).dump(1) +
                                   "\n");
    outputs.statistics_file->finish();
  }
  outputs.observers.rethrow();
}

void StudyRun::rethrow() const {
  if (hung_) throw MachineError(*hung_);
  if (failure_) std::rethrow_exception(failure_);
}

int exit_code_of(const studies::StudyResult& result) {
  if (!result.complete && interrupted() != 0) return kInterrupted;
  return result.passed ? kDone : kCheckFailed;
}

}  // namespace cm384::cli
