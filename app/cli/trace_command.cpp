// `cm384 trace convert` and `cut`: traces from one form to another, and parts of them.
#include <fmt/format.h>

#include <filesystem>

#include "app/cli/commands.h"
#include "app/cli/common_options.h"
#include "app/cli/exit_code.h"
#include "app/cli/replaced_trace.h"
#include "base/text/error.h"
#include "base/text/json.h"
#include "base/text/standard_error.h"
#include "hw/topology_files.h"
#include "traces/import.h"
#include "traces/importers/node_placement.h"
#include "traces/traffic.h"

namespace cm384::cli {
namespace {

using studies::Form;
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

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("file", self.file, Form{"FILE"}, "the inputs, then the output");
    visit("format", self.format, studies::OneOf{{"table", "json"}}, "of the answer");
    MachineOptions::describe(self.machine, visit);
    visit("onto", self.onto, studies::Range{0, 65535},
          "dies for the nodes or ranks of a foreign trace, in the order in which they are met; default: "
          "nodes of "
          "one leaf switch on one node");
    visit("collective", self.collective, Form{"KIND=ALGORITHM"},
          "how Chakra's collectives are written out: all-reduce, all-gather and reduce-scatter by direct, "
          "ring, halving or "
          "hierarchical, all-to-all by direct, bruck or hierarchical, all-gather by bruck as well; default: "
          "direct");
  }
};

// A foreign trace is somebody's source: it is not replaced by what is made of it.
void check_output(const std::vector<std::string>& inputs, const std::string& output) {
  for (const std::string& input : inputs) {
    std::error_code none;
    if (std::filesystem::equivalent(input, output, none))
      throw InputError(fmt::format("trace convert: {} is both input and output", input));
  }
}

void print_import(const traces::ImportResult& result, const std::string& output, bool json) {
  for (const std::string& note : result.notes) print_error("cm384: {}\n", note);
  if (!json) {
    fmt::print("{}: {} records\nplaced {}: {}\n", output, result.records, result.placement,
               traces::text_of(result.mapping));
    return;
  }
  Json answer{{"file", output}, {"records", result.records}, {"placement", result.placement}};
  answer["mapping"] = Json::array();
  for (const auto& [node, die] : result.mapping) answer["mapping"].push_back({{"node", node}, {"die", die}});
  answer["notes"] = result.notes;
  fmt::print("{}\n", answer.dump(2));
}

// Foreign traces name nodes or ranks: they are put onto dies of a machine that has as many.
enum class Format { chakra, ns3ub, messages };
void import(const ConvertOptions& options, const std::vector<std::string>& inputs, const std::string& output,
            Format format) {
  const bool chakra = format == Format::chakra;
  if (!chakra && inputs.size() > 1) throw InputError("trace convert: more than one .csv");
  const hw::Machine machine = options.machine.load();
  check_dies(options.onto, machine);
  const hw::Topology& topology = machine.topology;
  traces::ImportOptions how{topology.dies(), options.onto, machine.name, topology.dies_per_node, {}, {}};
  for (const std::string& choice : options.collective) traces::parse_collective(choice, how.collectives);
  if (!chakra && !options.collective.empty())
    throw InputError("--collective: has an effect only on Chakra's .et");
  const auto is_of_machine = [&](const std::string& input) {
    std::error_code none;
    return topology.files &&
           std::filesystem::equivalent(std::filesystem::absolute(input).parent_path(), topology.file, none);
  };
  if (format == Format::ns3ub && options.onto.empty() && is_of_machine(inputs.front()))
    how.nodes = topology.files->ids_of_dies();
  const auto sink = traces::create_traffic(output, {machine.name,
                                                    chakra                    ? "chakra"
                                                    : format == Format::ns3ub ? "ns-3-UB"
                                                                              : "messages",
                                                    {}});
  const traces::ImportResult result = chakra ? traces::import_chakra(inputs, how, *sink)
                                      : format == Format::ns3ub
                                          ? traces::import_ns3ub(inputs.front(), how, *sink)
                                          : traces::import_messages(inputs.front(), how, *sink);
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
    import(of_case, {(std::filesystem::path(inputs.front()) / "traffic.csv").string()}, output,
           Format::ns3ub);
    return kDone;
  }
  const bool chakra = inputs.front().ends_with(".et");
  const bool csv = inputs.front().ends_with(".csv");
  if (chakra || (csv && (traces::is_ns3ub(inputs.front()) || traces::is_message_list(inputs.front())))) {
    import(options, inputs, output,
           chakra                             ? Format::chakra
           : traces::is_ns3ub(inputs.front()) ? Format::ns3ub
                                              : Format::messages);
    return kDone;
  }
  if (inputs.size() > 1) throw InputError("trace convert: several inputs; allowed for Chakra's .et only");
  for (const char* name : {"onto", "machine", "set", "collective"}) {
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
      if (!selection.take(r, keep)) continue;
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

constinit const Command kTraceConvertCommand = make_command<ConvertOptions, convert>(
    "trace convert", "IN... OUT", "between .csv and binary; from ns-3-UB's traffic.csv and Chakra's .et",
    "file", -1);
constinit const Command kTraceCutCommand = make_command<CutOptions, cut>(
    "trace cut", "IN OUT", "a part of a trace, or what a damaged one still holds", "file", -1);

}  // namespace cm384::cli
