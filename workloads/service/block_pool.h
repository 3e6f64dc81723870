// The elastic memory service as a data structure ([P] 4.4): blocks of cached contexts by the hash of their
// prefix, each once, spread over servers by consistent hashing; each server keeps the least recently used out
// of its DRAM, and what leaves DRAM goes to its SSD until it is the least recently used there. Behind all
// servers there may be an object store, which takes what leaves their SSDs. A block is in one place at a
// time.
//
// A block is used where all blocks before it in its prompt are there: the last ones of a prompt are touched
// first, so that a prefix outlives what stands on it.
#pragma once

#include <boost/intrusive/list.hpp>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/text/units.h"

namespace cm384::service {

// Which server has a key: the next point on a ring of 64-bit numbers. A server that joins or leaves moves
// only the keys that it gains or had.
class HashRing {
 public:
  // `points` of each server; more of them spread keys more evenly.
  explicit HashRing(int servers, int points = 256);
  int server_of(std::uint64_t key) const;

 private:
  struct Point {
    std::uint64_t at;
    int server;
  };
  std::vector<Point> points_;
  std::vector<std::uint32_t> first_;  // point at or behind each value of a key's first bits
};

// A key of a tenant's own: two tenants with equal tokens have blocks of their own.
std::uint64_t key_of_tenant(std::uint32_t tenant, std::uint64_t key);

enum class Tier : std::uint8_t { dram, ssd, store, none };

// Whose a block is, and how much room it takes, in units of the rooms.
struct BlockOwner {
  std::uint32_t member = 0;
  std::int64_t units = 1;
};
struct OwnedBlock {
  std::uint64_t key;
  BlockOwner owner;
};

// Blocks of one server.
class TieredCache {
 public:
  // Of so many units. `parts`: what blocks of each member may have of both; none: there is one member, which
  // may have all.
  struct Rooms {
    std::int64_t dram = 0, ssd = 0;
  };
  explicit TieredCache(const Rooms& rooms, const std::vector<Rooms>& parts = {});

  struct OfAll;
  struct OfMember;
  template <class Tag>
  using Hook = boost::intrusive::list_base_hook<boost::intrusive::tag<Tag>,
                                                boost::intrusive::link_mode<boost::intrusive::normal_link>>;
  // Stands where it is until it leaves this server.
  struct Block : Hook<OfAll>, Hook<OfMember> {
    std::uint64_t key = 0;
    BlockOwner owner{};
    bool in_dram = true;
  };
  // Null: it is not here.
  Block* find(std::uint64_t key);
  Tier tier_of(std::uint64_t key) {
    const Block* block = find(key);
    return block == nullptr ? Tier::none : block->in_dram ? Tier::dram : Tier::ssd;
  }
  // A block that is here is the most recently used of DRAM now. `left`: takes the blocks that have no room
  // here any more.
  void promote(Block& block, std::vector<OwnedBlock>* left = nullptr);
  // The block is the most recently used of DRAM now, from wherever it was. True: it was new.
  bool touch(const OwnedBlock& block, std::vector<OwnedBlock>* left = nullptr);
  // True: it was there.
  bool remove(std::uint64_t key);
  std::int64_t dram_blocks() const { return static_cast<std::int64_t>(dram_.blocks.size()); }
  std::int64_t ssd_blocks() const { return static_cast<std::int64_t>(ssd_.blocks.size()); }
  std::int64_t dropped() const { return dropped_; }    // blocks that left the SSD
  std::int64_t demoted() const { return demoted_; }    // blocks that went from DRAM to the SSD
  std::int64_t promoted() const { return promoted_; }  // and back

