// `cm384 trace convert` and `cut`: traces from one form to another, and parts of them.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "app/cli/commands.h"
#include "app/cli/common_options.h"
#include "app/cli/exit_code.h"
#include "app/cli/import_answer.h"
#include "app/cli/replaced_trace.h"
#include "base/text/error.h"
#include "base/text/json.h"
#include "base/text/standard_error.h"
#include "hw/ns3ub_classes.h"
#include "hw/topology_files.h"
#include "traces/import.h"
#include "traces/importers/recognise.h"
#include "traces/traffic.h"

namespace cm384::cli {
namespace {

using studies::Form;
using traces::TraceKind;
using traces::TrafficRecord;

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
  std::string format = "table";
  MachineOptions machine;
  studies::Integers onto;
  studies::Texts collective;
  std::string groups, compute = "recorded", kernels = "by-stream", time_unit = "none";
  Bytes bytes{};
  bool strict = false;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("file", self.file, Form{"FILE"}, "the inputs, then the output");
    visit("format", self.format, studies::OneOf{{"table", "json"}}, "of the answer");
    MachineOptions::describe(self.machine, visit);
    visit("onto", self.onto, studies::Range{0, 65535},
          "dies for the nodes or ranks of a foreign trace, in the order of their first appearance; default: "
          "nodes of one leaf switch on one node");
    visit("collective", self.collective, Form{"KIND=ALGORITHM"},
          "how collectives are written out: all-reduce, all-gather and reduce-scatter by direct, "
          "ring, halving or "
          "hierarchical, all-to-all by direct, bruck or hierarchical, all-gather by bruck as well; default: "
          "direct");
    visit("groups", self.groups, Form{"FILE"},
          "Chakra: JSON of communicator groups, {\"NAME\": [RANK, ...]}; default: a group is all ranks that "
          "name it");
    visit("compute", self.compute, studies::OneOf{{"recorded", "roofline"}},
          "Chakra: nodes with num_ops or tensor_size take their recorded duration where they have one, or "
          "always what the machine's peaks give");
    visit("kernels", self.kernels, studies::OneOf{{"by-stream", "at-once"}},
          "Chakra: kernels of a stream run one at a time, or all that are ready");
    visit("time-unit", self.time_unit, studies::OneOf{{"none", "ps", "ns", "us"}},
          "htsim: of the times at which connections start");
    visit("bytes", self.bytes, studies::Range{0_B, 16_GiB},
          "MSCCL: of the buffer that the chunks of a loop make up");
    visit("strict", self.strict,
          "refuse a trace that cannot be imported exactly, instead of reporting what differs");
  }
};

// A foreign trace is a source: it is not replaced by what is made of it.
void check_output(const std::vector<std::string>& inputs, const std::string& output) {
  for (const std::string& input : inputs) {
    std::error_code none;
    if (std::filesystem::equivalent(input, output, none))
      throw InputError(fmt::format("trace convert: {} is both input and output", input));
  }
}

// Which options have an effect on which foreign traces.
void check_given(const studies::Given& given, TraceKind kind) {
  const std::pair<const char*, std::vector<TraceKind>> of[] = {
      {"collective", {TraceKind::chakra, TraceKind::simai, TraceKind::log}},
      {"groups", {TraceKind::chakra}},
      {"compute", {TraceKind::chakra}},
      {"kernels", {TraceKind::chakra}},
      {"time-unit", {TraceKind::htsim}},
      {"bytes", {TraceKind::msccl}}};
  for (const auto& [name, kinds] : of) {
    if (given.contains(name) && std::ranges::find(kinds, kind) == kinds.end())
      throw InputError(fmt::format("--{}: has no effect on {}", name, traces::text_of(kind)));
  }
}

traces::ImportResult import_as(TraceKind kind, const std::vector<std::string>& inputs,
                               const traces::ImportOptions& how, traces::TrafficSink& sink) {
  switch (kind) {
    case TraceKind::chakra:
      return traces::import_chakra(inputs, how, sink);
    case TraceKind::ns3ub:
      return traces::import_ns3ub(inputs.front(), how, sink);
    case TraceKind::htsim:
      return traces::import_htsim(inputs.front(), how, sink);
    case TraceKind::goal:
      return traces::import_goal(inputs.front(), how, sink);
    case TraceKind::simai:
      return traces::import_simai(inputs.front(), how, sink);
    case TraceKind::msccl:
      return traces::import_msccl(inputs.front(), how, sink);
    case TraceKind::log:
      return traces::import_log(inputs, how, sink);
    default:
      return traces::import_messages(inputs.front(), how, sink);
  }
}

