#include "workloads/service/model_loads.h"

#include <algorithm>
#include <stdexcept>

namespace cm384::service {

ModelLoads::ModelLoads(const ModelLoadSpec& spec, int instances)
    : spec_(spec), instances_(static_cast<std::size_t>(instances)) {
  if (spec.weights.count <= 0 || spec.block.count <= 0 || spec.store.bytes_per_second <= 0 ||
      !(spec.load > 0))
    throw std::invalid_argument("loads of models need sizes and rates");
  const std::size_t caches = spec.cache == ModelLoadSpec::Cache::none  ? 0
                             : spec.cache == ModelLoadSpec::Cache::own ? instances_.size()
                                                                       : 1;
  for (std::size_t k = 0; k < caches; ++k) caches_.emplace_back(TieredCache::Rooms{spec.dram.count, 0});
}

std::int64_t ModelLoads::bytes_of(std::int64_t block) const {
  return std::min(spec_.block.count, spec_.weights.count - block * spec_.block.count);
}

std::uint64_t ModelLoads::key_of(int model, std::int64_t block) const {
  return static_cast<std::uint64_t>(model) * static_cast<std::uint64_t>(blocks()) +
         static_cast<std::uint64_t>(block);
}

std::vector<ModelLoads::Loaded> ModelLoads::load(const std::vector<int>& models) {
  const double begin = now_;
  for (std::size_t k = 0; k < models.size(); ++k) {
    instances_[k] = {models[k], 0, 0, 0, now_};
    at(now_, [this, k] { ask(k); });
  }
  std::vector<Loaded> loaded(models.size());
  while (!events_.empty()) {
    const Event event = events_.top();
    events_.pop();
    now_ = event.at;
    event.what();
  }
  for (std::size_t k = 0; k < models.size(); ++k)
    loaded[k] = {instances_[k].dies_free - begin, blocks(), instances_[k].found};
  return loaded;
}

void ModelLoads::ask(std::size_t instance) {
  constexpr std::int64_t kUnderWay = 2;
  Instance& one = instances_[instance];
  while (one.next < blocks() && one.next - one.done < kUnderWay) {
    const std::int64_t block = one.next++;
    // Without a cache each has its own copy.
    const Block wanted{caches_.size() == 1 ? 0 : instance, key_of(one.model, block)};
    bool found = false;
    if (!caches_.empty()) {
      // Room is given when it is asked for.
      const bool is_new = caches_[wanted.first].touch({wanted.second, {0, bytes_of(block)}});
      found = !is_new && !coming_.contains(wanted);
    }
    one.found += found ? 1 : 0;
    found ? load_block(instance, block) : fetch(instance, block, wanted);
  }
}

void ModelLoads::fetch(std::size_t instance, std::int64_t block, const Block& wanted) {
  auto& waiting = coming_[wanted];
  waiting.emplace_back(instance, block);
  if (waiting.size() > 1) return;
  store_free_ = std::max(store_free_, now_) +
                static_cast<double>(bytes_of(block)) / static_cast<double>(spec_.store.bytes_per_second);
  at(store_free_, [this, wanted] {
    const auto those = coming_.extract(wanted);
    for (const auto& [who, number] : those.mapped()) load_block(who, number);
  });
}

void ModelLoads::load_block(std::size_t instance, std::int64_t block) {
  Instance& one = instances_[instance];
  one.dies_free = std::max(one.dies_free, now_) + static_cast<double>(bytes_of(block)) / spec_.load;
  at(one.dies_free, [this, instance] {
    ++instances_[instance].done;
    ask(instance);
  });
}

}  // namespace cm384::service
