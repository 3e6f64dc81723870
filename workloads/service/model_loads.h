// Instances that load language models, block by block: weights come from an object store that all share into
// DRAM, where the least recently used blocks are kept, and from there onto the dies.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <queue>
#include <utility>
#include <vector>

#include "base/text/units.h"
#include "workloads/service/block_pool.h"

namespace cm384::service {

struct ModelLoadSpec {
  Bytes weights{}, block{};  // of a model; the last block has what is left
  Bandwidth store{};         // of the object store, for all: one block after another, in the order asked
  double load = 0;           // bytes per second of an instance's dies from DRAM, one block after another
  enum class Cache : std::uint8_t { none, own, shared };
  Cache cache = Cache::shared;  // of each instance by itself, or of all
  Bytes dram{};                 // of a cache
};

class ModelLoads {
 public:
  // Throws std::invalid_argument where a size or rate is 0.
  ModelLoads(const ModelLoadSpec& spec, int instances);

  struct Loaded {
    double seconds = 0;                  // until the dies have all weights
    std::int64_t blocks = 0, found = 0;  // of these in DRAM
  };
  // Instance k loads the model with the k-th number, all at the same moment, when nothing is under way.
  // Instances have two blocks under way at most: one comes from the store while the one before is loaded. A
  // block that is on its way to a cache is not asked for again.
  std::vector<Loaded> load(const std::vector<int>& models);

 private:
  struct Instance {
    int model = 0;
    std::int64_t next = 0, done = 0, found = 0;  // blocks
    double dies_free = 0;
  };
  struct Event {
    double at;
    std::uint64_t order;
    std::function<void()> what;
    bool operator<(const Event& o) const { return at != o.at ? at > o.at : order > o.order; }
  };
  using Block = std::pair<std::size_t, std::uint64_t>;  // of a cache, by its key

  std::int64_t blocks() const { return (spec_.weights.count + spec_.block.count - 1) / spec_.block.count; }
  std::int64_t bytes_of(std::int64_t block) const;
  std::uint64_t key_of(int model, std::int64_t block) const;
  void ask(std::size_t instance);
  void fetch(std::size_t instance, std::int64_t block, const Block& wanted);
  void load_block(std::size_t instance, std::int64_t block);
  void at(double time, std::function<void()> what) { events_.push({time, order_++, std::move(what)}); }

  ModelLoadSpec spec_;
  std::vector<TieredCache> caches_;
  std::vector<Instance> instances_;
  std::priority_queue<Event> events_;
  std::map<Block, std::vector<std::pair<std::size_t, std::int64_t>>> coming_;  // and who waits for it
  std::uint64_t order_ = 0;
  double now_ = 0, store_free_ = 0;
};

}  // namespace cm384::service
