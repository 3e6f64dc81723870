// `cm384 trace from-routing` and `from-timeline`: traffic out of what is no trace of traffic.
#include <fmt/format.h>

#include <filesystem>
#include <optional>

#include "app/cli/commands.h"
#include "app/cli/common_options.h"
#include "app/cli/exit_code.h"
#include "app/cli/import_answer.h"
#include "base/text/error.h"
#include "base/text/output_file.h"
#include "traces/importers/import_timeline.h"
#include "traces/importers/imported_collectives.h"
#include "traces/importers/recognise.h"
#include "traces/routing/routing_traffic.h"

namespace cm384::cli {
namespace {

using studies::Form;
using studies::Range;

void check_output(const std::string& input, const std::string& output) {
  std::error_code none;
  if (std::filesystem::equivalent(input, output, none))
    throw InputError(fmt::format("{} is both input and output", input));
}

struct TraceFromRoutingOptions {
  studies::Texts file;
  int ranks = 8, batch = 128, steps = 1, cores = 48;
  Bytes dispatch_bytes = Bytes{7680}, combine_bytes = Bytes{14336};
  Time expert_time{};
  std::string placement;
  int placement_layer = -1;
  bool drop_repeats = false;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("file", self.file, Form{"FILE"}, "the routing, then the output");
    visit("ranks", self.ranks, Range{2, studies::kMostRanks}, "dies 0 and on");
    visit("batch", self.batch, Range{1, 65536}, "tokens of a rank and step");
    visit("steps", self.steps, Range{1, 1'000'000}, "dispatch and combine one after the other");
    visit("cores", self.cores, Range{1, 64}, "cores of a die that send in turn");
    visit("dispatch-bytes", self.dispatch_bytes, Range{32_B, 128_KiB}, "of a token on its way to an expert");
    visit("combine-bytes", self.combine_bytes, Range{32_B, 128_KiB}, "of a token on its way back");
    visit("expert-time", self.expert_time, Range{Time{}, 1_s},
          "of a rank, from its last token to its first answer");
    visit("placement", self.placement, Form{"FILE"},
          "lines expert,rank, or an expert map of vLLM Ascend, SGLang or EPLB; default: contiguous blocks");
    visit("placement-layer", self.placement_layer, Range{-1, 1000}, "of an expert map; -1: it has one");
    visit("drop-repeats", self.drop_repeats, "leave out rows equal to the row before");
  }
};

int from_routing(const Program&, const TraceFromRoutingOptions& o, const studies::Given&) {
  if (o.file.size() != 2)
    throw InputError(fmt::format("trace from-routing: {} files given; allowed: ROUTING OUT", o.file.size()));
  check_output(o.file[0], o.file[1]);
  traces::RoutingReadOptions how;
  how.drop_repeats = o.drop_repeats;
  const traces::Routing routing = traces::read_routing(o.file[0], how);
  traces::RoutingTraffic traffic{o.ranks,
                                 o.batch,
                                 o.steps,
                                 static_cast<std::uint64_t>(o.dispatch_bytes.count),
                                 static_cast<std::uint64_t>(o.combine_bytes.count),
                                 o.expert_time,
                                 o.cores,
                                 {}};
  if (!o.placement.empty())
    traffic.ranks_of_expert =
        traces::expert_ranks_from_file(o.placement, routing.experts, o.ranks, o.placement_layer);
  const auto sink = traces::create_traffic(o.file[1], {"", "routing", {}});
  const traces::RoutingTrafficResult made = traces::write_routing_traffic(routing, traffic, *sink);
  sink->finish();
  fmt::print("{}: {} records, {} messages; {} tokens stay on their rank\n", o.file[1], made.records,
             made.messages, made.local);
  return kDone;
}

struct TimelineOptions {
  studies::Texts file, collective;
  std::string messages, collectives, format = "table";
  studies::Integers onto;
  bool strict = false;
  MachineOptions machine;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("file", self.file, Form{"FILE"}, "a timeline for each rank, then the output");
    visit("messages", self.messages, Form{"FILE"},
          "lines name,collective,bytes: what operators whose names begin so move; default: what their "
          "arguments say");
    visit("collectives", self.collectives, Form{"FILE"},
          "write when each rank had its collectives, for `trace replay --collectives`");
    visit("strict", self.strict,
          "refuse a trace that cannot be imported exactly, instead of reporting what differs");
    visit("format", self.format, studies::OneOf{{"table", "json"}}, "of the answer");
    visit("collective", self.collective, Form{"KIND=ALGORITHM"}, "as of `trace convert`");
    visit("onto", self.onto, studies::Range{0, 65535}, "dies for the ranks; default: rank r on die r");
    MachineOptions::describe(self.machine, visit);
  }
};

int from_timeline(const Program&, const TimelineOptions& o, const studies::Given&) {
  if (o.file.size() < 2)
    throw InputError("trace from-timeline: no output given; allowed: RANK0 RANK1... OUT");
  const std::vector<std::string> inputs(o.file.begin(), o.file.end() - 1);
  for (const std::string& input : inputs) check_output(input, o.file.back());
  const hw::Machine machine = o.machine.load();
  traces::ImportOptions how;
  how.dies = machine.topology.dies();
  how.onto = o.onto;
  how.machine = machine.name;
  how.dies_per_node = machine.topology.dies_per_node;
  how.strict = o.strict;
  for (const int die : o.onto) {
    if (die >= machine.topology.dies())
      throw InputError(fmt::format("--onto: die {} does not exist; {} has 0 to {}", die, machine.name,
                                   machine.topology.dies() - 1));
  }
  for (const std::string& choice : o.collective) traces::parse_collective(choice, how.collectives);
  const std::vector<traces::TimelineMessage> messages =
      o.messages.empty() ? std::vector<traces::TimelineMessage>() : traces::timeline_messages(o.messages);
  std::optional<OutputFile> collectives;
  if (!o.collectives.empty()) collectives.emplace(o.collectives);
  const auto sink = traces::create_traffic(o.file.back(), {machine.name, "timeline", {}});
  traces::ImportResult result;
  try {
    result = traces::import_timelines(inputs, messages, how, *sink);
  } catch (const InputError&) {
    // What a file is says more than what a timeline lacks in it.
    for (const std::string& input : inputs) {
      const traces::TraceKind kind = traces::recognise(input);
      if (kind != traces::TraceKind::timeline && kind != traces::TraceKind::routing)
        traces::refuse_foreign(input);
    }
    throw;
  }
  sink->finish();
  if (collectives) {
    collectives->write(traces::text_of(result.collectives));
    collectives->finish();
  }
  print_import(result, o.file.back(), o.format == "json");
  return kDone;
}

}  // namespace

constinit const Command kTraceFromRoutingCommand = make_command<TraceFromRoutingOptions, from_routing>(
    "trace from-routing", "ROUTING OUT",
    "dispatch and combine messages of an MoE layer from a recorded routing", "file", -1);
constinit const Command kTraceFromTimelineCommand = make_command<TimelineOptions, from_timeline>(
    "trace from-timeline", "RANK0 RANK1... OUT",
    "a profiler's timelines: operators as compute, collectives as messages", "file", -1);

}  // namespace cm384::cli
