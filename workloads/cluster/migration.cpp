#include "workloads/cluster/migration.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

namespace cm384::cluster {
namespace {

constexpr int kSteps = 5000;  // of a search

// Bins are nodes or supernodes; a block lies in one.
class Search {
 public:
  struct Item {
    std::size_t block = 0;
    int npus = 0;
  };
  struct Found {
    std::size_t bin = 0;
    std::vector<std::pair<std::size_t, std::size_t>> moves;  // block, bin
    int moved = 0;
  };

  Search(std::vector<int> free, std::vector<std::vector<Item>> items)
      : free_(std::move(free)), items_(std::move(items)) {
    for (std::vector<Item>& of : items_)
      std::ranges::stable_sort(of, {}, [](const Item& i) { return -i.npus; });
  }

  // Bins that lack least first.
  std::optional<Found> run(int npus) {
    std::vector<std::size_t> order(free_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, {}, [&](std::size_t bin) { return npus - free_[bin]; });
    for (const std::size_t bin : order) {
      bin_ = bin;
      lacks_ = npus - free_[bin];
      if (best_ && lacks_ >= best_->moved) break;
      left_.clear();
      for (const Item& item : items_[bin]) left_.push_back(item.npus);
      // What can still come from each item on.
      left_.push_back(0);
      for (std::size_t k = left_.size() - 1; k-- > 0;) left_[k] += left_[k + 1];
      descend(0, 0);
    }
    return std::move(best_);
  }

 private:
  void descend(std::size_t item, int moved) {
    if (steps_ >= kSteps || (best_ && moved >= best_->moved)) return;
    if (moved >= lacks_) {
      best_ = {bin_, moves_, moved};
      return;
    }
    if (item == items_[bin_].size() || moved + left_[item] < lacks_) return;
    ++steps_;
    const Item& of = items_[bin_][item];
    std::set<int> tried;  // bins with as much room are alike
    for (std::size_t to = 0; to < free_.size(); ++to) {
      if (to == bin_ || free_[to] < of.npus || !tried.insert(free_[to]).second) continue;
      free_[to] -= of.npus;
      moves_.emplace_back(of.block, to);
      descend(item + 1, moved + of.npus);
      moves_.pop_back();
      free_[to] += of.npus;
    }
    descend(item + 1, moved);
  }

  std::vector<int> free_;
  std::vector<std::vector<Item>> items_;
  std::size_t bin_ = 0;
  int lacks_ = 0, steps_ = 0;
  std::vector<int> left_;
  std::vector<std::pair<std::size_t, std::size_t>> moves_;
  std::optional<Found> best_;
};

int npus_of(const Place& place) {
  int sum = 0;
  for (const auto& [node, npus] : place.nodes) sum += npus;
  return sum;
}

}  // namespace

std::optional<Room> make_room(NpuPool& pool, int npus, const std::vector<MovableBlock>& blocks) {
  const PoolShape& shape = pool.shape();
  const int whole = shape.whole(npus);
  const bool by_node = shape.one_node && whole <= shape.node_npus;
  const auto supernodes = static_cast<std::size_t>(shape.supernodes),
             nodes = static_cast<std::size_t>(shape.nodes);
  std::vector<int> free(by_node ? supernodes * nodes : supernodes);
  for (std::size_t bin = 0; bin < free.size(); ++bin)
    free[bin] = by_node ? pool.free_of(static_cast<int>(bin / nodes), static_cast<int>(bin % nodes))
                        : pool.free_of(static_cast<int>(bin));
  std::vector<std::vector<Search::Item>> items(free.size());
  for (std::size_t k = 0; k < blocks.size(); ++k) {
    const Place& place = blocks[k].place;
    if (by_node && place.nodes.size() > 1) continue;
    const auto supernode = static_cast<std::size_t>(place.supernode);
    items[by_node ? supernode * nodes + static_cast<std::size_t>(place.nodes.front().first) : supernode]
        .push_back({k, npus_of(place)});
  }
  const auto found = Search(std::move(free), std::move(items)).run(whole);
  if (!found) return {};
  // Within supernodes blocks of one node may not find one that the search, which counts NPUs, has taken for
  // granted.
  const NpuPool before = pool;
  const auto place_block = [&](std::size_t bin, int count) -> std::optional<Place> {
    if (by_node) return pool.place_on(static_cast<int>(bin / nodes), static_cast<int>(bin % nodes), count);
    return pool.place_in(static_cast<int>(bin), count);
  };
  Room room;
  for (const auto& [block, bin] : found->moves) {
    auto to = place_block(bin, npus_of(blocks[block].place));
    if (!to) {
      pool = before;
      return {};
    }
    room.moves.push_back({block, std::move(*to)});
  }
  for (const auto& [block, bin] : found->moves) pool.release_block(blocks[block].place);
  auto place = place_block(found->bin, npus);
  if (!place) {
    pool = before;
    return {};
  }
  room.place = std::move(*place);
  return room;
}

}  // namespace cm384::cluster
