#include "workloads/service/block_pool.h"

#include <algorithm>

#include "traces/random.h"

namespace cm384::service {

constexpr int kFirstBits = 16;

HashRing::HashRing(int servers, int points) {
  for (int server = 0; server < servers; ++server) {
    traces::Random random(0x656d73, static_cast<std::uint64_t>(server));
    for (int k = 0; k < points; ++k) points_.push_back({random.next(), server});
  }
  std::ranges::sort(points_, {}, &Point::at);
  std::uint32_t next = 0;
  for (std::uint64_t first = 0; first < 1u << kFirstBits; ++first) {
    while (next < points_.size() && points_[next].at < first << (64 - kFirstBits)) ++next;
    first_.push_back(next);
  }
}

int HashRing::server_of(std::uint64_t key) const {
  const std::uint64_t at = traces::mix(key + 0x9e3779b97f4a7c15u);
  std::size_t next = first_[at >> (64 - kFirstBits)];
  while (next < points_.size() && points_[next].at < at) ++next;
  return next == points_.size() ? points_.front().server : points_[next].server;
}

std::uint64_t key_of_tenant(std::uint32_t tenant, std::uint64_t key) {
  return tenant == 0 ? key : traces::mix(key ^ traces::mix(tenant * 0xd1342543de82ef95u));
}

TieredCache::Block* TieredCache::find(std::uint64_t key) {
  const auto found = blocks_.find(key);
  return found == blocks_.end() ? nullptr : &found->second;
}

void TieredCache::promote(Block& block) {
  promoted_ += block.in_dram ? 0 : 1;
  dram_.splice(dram_.begin(), block.in_dram ? dram_ : ssd_, Order::s_iterator_to(block));
  block.in_dram = true;
  make_room(nullptr);
}

bool TieredCache::touch(std::uint64_t key, std::vector<std::uint64_t>* left) {
  if (Block* block = find(key)) {
    promote(*block);
    return false;
  }
  Block* block = nullptr;
  if (spare_.empty()) {
    block = &blocks_[key];
  } else {
    spare_.key() = key;
    block = &blocks_.insert(std::move(spare_)).position->second;
  }
  block->key = key;
  block->in_dram = true;
  dram_.push_front(*block);
  make_room(left);
  return true;
}

bool TieredCache::remove(std::uint64_t key) {
  Block* block = find(key);
  if (block == nullptr) return false;
  (block->in_dram ? dram_ : ssd_).erase(Order::s_iterator_to(*block));
  spare_ = blocks_.extract(key);
  return true;
}

void TieredCache::make_room(std::vector<std::uint64_t>* left) {
  while (dram_blocks() > dram_room_) {
    Block& last = dram_.back();
    ssd_.splice(ssd_.begin(), dram_, Order::s_iterator_to(last));
    last.in_dram = false;
    ++demoted_;
  }
  while (ssd_blocks() > ssd_room_) {
    const std::uint64_t key = ssd_.back().key;
    if (left != nullptr) left->push_back(key);
    ssd_.pop_back();
    spare_ = blocks_.extract(key);
    ++dropped_;
  }
}

BlockPool::BlockPool(const PoolSizes& sizes)
    : ring_(sizes.servers), store_(sizes.store_blocks, 0), has_store_(sizes.store_blocks > 0) {
  const auto share = [&](std::int64_t blocks, int server) {
    return blocks / sizes.servers + (server < blocks % sizes.servers ? 1 : 0);
  };
  for (int server = 0; server < sizes.servers; ++server)
    servers_.emplace_back(share(sizes.dram_blocks, server), share(sizes.ssd_blocks, server));
}

PrefixHits BlockPool::read(std::span<const std::uint64_t> keys, std::uint32_t tenant) {
  PrefixHits hits;
  counts_.asked += static_cast<std::int64_t>(keys.size());
  if (!has_store_) {
    found_.clear();
    for (const std::uint64_t key : keys) {
      const std::uint64_t own = key_of_tenant(tenant, key);
      TieredCache& server = server_of(own);
      TieredCache::Block* block = server.find(own);
      if (block == nullptr) break;
      ++(block->in_dram ? hits.dram : hits.ssd);
      found_.emplace_back(&server, block);
    }
    // A block that comes to DRAM makes room for the one that leaves it: none is dropped.
    for (std::size_t k = found_.size(); k-- > 0;) found_[k].first->promote(*found_[k].second);
    counts_.dram_hits += hits.dram;
    counts_.ssd_hits += hits.ssd;
    return hits;
  }
  std::size_t there = 0;
  for (; there < keys.size(); ++there) {
    const std::uint64_t key = key_of_tenant(tenant, keys[there]);
    const Tier tier = tier_of(key);
    if (tier == Tier::none) break;
    ++(tier == Tier::dram ? hits.dram : tier == Tier::ssd ? hits.ssd : hits.store);
  }
  for (std::size_t k = there; k-- > 0;) {
    const std::uint64_t key = key_of_tenant(tenant, keys[k]);
    touch(key);
  }
  counts_.dram_hits += hits.dram;
  counts_.ssd_hits += hits.ssd;
  counts_.store_hits += hits.store;
  return hits;
}

void BlockPool::write(std::span<const std::uint64_t> keys, std::uint32_t tenant) {
  for (std::size_t k = keys.size(); k-- > 0;) {
    const std::uint64_t key = key_of_tenant(tenant, keys[k]);
    ++(touch(key) ? counts_.written : counts_.kept_once);
  }
}

std::int64_t BlockPool::peek(std::span<const std::uint64_t> keys, std::uint32_t tenant) {
  const auto there =
      std::ranges::find_if(keys, [&](auto key) { return tier_of(key_of_tenant(tenant, key)) == Tier::none; });
  return there - keys.begin();
}

void PoolCounts::add(const PoolCounts& o) {
  asked += o.asked;
  dram_hits += o.dram_hits;
  ssd_hits += o.ssd_hits;
  store_hits += o.store_hits;
  written += o.written;
  kept_once += o.kept_once;
}

Tier BlockPool::tier_of(std::uint64_t key) {
  const Tier tier = server_of(key).tier_of(key);
  return tier == Tier::none && has_store_ && store_.tier_of(key) != Tier::none ? Tier::store : tier;
}

// True: the block was nowhere.
bool BlockPool::touch(std::uint64_t key) {
  if (!has_store_) return server_of(key).touch(key);
  const bool kept = store_.remove(key);
  restored_ += kept ? 1 : 0;
  left_.clear();
  const bool is_new = server_of(key).touch(key, &left_);
  for (const std::uint64_t block : left_) store_.touch(block);
  stored_ += static_cast<std::int64_t>(left_.size());
  return is_new && !kept;
}

std::int64_t BlockPool::sum(std::int64_t (TieredCache::*count)() const) const {
  std::int64_t total = 0;
  for (const TieredCache& server : servers_) total += (server.*count)();
  return total;
}

std::int64_t BlockPool::dram_blocks() const {
  return sum(&TieredCache::dram_blocks);
}
std::int64_t BlockPool::ssd_blocks() const {
  return sum(&TieredCache::ssd_blocks);
}
std::int64_t BlockPool::demoted() const {
  return sum(&TieredCache::demoted);
}
std::int64_t BlockPool::promoted() const {
  return sum(&TieredCache::promoted);
}
std::int64_t BlockPool::dropped() const {
  return has_store_ ? store_.dropped() : sum(&TieredCache::dropped);
}

}  // namespace cm384::service
