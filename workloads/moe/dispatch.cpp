#include "workloads/moe/dispatch.h"

#include <fmt/format.h>

#include "traces/routing/routing.h"
#include "workloads/moe/moe_run.h"

namespace cm384::studies {

void check_routing(std::string_view text) {
  traces::parse_routing_source(text);
}

bool checks_hazards(const DispatchCase& setting) {
  return setting.check_hazards == "on" || (setting.check_hazards == "auto" && setting.full);
}

DispatchReading measure_dispatch(const StudyContext& context, const DispatchCase& asked,
                                 SimulatorCounts& counts, double progress_from, double progress_to) {
  const DispatchCase setting = settled(asked, context.machine);
  MoeRun run(context, setting, nullptr, fmt::format("dispatch, {} ranks", setting.ranks), progress_from,
             progress_to);
  const DispatchReading reading = run.dispatch();
  run.count(counts);
  return reading;
}

}  // namespace cm384::studies
