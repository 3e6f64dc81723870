#include "workloads/service/block_pool.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/quantity.h"
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

TieredCache::TieredCache(const Rooms& rooms, const std::vector<Rooms>& parts)
    : dram_{rooms.dram}, ssd_{rooms.ssd} {
  for (const Rooms& part : parts) members_.push_back({{part.dram}, {part.ssd}});
}

void TieredCache::enter(Block& block, bool dram) {
  const auto add = [&](auto& level) {
    level.blocks.push_front(block);
    level.used += block.owner.units;
  };
  block.in_dram = dram;
  add(dram ? dram_ : ssd_);
  if (members_.empty()) return;
  Member& own = members_[block.owner.member];
  add(dram ? own.dram : own.ssd);
}

void TieredCache::leave(Block& block) {
  const auto remove = [&](auto& level) {
    level.blocks.erase(level.blocks.iterator_to(block));
    level.used -= block.owner.units;
  };
  remove(block.in_dram ? dram_ : ssd_);
  if (members_.empty()) return;
  Member& own = members_[block.owner.member];
  remove(block.in_dram ? own.dram : own.ssd);
}

void TieredCache::promote(Block& block, std::vector<OwnedBlock>* left) {
  promoted_ += block.in_dram ? 0 : 1;
  leave(block);
  enter(block, true);
  make_room(block.owner.member, left);
}

bool TieredCache::touch(const OwnedBlock& wanted, std::vector<OwnedBlock>* left) {
  if (Block* block = find(wanted.key)) {
    promote(*block, left);
    return false;
  }
  Block* block = nullptr;
  if (spare_.empty()) {
    block = &blocks_[wanted.key];
  } else {
    spare_.key() = wanted.key;
    block = &blocks_.insert(std::move(spare_)).position->second;
  }
  block->key = wanted.key;
  block->owner = wanted.owner;
  enter(*block, true);
  make_room(wanted.owner.member, left);
  return true;
}

bool TieredCache::remove(std::uint64_t key) {
  Block* block = find(key);
  if (block == nullptr) return false;
  leave(*block);
  spare_ = blocks_.extract(key);
  return true;
}

void TieredCache::drop(Block& block, std::vector<OwnedBlock>* left) {
  const std::uint64_t key = block.key;
  if (left != nullptr) left->push_back({key, block.owner});
  leave(block);
  spare_ = blocks_.extract(key);
  ++dropped_;
}

void TieredCache::demote(Block& block, std::vector<OwnedBlock>* left) {
  const std::uint32_t member = block.owner.member;
  leave(block);
  enter(block, false);
  ++demoted_;
  if (members_.empty()) return;
  Level<OfMember>& own = members_[member].ssd;
  while (own.used > own.room) drop(own.blocks.back(), left);
}

// What a member has beyond its part leaves first, then what nobody has used for longest.
void TieredCache::make_room(std::uint32_t member, std::vector<OwnedBlock>* left) {
  if (!members_.empty()) {
    Level<OfMember>& own = members_[member].dram;
    while (own.used > own.room) demote(own.blocks.back(), left);
  }
  while (dram_.used > dram_.room) demote(dram_.blocks.back(), left);
  while (ssd_.used > ssd_.room) drop(ssd_.blocks.back(), left);
}

namespace {

std::vector<TieredCache::Rooms> parts_of(const TieredCache::Rooms& rooms,
                                         const std::vector<PoolMember>& members) {
  std::vector<TieredCache::Rooms> parts;
  const auto part = [](std::int64_t units, double quota) {
    return quota >= 1 ? units : static_cast<std::int64_t>(static_cast<double>(units) * quota);
  };
  for (const PoolMember& member : members)
    parts.push_back({part(rooms.dram, member.quota), part(rooms.ssd, member.quota)});
  return parts;
}

}  // namespace

std::string note_of_room(std::string_view option, Bytes room, Bytes block, int servers) {
  if (room.count == 0 || room.count / servers >= block.count) return {};
  return fmt::format("{}: {} over {} {}, a block takes {}: {} room for one", option, hw::format(room),
                     servers, servers == 1 ? "server" : "servers", hw::format(block),
                     room.count < block.count ? "there is no" : "not every server has");
}

BlockPool::BlockPool(const PoolSizes& sizes, std::vector<PoolMember> members)
    : members_(std::move(members)),
      ring_(sizes.servers),
      store_({sizes.store_blocks, 0}, parts_of({sizes.store_blocks, 0}, members_)),
      has_store_(sizes.store_blocks > 0),
      counts_(std::max<std::size_t>(1, members_.size())) {
  const auto share = [&](std::int64_t blocks, int server) {
    return blocks / sizes.servers + (server < blocks % sizes.servers ? 1 : 0);
  };
  for (int server = 0; server < sizes.servers; ++server) {
    const TieredCache::Rooms rooms{share(sizes.dram_blocks, server), share(sizes.ssd_blocks, server)};
    servers_.emplace_back(rooms, parts_of(rooms, members_));
  }
}

PrefixHits BlockPool::read(std::span<const std::uint64_t> keys, std::uint32_t tenant, std::uint32_t member) {
  PrefixHits hits;
  PoolCounts& counts = counts_[member];
  counts.asked += static_cast<std::int64_t>(keys.size());
  if (!has_store_ && members_.empty()) {
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
    counts.dram_hits += hits.dram;
    counts.ssd_hits += hits.ssd;
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
    touch({key_of_tenant(tenant, keys[k]), owner(member)});
  }
  counts.dram_hits += hits.dram;
  counts.ssd_hits += hits.ssd;
  counts.store_hits += hits.store;
  return hits;
}

void BlockPool::write(std::span<const std::uint64_t> keys, std::uint32_t tenant, std::uint32_t member) {
  for (std::size_t k = keys.size(); k-- > 0;) {
    const bool is_new = touch({key_of_tenant(tenant, keys[k]), owner(member)});
    ++(is_new ? counts_[member].written : counts_[member].kept_once);
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
bool BlockPool::touch(const OwnedBlock& block) {
  if (!has_store_) return server_of(block.key).touch(block);
  const bool kept = store_.remove(block.key);
  restored_ += kept ? 1 : 0;
  left_.clear();
  const bool is_new = server_of(block.key).touch(block, &left_);
  for (const OwnedBlock& one : left_) store_.touch(one);
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
