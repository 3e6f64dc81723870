#include "workloads/contexts/ems_model.h"

#include <fmt/format.h>

namespace cm384::studies {
namespace {

double seconds(Bytes bytes, double bytes_per_second) {
  return static_cast<double>(bytes.count) / bytes_per_second;
}
double rate_of(Bandwidth rate) {
  return static_cast<double>(rate.bytes_per_second);
}

}  // namespace

double warm_start_s(const ModelCache& model) {
  return seconds(model.weights, rate_of(model.load) * model.dies);
}

double cold_start_s(const ModelCache& model) {
  return seconds(model.weights, rate_of(model.store)) + warm_start_s(model);
}

double start_without_cache_s(const ModelCache& model) {
  return model.instances * seconds(model.weights, rate_of(model.store)) + warm_start_s(model);
}

double change_with_local_cache_s(const ModelCache& model) {
  return model.local_hits * warm_start_s(model) + (1 - model.local_hits) * cold_start_s(model);
}

void add_model_rows(const StudyContext& context, const ModelCache& model, StudyResult& result) {
  if (model.weights.count == 0) return;
  const auto add = [&](const char* path, int instances, double start_s) {
    context.finish_row(result, Row{{"kind", "model"},
                                   {"path", path},
                                   {"instances", instances},
                                   {"bytes", model.weights.count},
                                   {"simulated", false},
                                   {"start_s", start_s}});
  };
  add("obs", model.instances, start_without_cache_s(model));
  add("obs-ems", model.instances, cold_start_s(model));
  add("ems", model.instances, warm_start_s(model));
  add("obs-local", 1, change_with_local_cache_s(model));
  result.notes.push_back(fmt::format(
      "rows of models are a formula: weights over {:.1f} GB/s of the object store, which all share, "
      "and over {:.1f} GB/s of each of {} dies",
      rate_of(model.store) * 1e-9, rate_of(model.load) * 1e-9, model.dies));
}

}  // namespace cm384::studies
