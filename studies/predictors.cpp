// The table of predictors: which code gives which published figures.
#include <fmt/format.h>

#include <array>

#include "studies/combine.h"
#include "studies/gemm.h"
#include "studies/mla.h"
#include "studies/moe.h"
#include "studies/p2p.h"
#include "studies/p2p_sdma.h"
#include "studies/validation.h"
#include "supernode/workers.h"

namespace cm384::studies {
namespace {

// Studies as validation runs them: no options of their own.
StudyContext study_context(const ValidationContext& context) {
  StudyContext made{context.machine, context.seed, context.progress, context.interrupted};
  made.threads = supernode::host_cores();
  return made;
}

Predictions predict_table_1(const ValidationContext& context, const Wanted& wanted) {
  const StudyContext study = study_context(context);
  Predictions predictions;
  SimulatorCounts counts;
  for (const auto& [tag, target] : {std::pair{"nn", "npu"}, std::pair{"nc", "cpu"}}) {
    for (const char* operation : {"read", "write"}) {
      for (const auto& [suffix, distance] :
           {std::pair{"inter", "inter-node"}, std::pair{"intra", "intra-node"}}) {
        P2pPoint point;
        point.operation = operation;
        point.target = target;
        point.distance = distance;
        const std::string bandwidth = fmt::format("t1-{}-{}-bw-{}", tag, operation, suffix);
        const std::string latency = fmt::format("t1-{}-{}-lat-{}", tag, operation, suffix);
        if (!wanted(bandwidth) && !wanted(latency)) continue;
        // A quarter of the study's volume: the rate is steady after the first microseconds.
        point.volume = wanted(bandwidth) ? 4_MiB : 0_B;
        const P2pReading reading = measure_p2p(study, point, counts);
        if (context.interrupted != 0) return predictions;
        if (wanted(bandwidth)) predictions[bandwidth] = reading.bandwidth_GBps;
        predictions[latency] = reading.latency_us;
        context.progress.update(static_cast<double>(predictions.size()) / 16, counts.simulated,
                                counts.events);
      }
    }
  }
  return predictions;
}

Predictions predict_startup(const ValidationContext& context, const Wanted&) {
  P2pPoint point;
  point.operation = "write";
  point.volume = 0_B;
  SimulatorCounts counts;
  return {{"s-aiv-startup", measure_p2p(study_context(context), point, counts).startup_us}};
}

Predictions predict_sdma(const ValidationContext& context, const Wanted&) {
  P2pPoint point;
  point.operation = "write";
  SimulatorCounts counts;
  return {{"s-sdma-startup", measure_sdma(study_context(context), point, counts).startup_us}};
}

// Both operators from one machine: dispatch is as without combine after it.
Predictions predict_table_7(const ValidationContext& context, const Wanted& wanted) {
  Predictions predictions;
  SimulatorCounts counts;
  for (const int ranks : {8, 256}) {
    const std::string dispatch = fmt::format("t7-dispatch-{}", ranks),
                      combine = fmt::format("t7-combine-{}", ranks);
    CombineCase setting;
    setting.ranks = ranks;
    if (wanted(combine)) {
      const CombineReading reading = measure_combine(study_context(context), setting, counts);
      if (context.interrupted != 0) break;
      predictions[dispatch] = reading.dispatch.task_us.mean;
      predictions[combine] = reading.combine.task_us.mean;
    } else if (wanted(dispatch)) {
      const DispatchReading reading = measure_dispatch(study_context(context), setting, counts);
      if (context.interrupted != 0) break;
      predictions[dispatch] = reading.task_us.mean;
    }
  }
  return predictions;
}

Predictions predict_flows(const ValidationContext& context, const Wanted& wanted) {
  Predictions predictions;
  SimulatorCounts counts;
  for (const char* flow : {"fused", "basic"}) {
    const std::string id = fmt::format("s-moe-{}", flow);
    if (!wanted(id)) continue;
    MoeCase setting;
    setting.flow = flow;
    setting.ranks = 256;
    setting.iterations = 1;
    const MoeReading reading = measure_moe(study_context(context), setting, counts);
    if (context.interrupted != 0) break;
    predictions[id] = reading.latency_us.mean;
  }
  return predictions;
}

// The conditions of [P] table 10's first row.
Predictions predict_table_10(const ValidationContext& context, const Wanted&) {
  GemmSetting setting;
  setting.group_rows.assign(4, 7168);
  setting.tile_m = 128;
  setting.tile_n = 152;
  SimulatorCounts counts;
  const GemmReading reading = measure_gemm(study_context(context), setting, counts);
  if (context.interrupted != 0) return {};
  const double peak = cube_peak(context.machine, setting.type);
  return {{"t10-gemm-1", reading.operations / (reading.task_us * 1e-6) / peak * 100}};
}

// The published conditions are not stated. All 128 heads on one die are not memory-bound (242 operations a
// byte of cache, the die's ridge is 235); 32 are, as where four dies share the heads. A cache long enough
// that launch and first instructions do not matter.
Predictions predict_table_9(const ValidationContext& context, const Wanted&) {
  MlaSetting setting;
  setting.kv_lens.assign(96, 16384);
  setting.heads = 32;
  SimulatorCounts counts;
  const MlaReading reading = measure_mla(study_context(context), setting, counts);
  if (context.interrupted != 0) return {};
  return {{"t9-mla-bw", reading.attention.kv_bytes / (reading.attention.task_us * 1e3)}};
}

}  // namespace

std::span<const Predictor> predictors() {
  static const std::array<Predictor, 7> table{
      Predictor{{"t1-"}, predict_table_1},         Predictor{{"s-aiv-startup"}, predict_startup},
      Predictor{{"s-sdma-startup"}, predict_sdma}, Predictor{{"t7-"}, predict_table_7},
      Predictor{{"s-moe-"}, predict_flows},        Predictor{{"t9-"}, predict_table_9},
      Predictor{{"t10-"}, predict_table_10}};
  return table;
}

}  // namespace cm384::studies
