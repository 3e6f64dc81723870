// Pools of cached contexts. The oracle of hits is the stack distance (Mattson et al. 1970): with least
// recently used replacement a block is there where fewer other blocks than there is room for were used since.
#include "workloads/service/block_pool.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "testbenches/workloads/service/file_of.h"
#include "traces/random.h"
#include "workloads/service/requests.h"

namespace cm384::service::block_pool_test {
namespace {

// Distances by a tree over the times of last use (Olken 1981).
class StackDistances {
 public:
  explicit StackDistances(std::size_t uses) : tree_(uses + 2) {}

  // Different blocks used since this one, itself included; 0: never used.
  std::int64_t of(std::uint64_t key) const {
    const auto last = last_.find(key);
    return last == last_.end() ? 0 : below(now_ + 1) - below(last->second);
  }
  void use(std::uint64_t key) {
    const auto last = last_.find(key);
    if (last != last_.end()) add(last->second, -1);
    add(last_[key] = ++now_, 1);
  }

 private:
  void add(std::size_t at, std::int64_t by) {
    for (++at; at < tree_.size(); at += at & (0 - at)) tree_[at] += by;
  }
  std::int64_t below(std::size_t at) const {  // in [0, at)
    std::int64_t sum = 0;
    for (; at > 0; at -= at & (0 - at)) sum += tree_[at];
    return sum;
  }
  std::vector<std::int64_t> tree_;
  std::map<std::uint64_t, std::size_t> last_;
  std::size_t now_ = 0;
};

PrefixHits oracle(const RequestTrace& trace, std::int64_t dram, std::int64_t ssd, std::int64_t store = 0) {
  StackDistances distances(trace.keys.size());
  PrefixHits hits;
  for (const Request& request : trace.requests) {
    const auto keys = trace.blocks_of(request);
    for (const std::uint64_t key : keys) {
      const std::int64_t distance = distances.of(key);
      if (distance == 0 || distance > dram + ssd + store) break;
      ++(distance <= dram ? hits.dram : distance <= dram + ssd ? hits.ssd : hits.store);
    }
    for (std::size_t k = keys.size(); k-- > 0;) distances.use(keys[k]);
  }
  return hits;
}

PrefixHits hits_of(const RequestTrace& trace, const PoolSizes& sizes) {
  BlockPool pool(sizes);
  for (const Request& request : trace.requests) {
    pool.read(trace.blocks_of(request));
    pool.write(trace.blocks_of(request));
    EXPECT_LE(pool.dram_blocks(), sizes.dram_blocks);
    EXPECT_LE(pool.ssd_blocks(), sizes.ssd_blocks);
    EXPECT_LE(pool.store_blocks(), sizes.store_blocks);
  }
  const PoolCounts& counts = pool.counts();
  // Each block is counted once on each side, and what was written is there or was dropped.
  EXPECT_EQ(counts.written + counts.kept_once, counts.asked);
  EXPECT_EQ(counts.written, pool.dram_blocks() + pool.ssd_blocks() + pool.store_blocks() + pool.dropped());
  const std::int64_t left_ssd = sizes.store_blocks > 0 ? pool.stored() : pool.dropped();
  EXPECT_EQ(pool.demoted() - pool.promoted() - left_ssd, pool.ssd_blocks());
  if (sizes.store_blocks > 0) {
    EXPECT_EQ(pool.stored() - pool.restored() - pool.dropped(), pool.store_blocks());
  }
  return {counts.dram_hits, counts.ssd_hits, counts.store_hits};
}

// Conversations that grow and come back.
RequestTrace conversations(int requests) {
  traces::Random random(7);
  RequestTrace trace;
  std::vector<std::vector<std::uint64_t>> open(40);
  std::uint64_t fresh = 0;
  for (int k = 0; k < requests; ++k) {
    auto& one = open[random.below(open.size())];
    if (one.size() > 30) one.resize(random.below(20));
    for (std::uint64_t more = 1 + random.below(4); more > 0; --more) one.push_back(fresh++);
    Request& request = trace.requests.emplace_back();
    request.first_block = static_cast<std::uint32_t>(trace.keys.size());
    request.blocks = static_cast<std::uint32_t>(one.size());
    trace.keys.insert(trace.keys.end(), one.begin(), one.end());
  }
  return trace;
}

void expect_hits_of_oracle(const RequestTrace& trace, std::int64_t dram, std::int64_t ssd,
                           std::int64_t store = 0) {
  const PrefixHits found = hits_of(trace, {1, dram, ssd, store}), expected = oracle(trace, dram, ssd, store);
  EXPECT_EQ(found.dram, expected.dram) << dram << " " << ssd << " " << store;
  EXPECT_EQ(found.ssd, expected.ssd) << dram << " " << ssd << " " << store;
  EXPECT_EQ(found.store, expected.store) << dram << " " << ssd << " " << store;
}

TEST(BlockPool, HitsWhatStackDistancesSay) {
  const RequestTrace trace = conversations(3000);
  for (const std::int64_t dram : {0, 1, 5, 100, 333, 1000, 1'000'000}) {
    expect_hits_of_oracle(trace, dram, 0);
    expect_hits_of_oracle(trace, dram, 300);
    expect_hits_of_oracle(trace, dram, 0, 250);
    expect_hits_of_oracle(trace, dram, 200, 150);
  }
  EXPECT_GT(oracle(trace, 100, 100, 200).store, 1000);
  EXPECT_GT(oracle(trace, 100, 300).ssd, 1000);
}

// Members with blocks of different sizes and quotas on one server, on lists that are looked through.
class SharedModel {
 public:
  struct Member {
    std::int64_t block, dram, ssd;
  };
  SharedModel(std::int64_t dram, std::int64_t ssd, std::vector<Member> members)
      : rooms_{dram, ssd}, members_(std::move(members)) {}
  // 0: in DRAM, 1: on SSD, 2: not there.
  int tier_of(std::uint64_t key) const {
    for (const int tier : {0, 1})
      for (const auto& [other, member] : tiers_[static_cast<std::size_t>(tier)])
        if (other == key) return tier;
    return 2;
  }
  void use(std::uint64_t key, std::uint32_t member) {
    for (auto& tier : tiers_) std::erase(tier, Entry{key, member});
    tiers_[0].insert(tiers_[0].begin(), {key, member});
    while (used(0, member) > members_[member].dram) demote(last_of(0, member));
    while (used(0) > rooms_[0]) demote(tiers_[0].back());
    while (used(1) > rooms_[1]) tiers_[1].pop_back();
  }

