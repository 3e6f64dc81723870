// `cm384 run dispatch`.
#include "studies/dispatch.h"
#include "studies/moe_options.h"
#include "studies/studies.h"

namespace cm384::studies {
namespace {

StudyResult run(const StudyContext& context) {
  DispatchCase setting;
  read_moe_options(context, setting);
  const std::vector<const char*> phases = setting.full_mesh
                                              ? std::vector{"init", "send", "counts", "copy"}
                                              : std::vector{"init", "send", "status", "wait", "copy"};
  // What is sent is INT8.
  return run_operator(context, setting, {"dispatch", 1, phases, Json::object()},
                      [&](int ranks, SimulatorCounts& counts, double from, double to) {
                        setting.ranks = ranks;
                        return measure_dispatch(context, setting, counts, from, to);
                      });
}

}  // namespace

const Study kDispatchStudy{"dispatch", "FusedDispatch by AIV-Direct over many ranks", add_moe_options, run};

}  // namespace cm384::studies