constexpr std::pair<TraceKind, const char*> kImported[] = {
    {TraceKind::chakra, "chakra"}, {TraceKind::ns3ub, "ns-3-UB"}, {TraceKind::messages, "messages"},
    {TraceKind::htsim, "htsim"},   {TraceKind::goal, "GOAL"},     {TraceKind::simai, "SimAI"},
    {TraceKind::msccl, "MSCCL"},   {TraceKind::log, "log"}};

// Foreign traces name nodes or ranks: they are put onto dies of a machine that has as many.
void import(const ConvertOptions& options, const studies::Given& given,
            const std::vector<std::string>& inputs, const std::string& output, TraceKind kind) {
  check_given(given, kind);
  if (kind != TraceKind::chakra && kind != TraceKind::log && inputs.size() > 1)
    throw InputError(fmt::format("trace convert: several inputs; allowed of {}: one", traces::text_of(kind)));
  const hw::Machine machine = options.machine.load();
  check_dies(options.onto, machine);
  const hw::Topology& topology = machine.topology;
  traces::ImportOptions how;
  how.dies = topology.dies();
  how.onto = options.onto;
  how.machine = machine.name;
  how.dies_per_node = topology.dies_per_node;
  how.groups = options.groups;
  const hw::Peaks peaks = hw::peaks_of(machine);
  how.roofline = {peaks.bf16_tflops * 1e12, static_cast<double>(peaks.hbm.bytes_per_second)};
  how.roofline_always = options.compute == "roofline";
  how.concurrent_kernels = options.kernels == "at-once";
  how.strict = options.strict;
  how.bytes = static_cast<std::int64_t>(options.bytes.count);
  how.time_unit = options.time_unit == "ps"   ? Time{1}
                  : options.time_unit == "ns" ? Time{1'000}
                  : options.time_unit == "us" ? Time{1'000'000}
                                              : Time{};
  for (const std::string& choice : options.collective) traces::parse_collective(choice, how.collectives);
  const auto is_of_machine = [&](const std::string& input) {
    std::error_code none;
    return topology.files &&
           std::filesystem::equivalent(std::filesystem::absolute(input).parent_path(), topology.file, none);
  };
  if (kind == TraceKind::ns3ub && options.onto.empty() && is_of_machine(inputs.front())) {
    how.nodes = topology.files->ids_of_dies();
    if (machine.ub.qos.classes > 1) how.priorities = hw::priorities_of_case(topology.file);
    const auto left = std::ranges::find_if(
        machine.notes, [](const std::string& note) { return note.find(": ignored") != std::string::npos; });
    if (options.strict && left != machine.notes.end()) throw InputError(fmt::format("--strict: {}", *left));
  }
  const auto* known = std::ranges::find(kImported, kind, &std::pair<TraceKind, const char*>::first);
  std::string study = known->second;
  if (given.contains("kernels")) study += fmt::format(" --kernels {}", options.kernels);
  if (given.contains("compute")) study += fmt::format(" --compute {}", options.compute);
  const auto sink = traces::create_traffic(output, {machine.name, study, {}});
  const traces::ImportResult result = import_as(kind, inputs, how, *sink);
  if (options.strict && !result.not_taken.empty())
    throw InputError(fmt::format("--strict: not imported exactly: {}", result.not_taken.front()));
  sink->finish();
  print_import(result, output, options.format == "json");
}

int convert(const Program&, const ConvertOptions& options, const studies::Given& given) {
  if (options.file.size() < 2) throw InputError("trace convert: no output given; allowed: IN... OUT");
  std::vector<std::string> inputs(options.file.begin(), options.file.end() - 1);
  const std::string& output = options.file.back();
  check_output(inputs, output);
  if (inputs.size() == 1 && hw::is_topology_folder(inputs.front())) {
    // A case on the machine that it describes.
    ConvertOptions of_case = options;
    if (!given.contains("machine")) of_case.machine.machine = inputs.front();
    import(of_case, given, {(std::filesystem::path(inputs.front()) / "traffic.csv").string()}, output,
           TraceKind::ns3ub);
    return kDone;
  }
  const TraceKind kind = traces::recognise(inputs.front());
  if (std::ranges::find(kImported, kind, &std::pair<TraceKind, const char*>::first) != std::end(kImported)) {
    import(options, given, inputs, output, kind);
    return kDone;
  }
  traces::refuse_foreign(inputs.front());
  if (kind == TraceKind::other)
    throw InputError(
        fmt::format("{}: {}; allowed: traces of cm384, Chakra's .et or JSON, traffic.csv or a case "
                    "of ns-3-UB, a list of messages, htsim, GOAL, SimAI, MSCCL, logs of NCCL and HCCL",
                    inputs.front(), traces::beginning_of(inputs.front())));
  if (inputs.size() > 1) throw InputError("trace convert: several inputs; allowed for Chakra's .et only");
  for (const char* name : {"onto", "machine", "set", "collective", "groups", "compute", "kernels", "strict",
                           "time-unit", "bytes"}) {
    if (given.contains(name))
      throw InputError(fmt::format("--{}: has an effect only on foreign traces", name));
  }
  const auto source = traces::open_traffic(inputs.front());
  may_replace(output);
  const auto sink = traces::create_traffic(output, source->header());
  std::uint64_t records = 0;
  for (TrafficRecord r; source->next(r); ++records) {
    if (interrupted() != 0) return kInterrupted;
    sink->add(r);
  }
  sink->finish();
  if (options.format == "json") {
    fmt::print("{}\n", Json{{"file", output}, {"records", records}}.dump(2));
  } else {
    fmt::print("{}: {} records\n", output, records);
  }
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
    visit("to", self.to, studies::Range{Time{}, 100'000_s}, "and before this one; default: to the end");
    visit("salvage", self.salvage, "end at the first damage instead of refusing the file");
  }
};

// Keeps what begins in [from, to); what it waited for before that is forgotten, so that it waits for the rest
// only, or begins at its recorded time. The output may be the input: it is replaced when the part is whole.
int cut(const Program&, const CutOptions& options, const studies::Given& given) {
  if (options.file.size() != 2)
    throw InputError(fmt::format("trace cut: {} files given; allowed: IN OUT", options.file.size()));
  const bool bounded = given.contains("to");
  if (bounded && options.to <= options.from)
    throw InputError("--to: is not after --from: nothing would be kept");
  const Time to = bounded ? options.to : Time::never();
  const auto source = traces::open_traffic(options.file[0]);
  may_replace(options.file[1]);
  const auto sink = traces::create_traffic(options.file[1], source->header());
  traces::Selection selection;
  TrafficRecord r;
  Time last;
  std::uint64_t read = 0, kept = 0;
  try {
    for (; source->next(r); ++read) {
      if (interrupted() != 0) return kInterrupted;
      last = std::max(last, r.start);
      const bool keep = r.start >= options.from && r.start < to;
      if (!selection.select(r, keep)) continue;
      sink->add(r);
      ++kept;
    }
  } catch (const InputError& error) {
    if (!options.salvage) throw;
    print_error("cm384: {}\n", error.what());
  }
  if (kept == 0 && read != 0)
    throw InputError(
        fmt::format("{}: none of its {} records begins between --from and --to; the last one at "
                    "{:.3f} us",
                    options.file[0], read, last.us()));
  sink->finish();
  fmt::print("{}: {} of {} records\n", options.file[1], kept, read);
  return kDone;
}

}  // namespace

constinit const Command kTraceConvertCommand =
    make_command<ConvertOptions, convert>("trace convert", "IN... OUT",
                                          "between .csv and binary; from ns-3-UB, Chakra, htsim, GOAL, "
                                          "SimAI, MSCCL, logs of NCCL and HCCL, lists of "
                                          "messages",
                                          "file", -1);
constinit const Command kTraceCutCommand = make_command<CutOptions, cut>(
    "trace cut", "IN OUT", "a part of a trace, or what a damaged one still holds", "file", -1);

}  // namespace cm384::cli