 private:
  using Entry = std::pair<std::uint64_t, std::uint32_t>;
  std::int64_t used(std::size_t tier, std::optional<std::uint32_t> of = {}) const {
    std::int64_t sum = 0;
    for (const auto& [key, member] : tiers_[tier]) sum += !of || member == *of ? members_[member].block : 0;
    return sum;
  }
  Entry last_of(std::size_t tier, std::uint32_t of) const {
    return *std::find_if(tiers_[tier].rbegin(), tiers_[tier].rend(),
                         [&](const Entry& entry) { return entry.second == of; });
  }
  void demote(Entry entry) {
    std::erase(tiers_[0], entry);
    tiers_[1].insert(tiers_[1].begin(), entry);
    while (used(1, entry.second) > members_[entry.second].ssd)
      std::erase(tiers_[1], last_of(1, entry.second));
  }
  std::array<std::int64_t, 2> rooms_;
  std::vector<Member> members_;
  std::array<std::vector<Entry>, 2> tiers_;  // most recently used first
};

TEST(BlockPool, OfSeveralMembersHitsWhatListsSay) {
  const RequestTrace trace = conversations(1500);
  traces::Random random(9);
  for (int trial = 0; trial < 12; ++trial) {
    const std::int64_t dram = 400 + static_cast<std::int64_t>(random.below(600)),
                       ssd = trial % 3 == 0 ? 0 : static_cast<std::int64_t>(random.below(900));
    const std::vector<PoolMember> members{{3, trial % 2 == 0 ? 1 : 0.5}, {7, 0.25}, {1, 1}};
    BlockPool pool({1, dram, ssd}, members);
    std::vector<SharedModel::Member> rooms;
    for (const auto& [block, quota] : members)
      rooms.push_back({block, static_cast<std::int64_t>(quota * static_cast<double>(dram)),
                       static_cast<std::int64_t>(quota * static_cast<double>(ssd))});
    SharedModel model(dram, ssd, rooms);
    std::int64_t on_ssd = 0;
    for (std::size_t r = 0; r < trace.requests.size(); ++r) {
      const auto member = static_cast<std::uint32_t>(r % 3);
      const auto keys = trace.blocks_of(trace.requests[r]);
      PrefixHits expected;
      std::size_t there = 0;
      for (; there < keys.size(); ++there) {
        const int tier = model.tier_of(key_of_tenant(member, keys[there]));
        if (tier == 2) break;
        ++(tier == 0 ? expected.dram : expected.ssd);
      }
      for (std::size_t k = there; k-- > 0;) model.use(key_of_tenant(member, keys[k]), member);
      for (std::size_t k = keys.size(); k-- > 0;) model.use(key_of_tenant(member, keys[k]), member);
      const PrefixHits found = pool.read(keys, member, member);
      pool.write(keys, member, member);
      ASSERT_EQ(found.dram, expected.dram) << trial << " " << r;
      ASSERT_EQ(found.ssd, expected.ssd) << trial << " " << r;
      on_ssd += found.ssd;
    }
    EXPECT_EQ(on_ssd > 0, ssd > 0);
    for (const std::uint32_t member : {0u, 1u, 2u}) EXPECT_GT(pool.counts(member).dram_hits, 50) << trial;
  }
}

TEST(BlockPool, OfServersHitsWhatStackDistancesOfEachSay) {
  const RequestTrace trace = conversations(2000);
  const PoolSizes sizes{5, 250, 100};
  const HashRing ring(sizes.servers);
  std::vector<StackDistances> distances(5, StackDistances(trace.keys.size()));
  PrefixHits expected;
  for (const Request& request : trace.requests) {
    const auto keys = trace.blocks_of(request);
    for (const std::uint64_t key : keys) {
      const std::int64_t distance = distances[static_cast<std::size_t>(ring.server_of(key))].of(key);
      if (distance == 0 || distance > 70) break;
      ++(distance <= 50 ? expected.dram : expected.ssd);
    }
    for (std::size_t k = keys.size(); k-- > 0;)
      distances[static_cast<std::size_t>(ring.server_of(keys[k]))].use(keys[k]);
  }
  const PrefixHits found = hits_of(trace, sizes);
  EXPECT_EQ(found.dram, expected.dram);
  EXPECT_EQ(found.ssd, expected.ssd);
  EXPECT_GT(found.ssd, 100);
}

// Lists of keys, most recently used first, searched from end to end.
class Shelves {
 public:
  Shelves(const HashRing& ring, std::size_t servers, std::size_t dram, std::size_t ssd, std::size_t store)
      : ring_(ring),
        servers_(servers, std::vector<std::vector<std::uint64_t>>(2)),
        rooms_{dram, ssd, store} {}

