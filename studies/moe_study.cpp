// `cm384 run moe`.
#include <fmt/format.h>

#include <algorithm>

#include "hw/error.h"
#include "studies/moe.h"
#include "studies/moe_options.h"
#include "studies/studies.h"
#include "studies/validation.h"

namespace cm384::studies {
namespace {

void add_options(boost::program_options::options_description& options) {
  options.add_options()("flow", choices_option("fused", {"fused", "basic"}),
                        "fused: dispatch and combine; basic: three all-to-alls by SDMA, the host in between")(
      "expert-time", time_option(0_ns), "what the experts take, as a delay between the two ways; 0: no task")(
      "experts-compute", choice_option("delay", {"delay", "firmware"}),
      "firmware: the experts' feed-forward network on cube and vector cores, in the fused flow")(
      "expert-width", integer_option(2048, 64, 4096),
      "of that network: elements between its multiplications, a multiple of 64")(
      "expert-cores", integer_option(24, 1, 64), "AICs of a rank that it runs on, each with its two AIVs");
  add_moe_options(options);
  add_combine_options(options);
}

Json to_row(const MoeCase& setting, const MoeReading& reading) {
  Json row;
  row["flow"] = setting.flow;
  row["ranks"] = setting.ranks;
  row["batch"] = reading.batch;
  row["latency_us"] = to_json(reading.latency_us);
  row["correct"] = reading.correct ? Json(*reading.correct) : Json();
  Json phases = Json::array();
  for (const MoePhase& phase : reading.phases)
    phases.push_back({{"name", phase.name}, {"mean_us", phase.mean_us}});
  row["phases"] = phases;
  return row;
}

void read_expert_options(const StudyContext& context, MoeCase& setting) {
  setting.expert_network = context.option<std::string>("experts-compute") == "firmware";
  setting.expert_width = context.option<int>("expert-width");
  setting.expert_cores = context.option<int>("expert-cores");
  if (!setting.expert_network) return;
  const auto& flows = context.option<Names>("flow").values;
  if (std::any_of(flows.begin(), flows.end(), [](const std::string& flow) { return flow != "fused"; }))
    throw InputError("run moe: --experts-compute firmware: allowed: --flow fused");
  if (setting.expert_time != Time{})
    throw InputError("run moe: --expert-time: allowed: 0 with --experts-compute firmware");
  if (setting.expert_width % 64 != 0)
    throw InputError(
        fmt::format("run moe: --expert-width {}: allowed: multiples of 64", setting.expert_width));
  if (setting.expert_cores > context.machine.die.aic)
    throw InputError(fmt::format("run moe: --expert-cores {}: a die has {} AICs", setting.expert_cores,
                                 context.machine.die.aic));
}

StudyResult run(const StudyContext& context) {
  MoeCase setting;
  read_moe_options(context, setting);
  read_combine_options(context, setting);
  setting.expert_time = context.option<Time>("expert-time");
  read_expert_options(context, setting);
  StudyResult result;
  result.input_files = routing_files(context);
  const auto& flows = context.option<Names>("flow").values;
  for_each_ranks(context, result, [&](int ranks, double from, double to) {
    setting.ranks = ranks;
    for (std::size_t i = 0; i < flows.size() && context.interrupted == 0; ++i) {
      setting.flow = flows[i];
      const double part = (to - from) / static_cast<double>(flows.size());
      const double begin = from + part * static_cast<double>(i);
      const MoeReading reading = measure_moe(context, setting, result.simulator, begin, begin + part);
      if (reading.latency_us.count != 0) result.rows.push_back(to_row(setting, reading));
      if (!reading.correct || *reading.correct) continue;
      result.passed = false;
      result.notes.push_back(
          fmt::format("{} flow, {} ranks: {}", setting.flow, ranks, reading.first_difference));
    }
  });
  return result;
}

}  // namespace

const Study kMoeStudy{"moe", "a layer's token distribution: fused operators, or three all-to-alls",
                      add_options, run};

}  // namespace cm384::studies
