#include "workloads/contexts/ems_model.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/error.h"
#include "traces/random.h"
#include "workloads/service/model_loads.h"

namespace cm384::studies {
namespace {

using service::ModelLoads;
using service::ModelLoadSpec;

constexpr std::int64_t kMostBlocks = 20'000'000;  // of all loads

ModelLoadSpec spec_of(const ModelCache& model, ModelLoadSpec::Cache cache) {
  const bool own = cache == ModelLoadSpec::Cache::own;
  const Bytes asked = own ? model.local : model.dram;
  const std::int64_t all = model.weights.count * (own ? 1 : model.models);
  return {model.weights, model.block,
          model.store,   static_cast<double>(model.load.bytes_per_second) * model.dies,
          cache,         asked.count == 0 ? Bytes{all} : asked};
}

// `seconds` is what a row has of them.
struct Starts {
  double seconds = 0;
  std::int64_t blocks = 0, found = 0;
  void add(const ModelLoads::Loaded& loaded) {
    blocks += loaded.blocks;
    found += loaded.found;
  }
};

// All with the same model, until the last one has it.
Starts together(ModelLoads& loads, int instances) {
  Starts starts;
  for (const ModelLoads::Loaded& one : loads.load(std::vector<int>(static_cast<std::size_t>(instances), 0))) {
    starts.seconds = std::max(starts.seconds, one.seconds);
    starts.add(one);
  }
  return starts;
}

// The mean of an instance's changes from model to model, each to any of them. Those of before have filled the
// cache.
Starts changes(const ModelCache& model, ModelLoadSpec::Cache cache, std::uint64_t seed) {
  ModelLoads loads(spec_of(model, cache), 1);
  for (int k = model.models; k-- > 0;) loads.load({k});
  traces::Random random(seed, 0x6d6f64);
  Starts starts;
  for (int k = 0; k < model.changes; ++k) {
    const auto to = static_cast<int>(random.below(static_cast<std::uint64_t>(model.models)));
    const ModelLoads::Loaded one = loads.load({to})[0];
    starts.seconds += one.seconds / model.changes;
    starts.add(one);
  }
  return starts;
}

}  // namespace

void add_model_rows(const StudyContext& context, const ModelCache& model, StudyResult& result) {
  if (model.weights.count == 0) return;
  const std::int64_t blocks = (model.weights.count + model.block.count - 1) / model.block.count;
  if (const std::int64_t all = blocks * (3 * model.instances + 2 * (model.changes + model.models));
      all > kMostBlocks)
    throw InputError(
        fmt::format("run ems: --model: {} blocks of all loads; allowed: at most {}, with a larger "
                    "--model-block or fewer --model-changes",
                    all, kMostBlocks));
  const auto add = [&](const char* path, int instances, const Starts& starts) {
    const double found = static_cast<double>(starts.found) / static_cast<double>(starts.blocks);
    context.finish_row(result, Row{{"kind", "model"},
                                   {"path", path},
                                   {"instances", instances},
                                   {"bytes", model.weights.count},
                                   {"simulated", true},
                                   {"hit_rate", Row{{"dram", found}, {"all", found}}},
                                   {"start_s", starts.seconds}});
  };
  ModelLoads each(spec_of(model, ModelLoadSpec::Cache::none), model.instances),
      all(spec_of(model, ModelLoadSpec::Cache::shared), model.instances);
  add("obs", model.instances, together(each, model.instances));
  add("obs-ems", model.instances, together(all, model.instances));
  add("ems", model.instances, together(all, model.instances));
  const auto seed = static_cast<std::uint64_t>(context.seed);
  add("obs-local", 1, changes(model, ModelLoadSpec::Cache::own, seed));
  add("ems-change", 1, changes(model, ModelLoadSpec::Cache::shared, seed));
  result.notes.push_back(fmt::format(
      "rows of models are simulated by blocks of {:.3g} GB: over {:.1f} GB/s of the object store, which all "
      "share, and {:.1f} GB/s of each of {} dies; both rates are parameters",
      static_cast<double>(model.block.count) * 1e-9, static_cast<double>(model.store.bytes_per_second) * 1e-9,
      static_cast<double>(model.load.bytes_per_second) * 1e-9, model.dies));
}

}  // namespace cm384::studies
