// `cm384 run moe`.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

#include "base/text/error.h"
#include "workloads/kernels/cube_run.h"
#include "workloads/moe/moe.h"
#include "workloads/moe/moe_options.h"
#include "workloads/studies.h"

namespace cm384::studies {
namespace {

constexpr std::array kMoeFields{
    Field{"flow", FieldType::text, "fused operators, or three all-to-alls", true}.as_condition(),
    Field{"ranks", FieldType::integer, "dies that take part, one rank each", true}.as_condition(),
    Field{"expert_ranks", FieldType::integer, "that hold all experts and have no tokens, where given"}
        .as_condition(),
    Field{"batch", FieldType::integer, "tokens per rank; none where they are unlike", true}.as_condition(),
    Field{"latency_us", FieldType::object,
          "of a rank, from the start of its first task to the end of its last", true, kSummaryParts},
    Field{"correct", FieldType::boolean, "bytes equal those of the reference; payload mode full only", true},
    Field{"rerouted", FieldType::ratio,
          "tokens for which a gate of normal weights chooses other experts from the sums than from exact "
          "ones, with "
          "--accuracy"},
    Field{"phases", FieldType::list, "parts of the mean latency, one after the other", false, kPhaseParts},
};

std::span<const Field> moe_fields() {
  static const std::vector<Field> all = [] {
    std::vector<Field> fields(kMoeFields.begin(), kMoeFields.end());
    fields.insert(fields.end(), kAccuracyFields.begin(), kAccuracyFields.end());
    return fields;
  }();
  return all;
}

struct MoeFlowOptions {
  Texts flow{"fused"};
  Integers ranks{8};
  MoeCase setting;
  AccuracyOptions accuracy;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("flow", self.flow, OneOf{{"fused", "basic"}},
          "fused: dispatch and combine; basic: three all-to-alls by SDMA, the host in between");
    visit("ranks", self.ranks, Range{1, kMostRanks}, "ranks, one per die; one row each");
    MoeCase::describe(self.setting, visit);
    visit("across", self.setting.relay, Either{"direct", "relay"},
          "rows of a token to other supernodes, in the fused flow: to each of its experts there, or once to "
          "the "
          "rank of the same number, which forwards them, and on the way back adds them up");
    AccuracyOptions::describe(self.accuracy, visit);
  }
  void follow(const Given& given) { follow_model_of(setting, given); }
  std::vector<std::string> inputs() const { return model_files(setting.model); }
  void settle(const hw::Machine& machine) { setting.settle(machine); }
};

Row to_row(const MoeCase& setting, const MoeReading& reading) {
  Rows phases;
  for (const MoePhase& phase : reading.phases)
    phases.push_back({{"name", phase.name}, {"mean_us", phase.mean_us}});
  Row row{{"flow", setting.flow},       {"ranks", setting.ranks},
          {"batch", batch_of(reading)}, {"latency_us", to_row(reading.latency_us)},
          {"correct", reading.correct}, {"phases", phases}};
  if (setting.expert_ranks > 0) row.set("expert_ranks", setting.expert_ranks);
  return row;
}

void check(const StudyContext& context, const MoeFlowOptions& options) {
  const MoeCase& setting = options.setting;
  check_moe_options(context, setting);
  const bool basic =
      std::ranges::any_of(options.flow, [](const std::string& flow) { return flow != "fused"; });
  if (setting.expert_ranks > 0 && basic) throw InputError("run moe: --expert-ranks: allowed: --flow fused");
  if (setting.relay && basic)
    throw InputError("run moe: --across relay: an all-to-all has no relays; allowed: --flow fused");
  if (setting.relay && options.accuracy.wanted)
    throw InputError("run moe: --accuracy: of sums that are rounded once; allowed: --across direct");
  if (options.accuracy.wanted && !setting.expert_network)
    throw InputError("run moe: --accuracy: allowed: --experts-compute firmware");
  if (!setting.expert_network) return;
  if (basic) throw InputError("run moe: --experts-compute firmware: allowed: --flow fused");
  if (setting.expert_cores > context.machine.die.groups())
    throw InputError(fmt::format("run moe: --expert-cores {}: a die has {} AICs with two AIVs each",
                                 setting.expert_cores, context.machine.die.groups()));
}

StudyResult run(const StudyContext& context, const MoeFlowOptions& options) {
  check(context, options);
  MoeCase setting = options.setting;
  setting.drawn = options.accuracy.draw();
  StudyResult result;
  result.input_files = files_of(setting);
  for_each_ranks(context, options.ranks, result, [&](int ranks, double from, double to) {
    setting.ranks = ranks;
    for (std::size_t i = 0; i < options.flow.size() && context.interrupted == 0; ++i) {
      setting.flow = options.flow[i];
      const double part = (to - from) / static_cast<double>(options.flow.size());
      const double begin = from + part * static_cast<double>(i);
      const MoeReading reading = measure_moe(context, setting, result.simulator, begin, begin + part);
      if (i == 0) note_routing(result, setting, reading);
      if (reading.latency_us.count != 0) {
        Row row = to_row(setting, reading);
        add_accuracy(options.accuracy, reading.accuracy, result, row);
        if (options.accuracy.wanted) row.set("rerouted", reading.rerouted);
        context.finish_row(result, std::move(row));
      }
      if (!reading.correct || *reading.correct) continue;
      result.passed = false;
      result.notes.push_back(
          fmt::format("{} flow, {} ranks: {}", setting.flow, ranks, reading.first_difference));
    }
  });
  return result;
}

}  // namespace

const Study kMoeStudy{"moe",        "a layer's token distribution: fused operators, or three all-to-alls",
                      moe_fields(), options_of<MoeFlowOptions, run>,
                      true,         {},
                      false,        true};

}  // namespace cm384::studies
