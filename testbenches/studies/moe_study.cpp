// `cm384 run moe`.
#include <fmt/format.h>

#include "testbenches/studies/moe.h"
#include "testbenches/studies/moe_options.h"
#include "testbenches/studies/studies.h"
#include "testbenches/studies/validation.h"

namespace cm384::studies {
namespace {

void add_options(boost::program_options::options_description& options) {
  options.add_options()("flow", choices_option("fused", {"fused", "basic"}),
                        "fused: dispatch and combine; basic: three all-to-alls by SDMA, the host in between")(
      "expert-time", time_option(0_ns), "what the experts take, as a delay between the two ways; 0: no task");
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

StudyResult run(const StudyContext& context) {
  MoeCase setting;
  read_moe_options(context, setting);
  read_combine_options(context, setting);
  setting.expert_time = context.option<Time>("expert-time");
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
