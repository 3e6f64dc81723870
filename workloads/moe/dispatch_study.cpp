// `cm384 run dispatch`.
#include "workloads/moe/dispatch.h"
#include "workloads/moe/expert_messages_run.h"
#include "workloads/moe/moe_options.h"
#include "workloads/moe/normal_exchange_run.h"
#include "workloads/studies.h"

namespace cm384::studies {
namespace {

using DispatchOptions = MoeOptions<DispatchCase>;

std::string_view kernel_of(const DispatchCase& setting) {
  if (setting.relay) return "dispatch_relay";
  return setting.full_mesh ? "dispatch_full_mesh" : "dispatch";
}

StudyResult run(const StudyContext& context, const DispatchOptions& options) {
  DispatchCase setting = options.setting;
  // What is sent is INT8.
  return run_operator(
      context, options.ranks, setting, {1, kernel_of(setting), {}, options.kernel_time, options.free_fetch},
      [&](const StudyContext& on, int ranks, SimulatorCounts& counts, double from, double to) {
        setting.ranks = ranks;
        if (setting.normal) return measure_normal(on, setting, ExchangeDirection::dispatch, counts, from, to);
        if (!context.machine.accelerator.has_cores())
          return measure_messages(on, setting, ExchangeDirection::dispatch, counts, from, to);
        return measure_dispatch(on, setting, counts, from, to);
      });
}

}  // namespace

const Study kDispatchStudy{
    "dispatch",
    "FusedDispatch by AIV-Direct over many ranks; without cores DeepEP's low-latency dispatch",
    kOperatorFields,
    options_of<DispatchOptions, run>,
    true,
    {},
    true,
    true};

}  // namespace cm384::studies
