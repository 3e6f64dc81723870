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
#include "hw/json.h"
#include "traces/import.h"
#include "traces/traffic.h"

namespace cm384::cli {
namespace {

using studies::Form;
using traces::TrafficRecord;

// The files that an action takes. Throws InputError unless there are as many as it needs.
const std::string& one_file(const studies::Texts& files, std::string_view action) {
  if (files.size() == 1) return files.front();
  throw InputError(fmt::format("trace {}: {} files given; allowed: 1", action, files.size()));
}

struct InfoOptions {
  studies::Texts file;
  std::string format = "table";

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("file", self.file, Form{"FILE"}, "the trace");
    visit("format", self.format, studies::OneOf{{"table", "json"}}, "of the answer");
  }
};

int info(const Program&, const InfoOptions& options, const studies::Given&) {
  const std::string& path = one_file(options.file, "info");
  const auto source = traces::open_traffic(path);
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
  Json all{{"file", path},
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
  if (options.format == "json") {
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

struct CheckOptions {
  studies::Texts file;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("file", self.file, Form{"FILE"}, "the traces");
  }
};

int check(const Program&, const CheckOptions& options, const studies::Given&) {
  if (options.file.empty()) throw InputError("trace check: no file given");
  for (const std::string& path : options.file) {
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

// Throws InputError for a die that the machine does not have.
void check_dies(const studies::Integers& dies, const hw::Machine& machine) {
  for (const int die : dies) {
    if (die >= machine.topology.dies())
      throw InputError(fmt::format("--onto: die {} does not exist; {} has 0 to {}", die, machine.name,
                                   machine.topology.dies() - 1));
  }
}

struct ConvertOptions {
  studies::Texts file;
  MachineOptions machine;
  studies::Integers onto;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("file", self.file, Form{"FILE"}, "the inputs, then the output");
    MachineOptions::describe(self.machine, visit);
    visit("onto", self.onto, studies::Range{0, 65535},
          "dies for the nodes or ranks of a foreign trace; default: 0, 1, ...");
  }
};

// Foreign traces name nodes or ranks: they are put onto dies of a machine that has as many.
int convert(const Program&, const ConvertOptions& options, const studies::Given& given) {
  if (options.file.size() < 2) throw InputError("trace convert: no output given; allowed: IN... OUT");
  const std::vector<std::string> inputs(options.file.begin(), options.file.end() - 1);
  const std::string& output = options.file.back();
  const bool chakra = inputs.front().ends_with(".et");
  if (chakra || (inputs.front().ends_with(".csv") && traces::is_ns3ub(inputs.front()))) {
    const hw::Machine machine = options.machine.load();
    traces::ImportOptions how{machine.topology.dies(), options.onto, machine.name};
    check_dies(options.onto, machine);
    if (!chakra && inputs.size() > 1) throw InputError("trace convert: more than one traffic.csv");
    const auto sink = traces::create_traffic(output, {machine.name, chakra ? "chakra" : "ns-3-UB"});
    const auto notes =
        chakra ? traces::import_chakra(inputs, how, *sink) : traces::import_ns3ub(inputs.front(), how, *sink);
    sink->finish();
    for (const std::string& note : notes) fmt::print(stderr, "cm384: {}\n", note);
  } else {
    if (inputs.size() > 1) throw InputError("trace convert: several inputs; allowed for Chakra's .et only");
    for (const char* name : {"onto", "machine", "set"}) {
      if (given.contains(name))
        throw InputError(fmt::format("--{}: has an effect only on foreign traces", name));
    }
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

struct CutOptions {
  studies::Texts file;
  Time from{}, to{};
  bool salvage = false;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("file", self.file, Form{"FILE"}, "the input, then the output");
    visit("from", self.from, studies::Range{Time{}, 100'000_s}, "records that begin at this time or later");
    visit("to", self.to, studies::Range{Time{}, 100'000_s}, "and before this one; 0: to the end");
    visit("salvage", self.salvage, "end at the first damage instead of refusing the file");
  }
};

// Keeps what begins in [from, to); what it waited for before that is forgotten, so that it waits for the rest
// only, or begins at its recorded time.
int cut(const Program&, const CutOptions& options, const studies::Given&) {
  if (options.file.size() != 2)
    throw InputError(fmt::format("trace cut: {} files given; allowed: IN OUT", options.file.size()));
  if (options.to != Time{} && options.to <= options.from)
    throw InputError("--to: is not after --from: nothing would be kept");
  const Time to = options.to == Time{} ? Time::never() : options.to;
  const auto source = traces::open_traffic(options.file[0]);
  const auto sink = traces::create_traffic(options.file[1], source->header());
  traces::Selection selection;
  TrafficRecord r;
  std::uint64_t read = 0, kept = 0;
  try {
    for (; source->next(r); ++read) {
      if (interrupted() != 0) return kInterrupted;
      const bool keep = r.start >= options.from && r.start < to;
      if (!selection.take(r, keep)) continue;
      sink->add(r);
      ++kept;
    }
  } catch (const InputError& error) {
    if (!options.salvage) throw;
    fmt::print(stderr, "cm384: {}\n", error.what());
  }
  sink->finish();
  fmt::print("{}: {} of {} records\n", options.file[1], kept, read);
  return kDone;
}

}  // namespace

constinit const Command kTraceInfoCommand =
    make_command<InfoOptions, info>("trace info", "FILE", "what a traffic trace holds", "file", -1);
constinit const Command kTraceCheckCommand = make_command<CheckOptions, check>(
    "trace check", "FILE...", "whether traces are good; names file, line or offset, and field", "file", -1);
constinit const Command kTraceConvertCommand = make_command<ConvertOptions, convert>(
    "trace convert", "IN... OUT", "between .csv and binary; from ns-3-UB's traffic.csv and Chakra's .et",
    "file", -1);
constinit const Command kTraceCutCommand = make_command<CutOptions, cut>(
    "trace cut", "IN OUT", "a part of a trace, or what a damaged one still holds", "file", -1);

}  // namespace cm384::cli
