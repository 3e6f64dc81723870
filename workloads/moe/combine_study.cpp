// `cm384 run combine`.
#include "workloads/moe/combine.h"
#include "workloads/moe/expert_messages_run.h"
#include "workloads/moe/moe_options.h"
#include "workloads/moe/normal_exchange_run.h"
#include "workloads/studies.h"

namespace cm384::studies {
namespace {

using CombineOptions = MoeOptions<CombineCase>;

StudyResult run(const StudyContext& context, const CombineOptions& options) {
  CombineCase setting = options.setting;
  const Row more{
      {"completion", context.machine.accelerator.has_cores() ? Value(setting.completion) : Value("flag")}};
  // What is sent is BF16.
  return run_operator(
      context, options.ranks, setting,
      {2, setting.relay ? "combine_relay" : "combine", more, options.kernel_time, options.free_fetch},
      [&](const StudyContext& on, int ranks, SimulatorCounts& counts, double from, double to) {
        setting.ranks = ranks;
        if (setting.normal) return measure_normal(on, setting, ExchangeDirection::combine, counts, from, to);
        if (!context.machine.accelerator.has_cores())
          return measure_messages(on, setting, ExchangeDirection::combine, counts, from, to);
        return measure_combine(on, setting, counts, from, to).combine;
      });
}

}  // namespace

const Study kCombineStudy{
    "combine",
    "FusedCombine by AIV-Direct over many ranks; without cores DeepEP's low-latency combine",
    kOperatorFields,
    options_of<CombineOptions, run>,
    true,
    {},
    true,
    true};

}  // namespace cm384::studies
