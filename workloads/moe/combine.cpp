#include "workloads/moe/combine.h"

#include <fmt/format.h>

#include "workloads/moe/moe_run.h"

namespace cm384::studies {

CombineReading measure_combine(const StudyContext& context, const CombineCase& asked, SimulatorCounts& counts,
                               double progress_from, double progress_to) {
  const CombineCase setting = settled(asked, context.machine);
  MoeRun run(context, setting, &setting, fmt::format("combine, {} ranks", setting.ranks), progress_from,
             progress_to);
  CombineReading reading;
  reading.dispatch = run.dispatch(0, 0.5);
  reading.combine = run.combine(0.5, 1);
  if (reading.dispatch.correct && !*reading.dispatch.correct) {
    reading.combine.correct = false;
    reading.combine.first_difference = reading.dispatch.first_difference;
  }
  run.count(counts);
  return reading;
}

}  // namespace cm384::studies
