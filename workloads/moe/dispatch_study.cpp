// `cm384 run dispatch`.
#include "workloads/moe/dispatch.h"
#include "workloads/moe/expert_messages_run.h"
#include "workloads/moe/moe_options.h"
#include "workloads/studies.h"

namespace cm384::studies {
namespace {

using DispatchOptions = MoeOptions<DispatchCase>;

StudyResult run(const StudyContext& context, const DispatchOptions& options) {
  DispatchCase setting = options.setting;
  // What is sent is INT8.
  return run_operator(
      context, options.ranks, setting,
      {1, setting.full_mesh ? "dispatch_full_mesh" : "dispatch", {}, options.kernel_time, options.free_fetch},
      [&](const StudyContext& on, int ranks, SimulatorCounts& counts, double from, double to) {
        setting.ranks = ranks;
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