  // 0 DRAM, 1 SSD, 2 the store, 3 nowhere.
  int where(std::uint64_t key) {
    const auto& own = servers_[static_cast<std::size_t>(ring_.server_of(key))];
    return has(own[0], key) ? 0 : has(own[1], key) ? 1 : has(store_, key) ? 2 : 3;
  }
  void use(std::uint64_t key) {
    auto& own = servers_[static_cast<std::size_t>(ring_.server_of(key))];
    for (auto* shelf : {&own[0], &own[1], &store_}) std::erase(*shelf, key);
    std::uint64_t pushed = key;
    for (auto* shelf : {&own[0], &own[1], &store_}) {
      shelf->insert(shelf->begin(), pushed);
      if (shelf->size() <= rooms_[shelf == &own[0] ? 0 : shelf == &own[1] ? 1 : 2]) return;
      pushed = shelf->back();
      shelf->pop_back();
    }
  }

 private:
  static bool has(const std::vector<std::uint64_t>& shelf, std::uint64_t key) {
    return std::ranges::find(shelf, key) != shelf.end();
  }
  const HashRing& ring_;
  std::vector<std::vector<std::vector<std::uint64_t>>> servers_;
  std::vector<std::uint64_t> store_;
  std::array<std::size_t, 3> rooms_;
};

TEST(BlockPool, OfServersSharesAnObjectStore) {
  const RequestTrace trace = conversations(1500);
  const PoolSizes sizes{4, 120, 80, 150};
  const HashRing ring(sizes.servers);
  Shelves shelves(ring, 4, 30, 20, 150);
  std::array<std::int64_t, 3> expected{};
  for (const Request& request : trace.requests) {
    const auto keys = trace.blocks_of(request);
    std::size_t there = 0;
    for (; there < keys.size() && shelves.where(keys[there]) < 3; ++there)
      ++expected[static_cast<std::size_t>(shelves.where(keys[there]))];
    // What is read is used, then all that is written: in the store's order servers meet.
    for (const std::size_t count : {there, keys.size()}) {
      for (std::size_t k = count; k-- > 0;) shelves.use(keys[k]);
    }
  }
  const PrefixHits found = hits_of(trace, sizes);
  EXPECT_EQ(found.dram, expected[0]);
  EXPECT_EQ(found.ssd, expected[1]);
  EXPECT_EQ(found.store, expected[2]);
  EXPECT_GT(found.store, 500);
}

TEST(BlockPool, WhatIsReadFromTheObjectStoreLeavesIt) {
  BlockPool pool({2, 2, 0, 100});
  std::vector<std::uint64_t> keys(50);
  std::iota(keys.begin(), keys.end(), 0);
  pool.write(keys);
  EXPECT_EQ(pool.store_blocks(), 48);
  std::int64_t there = 0;
  for (const std::uint64_t key : keys) there += pool.read(std::array{key}).all();
  EXPECT_EQ(there, 50);
  EXPECT_GT(pool.counts().store_hits, 40);
  EXPECT_EQ(pool.restored(), pool.counts().store_hits);
  EXPECT_EQ(pool.store_blocks(), 48);
}

TEST(BlockPool, KeepsAPrefixLongerThanWhatStandsOnIt) {
  BlockPool pool({1, 3, 0});
  const std::vector<std::uint64_t> one{1, 2, 3}, other{9};
  pool.write(one);
  pool.write(other);
  EXPECT_EQ(pool.read(one).all(), 2);
}

TEST(BlockPool, TenantsDoNotReadEachOthersBlocks) {
  BlockPool pool({4, 100, 0});
  const std::vector<std::uint64_t> keys{1, 2, 3};
  pool.write(keys, 1);
  EXPECT_EQ(pool.read(keys, 2).all(), 0);
  EXPECT_EQ(pool.read(keys, 0).all(), 0);
  EXPECT_EQ(pool.read(keys, 1).all(), 3);
  pool.write(keys, 2);
  EXPECT_EQ(pool.dram_blocks(), 6);
}

TEST(BlockPool, SaysWhereATierHasNoRoomForABlock) {
  const Bytes block{36'000'000};
  EXPECT_EQ(note_of_room("--dram", Bytes{0}, block, 4), "");
  EXPECT_EQ(note_of_room("--dram", Bytes{144'000'000}, block, 4), "");
  EXPECT_EQ(note_of_room("--dram", Bytes{143'999'999}, block, 4),
            "--dram: 143999999B over 4 servers, a block takes 36MB: not every server has room for one");
  EXPECT_EQ(note_of_room("cache.evs", Bytes{1'000'000}, block, 1),
            "cache.evs: 1MB over 1 server, a block takes 36MB: there is no room for one");
}

TEST(HashRing, SpreadsKeysAndMovesOnlyThoseOfAServerThatIsAdded) {
  const HashRing ring(32), fewer(31);
  std::vector<int> before(32'000), count(32);
  for (std::size_t k = 0; k < before.size(); ++k)
    ++count[static_cast<std::size_t>(before[k] = ring.server_of(k))];
  // Of 1,000 each: arcs of 256 points spread by a sixteenth, keys by a thirtieth.
  for (const int keys : count) EXPECT_NEAR(keys, 1000, 300);
  for (std::size_t k = 0; k < before.size(); ++k) {
    if (before[k] == 31) {
      EXPECT_NE(fewer.server_of(k), 31);
    } else {
      EXPECT_EQ(fewer.server_of(k), before[k]);
    }
  }
}

TEST(RecordedRequests, HitAsStackDistancesSay) {
  const auto folder = recorded_requests(CM384_SOURCE_DIR);
  if (folder.empty()) GTEST_SKIP() << "no ../shared/traces beside the project and no CM384_SHARED";
  for (const char* file :
       {"mooncake_fast25_conversation_head.jsonl", "mooncake_fast25_synthetic_head.jsonl"}) {
    const RequestTrace trace = read_requests((folder / file).string());
    for (const std::int64_t dram : {1000, 10'000, 1'000'000}) {
      expect_hits_of_oracle(trace, dram, 20'000);
      expect_hits_of_oracle(trace, dram, 5'000, 10'000);
    }
  }
}

}  // namespace
}  // namespace cm384::service::block_pool_test
