// `cm384 trace`: what a trace holds, whether it is good, and from one form to another.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>

#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/exit_code.h"
#include "hw/error.h"
#include "hw/nearest_name.h"
#include "hw/quantity.h"
#include "studies/options.h"
#include "traces/import.h"
#include "traces/lines.h"
#include "traces/traffic.h"

namespace cm384::cli {
namespace {

namespace po = boost::program_options;
using traces::TrafficRecord;

constexpr std::string_view kUsage =
    "cm384 trace info FILE                 what a traffic trace holds\n"
    "cm384 trace check FILE...             whether traces are good; names file, line or offset, and field\n"
    "cm384 trace convert IN... OUT         from one format to another, by the name's end: .csv, else "
    "binary;\n"
    "                                      also the traffic.csv of ns-3-UB, and Chakra's .et, one a rank\n"
    "cm384 trace cut IN OUT                a part of a trace, or what a damaged one still holds\n"
    "cm384 trace replay FILE               run a traffic trace on a machine\n"
    "cm384 trace generate routing|traffic OUT   a trace by rule and seed\n"
    "\n"
    "`cm384 run STUDY --record FILE` records one. Every action knows --help.\n";

const std::vector<std::string> kActions{"info", "check", "convert", "cut", "generate", "replay"};

// The files an action takes, and its options.
struct Request {
  po::variables_map values;
  std::vector<std::string> files;
  bool help = false;
};

Request parse(po::options_description& options, const Arguments& arguments, const std::string& action,
              std::size_t files, const std::string& usage) {
  options.add_options()("file", po::value<std::vector<std::string>>()->value_name("FILE"),
                        "the files, by name or as bare arguments");
  add_help_option(options);
  Request request;
  request.values = studies::parse_options(options, arguments, "file", -1);
  request.help = request.values["help"].as<bool>();
  if (request.help) {
    fmt::print("cm384 trace {} {}\n\n{}", action, usage, help_of(options));
    return request;
  }
  if (request.values.count("file") != 0)
    request.files = request.values["file"].as<std::vector<std::string>>();
  if (files == 0 ? request.files.empty() : request.files.size() != files)
    throw InputError(
        fmt::format("trace {}: {} files named; allowed: {}", action, request.files.size(), usage));
  return request;
}

int info(const Arguments& arguments) {
  po::options_description options("options of `trace info`", 110);
  options.add_options()("format", studies::choice_option("table", {"table", "json"}), "of the answer");
  const Request request = parse(options, arguments, "info", 1, "FILE");
  if (request.help) return kDone;
  const auto source = traces::open_traffic(request.files.front());
  std::map<std::string, std::uint64_t> kinds;
  std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> operations;
  std::uint64_t records = 0, dependencies = 0, remote = 0;
  Time first = Time::never(), last;
  std::map<traces::Unit, std::uint64_t> sources;
  TrafficRecord r;
  for (; source->next(r); ++records) {
    if (interrupted() != 0) return kInterrupted;
    ++kinds[std::string(traces::name_of(r.kind))];
    dependencies += r.dependencies.size();
    first = std::min(first, r.start);
    last = std::max(last, r.end);
    if (!r.moves()) continue;
    auto& [count, bytes] = operations[std::string(traces::name_of(r.operation))];
    ++count;
    bytes += r.total_bytes();
    if (r.target != r.source) remote += r.total_bytes();
    ++sources[r.source];
  }
  Json all{{"file", request.files.front()},
           {"machine", source->header().machine},
           {"study", source->header().study},
           {"records", records},
           {"dependencies", dependencies},
           {"begin_us", records == 0 ? 0 : first.us()},
           {"end_us", last.us()},
           {"sources", sources.size()},
           {"bytes_to_other_memory", remote}};
  for (const auto& [kind, count] : kinds) all["kinds"][kind] = count;
  for (const auto& [operation, sum] : operations)
    all["operations"][operation] = {{"transactions", sum.first}, {"bytes", sum.second}};
  if (request.values["format"].as<std::string>() == "json") {
    fmt::print("{}\n", all.dump(2));
    return kDone;
  }
  for (const auto& [key, value] : all.items()) {
    if (!value.is_object()) {
      fmt::print("{:<22}{}\n", key, value.is_string() ? value.get<std::string>() : value.dump());
      continue;
    }
    for (const auto& [name, inner] : value.items()) fmt::print("{:<22}{}\n", name, inner.dump());
  }
  return kDone;
}

int check(const Arguments& arguments) {
  po::options_description options("options of `trace check`", 110);
  const Request request = parse(options, arguments, "check", 0, "FILE...");
  for (const std::string& path : request.files) {
    const auto source = traces::open_traffic(path);
    TrafficRecord r;
    std::uint64_t records = 0;
    for (; source->next(r); ++records) {
      if (interrupted() != 0) return kInterrupted;
    }
    fmt::print("{}: good, {} records\n", path, records);
  }
  return kDone;
}

std::vector<int> dies_of(const std::string& text, const hw::Machine& machine) {
  std::vector<int> dies;
  for (const std::string_view part : traces::split_fields(text)) {
    const std::int64_t die = hw::parse_integer(part);
    if (die < 0 || die >= machine.topology.dies())
      throw InputError(fmt::format("--onto: die {} does not exist; {} has 0 to {}", die, machine.name,
                                   machine.topology.dies() - 1));
    dies.push_back(static_cast<int>(die));
  }
  return dies;
}

// Foreign traces name nodes or ranks: they are put onto dies of a machine that has as many.
int convert(const Arguments& arguments) {
  po::options_description options("options of `trace convert`", 110);
  add_machine_options(options);
  options.add_options()("onto", studies::required_text_option("N,..."),
                        "dies for the nodes or ranks of a foreign trace; without it 0, 1, ...");
  const Request request = parse(options, arguments, "convert", 0, "IN... OUT");
  if (request.help) return kDone;
  if (request.files.size() < 2) throw InputError("trace convert: names no output; allowed: IN... OUT");
  const std::vector<std::string> inputs(request.files.begin(), request.files.end() - 1);
  const std::string& output = request.files.back();
  const bool chakra = inputs.front().ends_with(".et");
  if (chakra || (inputs.front().ends_with(".csv") && traces::is_ns3ub(inputs.front()))) {
    const hw::Machine machine = machine_of(request.values);
    traces::ImportOptions how{machine.topology.dies(), {}, machine.name};
    if (request.values.count("onto") != 0)
      how.onto = dies_of(request.values["onto"].as<std::string>(), machine);
    if (!chakra && inputs.size() > 1) throw InputError("trace convert: more than one traffic.csv");
    const auto sink = traces::create_traffic(output, {machine.name, chakra ? "chakra" : "ns-3-UB"});
    const auto notes =
        chakra ? traces::import_chakra(inputs, how, *sink) : traces::import_ns3ub(inputs.front(), how, *sink);
    sink->finish();
    for (const std::string& note : notes) fmt::print(stderr, "cm384: {}\n", note);
  } else {
    if (inputs.size() > 1) throw InputError("trace convert: several inputs; allowed for Chakra's .et only");
    const auto source = traces::open_traffic(inputs.front());
    const auto sink = traces::create_traffic(output, source->header());
    for (TrafficRecord r; source->next(r);) {
      if (interrupted() != 0) return kInterrupted;
      sink->add(r);
    }
    sink->finish();
  }
  fmt::print("{}: written\n", output);
  return kDone;
}

constexpr Time kAtMost{std::int64_t{1} << 60};

// Keeps what begins in [from, to); what it waited for before that is forgotten, so that it waits for the rest
// only, or begins at its recorded time.
int cut(const Arguments& arguments) {
  po::options_description options("options of `trace cut`", 110);
  options.add_options()("from", studies::time_option(0_ns), "records that begin at this time or later")(
      "to", studies::time_option(kAtMost), "... and before this one")(
      "salvage", po::bool_switch(), "end at the first damage instead of refusing the file");
  const Request request = parse(options, arguments, "cut", 2, "IN OUT");
  if (request.help) return kDone;
  const Time from = request.values["from"].as<Time>();
  const Time to = request.values["to"].as<Time>();
  const bool salvage = request.values["salvage"].as<bool>();
  const auto source = traces::open_traffic(request.files[0]);
  const auto sink = traces::create_traffic(request.files[1], source->header());
  traces::Selection selection;
  TrafficRecord r;
  std::uint64_t read = 0, kept = 0;
  try {
    for (; source->next(r); ++read) {
      if (interrupted() != 0) return kInterrupted;
      const bool keep = r.start >= from && r.start < to;
      if (!selection.take(r, keep)) continue;
      sink->add(r);
      ++kept;
    }
  } catch (const InputError& error) {
    if (!salvage) throw;
    fmt::print(stderr, "cm384: {}\n", error.what());
  }
  sink->finish();
  fmt::print("{}: {} of {} records\n", request.files[1], kept, read);
  return kDone;
}

}  // namespace

int trace_command(const Arguments& arguments) {
  if (arguments.empty() || arguments.front() == "--help" || arguments.front() == "-h") {
    fmt::print("{}", kUsage);
    if (arguments.empty())
      throw InputError(fmt::format("trace: says not what to do; allowed: {}", fmt::join(kActions, ", ")));
    return kDone;
  }
  const std::string& action = arguments.front();
  const Arguments rest(arguments.begin() + 1, arguments.end());
  if (action == "info") return info(rest);
  if (action == "check") return check(rest);
  if (action == "convert") return convert(rest);
  if (action == "cut") return cut(rest);
  if (action == "generate") return trace_generate_command(rest);
  if (action == "replay") return trace_replay_command(rest);
  throw InputError(fmt::format("trace {}: unknown{}; allowed: {}", action, hw::suggestion(action, kActions),
                               fmt::join(kActions, ", ")));
}

}  // namespace cm384::cli