 private:
  using Blocks = std::unordered_map<std::uint64_t, Block>;
  template <class Tag>
  struct Level {
    std::int64_t room = 0, used = 0;  // units
    boost::intrusive::list<Block, boost::intrusive::base_hook<Hook<Tag>>>
        blocks{};  // most recently used first
  };
  struct Member {
    Level<OfMember> dram, ssd;
  };
  void enter(Block& block, bool dram);
  void leave(Block& block);
  void demote(Block& block, std::vector<OwnedBlock>* left);
  void drop(Block& block, std::vector<OwnedBlock>* left);
  void make_room(std::uint32_t member, std::vector<OwnedBlock>* left);

  Blocks blocks_;
  Blocks::node_type spare_;  // of a block that left, for the next one
  Level<OfAll> dram_, ssd_;
  std::vector<Member> members_;  // with parts
  std::int64_t dropped_ = 0, demoted_ = 0, promoted_ = 0;
};

// In blocks, where there are no members; else in any unit.
struct PoolSizes {
  int servers = 1;
  std::int64_t dram_blocks = 0, ssd_blocks = 0;  // of all servers together, evenly
  std::int64_t store_blocks = 0;                 // of the object store
};
// One of several who share a pool.
struct PoolMember {
  std::int64_t block = 1;  // units of each of its blocks
  double quota = 1;  // most of each tier that its blocks may have: the least recently used of them leave
};

// Where a tier of `room`, spread evenly over servers, is smaller than a block on each: the sentence that says
// it of the option of this name; else empty.
std::string note_of_room(std::string_view option, Bytes room, Bytes block, int servers);

struct PrefixHits {
  std::int64_t dram = 0, ssd = 0, store = 0;  // blocks at the front of the prompt that are there
  std::int64_t all() const { return dram + ssd + store; }
};

struct PoolCounts {
  std::int64_t asked = 0, dram_hits = 0, ssd_hits = 0, store_hits = 0, written = 0, kept_once = 0;  // blocks
  void add(const PoolCounts& o);
};

class BlockPool {
 public:
  explicit BlockPool(const PoolSizes& sizes, std::vector<PoolMember> members = {});

  // Blocks at the front of a prompt that are there, and touches them. `tenant` is of all members.
  PrefixHits read(std::span<const std::uint64_t> keys, std::uint32_t tenant = 0, std::uint32_t member = 0);
  // The number of these, and nothing is touched or counted.
  std::int64_t peek(std::span<const std::uint64_t> keys, std::uint32_t tenant = 0);
  // All blocks of a prompt, once they have been computed. Those that are there already are kept once.
  void write(std::span<const std::uint64_t> keys, std::uint32_t tenant = 0, std::uint32_t member = 0);

  const PoolCounts& counts(std::uint32_t member = 0) const { return counts_[member]; }
  std::int64_t dram_blocks() const;
  std::int64_t ssd_blocks() const;
  std::int64_t store_blocks() const { return store_.dram_blocks(); }
  std::int64_t demoted() const;
  std::int64_t promoted() const;
  std::int64_t stored() const { return stored_; }      // blocks from an SSD to the object store
  std::int64_t restored() const { return restored_; }  // and back to DRAM
  std::int64_t dropped() const;                        // that left the last tier
  const HashRing& ring() const { return ring_; }

 private:
  std::int64_t sum(std::int64_t (TieredCache::*count)() const) const;
  Tier tier_of(std::uint64_t key);
  bool touch(const OwnedBlock& block);
  BlockOwner owner(std::uint32_t member) const {
    return {member, members_.empty() ? 1 : members_[member].block};
  }
  TieredCache& server_of(std::uint64_t key) {
    return servers_[static_cast<std::size_t>(ring_.server_of(key))];
  }

  std::vector<PoolMember> members_;
  HashRing ring_;
  std::vector<TieredCache> servers_;
  TieredCache store_;  // of one tier
  bool has_store_;
  std::vector<OwnedBlock> left_;
  std::vector<std::pair<TieredCache*, TieredCache::Block*>> found_;  // by read(), of the prompt in hand
  std::int64_t stored_ = 0, restored_ = 0;
  std::vector<PoolCounts> counts_;  // by member
};

}  // namespace cm384::service
