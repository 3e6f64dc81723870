#include "cli/study_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "cli/common_options.h"
#include "cli/exit_code.h"
#include "cli/progress.h"
#include "hw/error.h"
#include "hw/nearest_name.h"
#include "hw/quantity.h"
#include "observe/observers.h"
#include "observe/profile.h"
#include "observe/statistics_file.h"
#include "sim/output_file.h"
#include "sim/worker.h"
#include "supernode/workers.h"
#include "traces/lines.h"

namespace cm384::cli {
namespace {

namespace po = boost::program_options;
using studies::Study;

constexpr unsigned kHelpWidth = 110;

const Study& find(std::span<const Study> all, const std::string& name) {
  const auto study = std::ranges::find(all, name, &Study::name);
  if (study != all.end()) return *study;
  std::vector<std::string> names;
  for (const Study& known : all) names.emplace_back(known.name);
  throw InputError(fmt::format("run {}: no such study{}; allowed: {}", name, hw::suggestion(name, names),
                               fmt::join(names, ", ")));
}

void add_run_options(po::options_description& options) {
  add_machine_options(options);
  add_seed_option(options);
  options.add_options()("out", studies::required_text_option("DIR"),
                        "write result.json there, and what `cm384 report` shows beside it");
  options.add_options()("format", studies::choice_option("table", {"table", "json", "csv"}),
                        "of the rows on standard output");
  options.add_options()("stats", studies::required_text_option("FILE"),
                        "write what every part of the machine counted, as JSON");
  options.add_options()("stats-detail", po::bool_switch(),
                        "in that file, every core, channel and link by itself as well");
  options.add_options()("record", studies::required_text_option("FILE"),
                        "record every transaction: a traffic trace for `cm384 trace`, as CSV where the name "
                        "ends in .csv");
  options.add_options()("timeline", studies::required_text_option("FILE"),
                        "write Chrome trace JSON for Perfetto, compressed where the name ends in .gz")(
      "timeline-dies", studies::required_text_option("N,..."), "dies it shows; without it the first one")(
      "timeline-cores", studies::required_text_option("N,..."), "cores of them; without it all")(
      "timeline-from", studies::time_option(0_ns), "leave out what ends before")(
      "timeline-to", studies::required_text_option("TIME"), "leave out what begins after");
  options.add_options()("wave", studies::required_text_option("FILE"),
                        "write link signals as VCD for GTKWave, compressed where the name ends in .gz, and "
                        "beside it what is inside of RTL chips as FST")(
      "wave-links",
      po::value<std::vector<std::string>>()->composing()->value_name("die=N|plane=N,node=N,l2=N"),
      "links it shows, with all of what is named; may be repeated; without it the ports of the first die");
  options.add_options()("threads", studies::integer_option(0, 0, sim::kMostWorkers),
                        "of the host, that run dies and sub-planes side by side; 0: one a core; rows do not "
                        "depend on it, and what looks into the machine (--record, --timeline, --wave, --gdb) "
                        "and --fault and --rtl use one");
  options.add_options()("gdb", studies::integer_option(0, 0, 65'535),
                        "TCP port where a debugger may attach to a core; 0: none");
  add_help_option(options);
}

std::set<int> numbers_of(const po::variables_map& values, const char* option) {
  std::set<int> numbers;
  if (values.count(option) == 0) return numbers;
  for (const std::string_view part : traces::split_fields(values[option].as<std::string>()))
    numbers.insert(static_cast<int>(std::clamp<std::int64_t>(hw::parse_integer(part), -1, 1 << 20)));
  return numbers;
}

unsigned threads_of(const po::variables_map& values) {
  const int asked = values["threads"].as<int>();
  return asked == 0 ? supernode::host_cores() : static_cast<unsigned>(asked);
}

observe::ObserverRequest observers_of(const po::variables_map& values) {
  const auto text = [&values](const char* option) {
    return values.count(option) != 0 ? values[option].as<std::string>() : std::string();
  };
  observe::ObserverRequest asked;
  asked.record = text("record");
  asked.timeline = text("timeline");
  asked.wave = text("wave");
  asked.shown.dies = numbers_of(values, "timeline-dies");
  asked.shown.cores = numbers_of(values, "timeline-cores");
  asked.shown.from = values["timeline-from"].as<Time>();
  if (values.count("timeline-to") != 0) asked.shown.to = hw::parse_time(text("timeline-to"));
  if (values.count("wave-links") != 0) {
    for (const std::string& link : values["wave-links"].as<std::vector<std::string>>())
      asked.links.push_back(observe::parse_link_selection(link));
  }
  return asked;
}

}  // namespace

StudyRun::StudyRun(std::span<const Study> all, const Arguments& arguments)
    : study_(find(all, arguments.front())),
      own_(fmt::format("options of `run {}`", study_.name), kHelpWidth),
      common_("options of every run", kHelpWidth) {
  study_.add_options(own_);
  add_run_options(common_);
  po::options_description options;
  options.add(own_).add(common_);
  const Arguments rest(arguments.begin() + 1, arguments.end());
  values_ = studies::parse_options(options, rest, study_.positional);
}

bool StudyRun::wants_help() const {
  return values_["help"].as<bool>();
}

std::string StudyRun::help() const {
  const std::string bare = study_.positional == nullptr ? "" : fmt::format(" {}", study_.positional);
  return fmt::format("cm384 run {}{} [options]: {}\n\n{}\n{}", study_.name, bare, study_.summary,
                     help_of(own_), help_of(common_));
}

std::string StudyRun::format() const {
  return values_["format"].as<std::string>();
}

FinishedRun StudyRun::run() const {
  const hw::Machine machine = machine_of(values_);
  const std::string folder = values_.count("out") != 0 ? values_["out"].as<std::string>() : "";
  studies::RunFacts facts{.study = std::string(study_.name), .seed = seed_of(values_)};
  const bool stats = values_.count("stats") != 0;
  if (values_["stats-detail"].as<bool>() && !stats)
    throw InputError("--stats-detail: is of --stats FILE, which is not given");
  observe::StatisticsFile statistics(values_["stats-detail"].as<bool>());
  observe::Profile profile;
  observe::ObserverRequest asked = observers_of(values_);
  asked.study = facts.study;
  asked.machine = machine.name;
  const bool watched = asked.any();
  observe::Observers observers(std::move(asked));
  FinishedRun finished;
  {
    ConsoleProgress progress;
    finished.result = study_.run({.machine = machine,
                                  .seed = facts.seed,
                                  .options = values_,
                                  .progress = progress,
                                  .interrupted = interrupted(),
                                  .gdb_port = values_["gdb"].as<int>(),
                                  .out_folder = folder,
                                  .statistics = stats ? &statistics : nullptr,
                                  .profile = folder.empty() ? nullptr : &profile,
                                  .observers = watched ? &observers : nullptr,
                                  .threads = threads_of(values_)});
    facts.wall_s = progress.seconds();
  }
  if (finished.result.parameters.empty())
    finished.result.parameters = studies::effective_options(own_, values_);
  finished.document = studies::to_document(finished.result, machine, facts);
  if (!folder.empty()) {
    if (!profile.empty())
      write_file(folder + "/profile.json", profile.to_document(facts.study, machine).dump() + "\n");
    write_file(folder + "/result.json", finished.document.dump(2) + "\n");
  }
  if (stats) statistics.write(values_["stats"].as<std::string>(), facts.study);
  return finished;
}

int exit_code_of(const studies::StudyResult& result) {
  if (!result.complete && interrupted() != 0) return kInterrupted;
  return result.passed ? kDone : kCheckFailed;
}

}  // namespace cm384::cli
