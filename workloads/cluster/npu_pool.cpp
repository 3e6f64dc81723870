#include "workloads/cluster/npu_pool.h"

#include <algorithm>

namespace cm384::cluster {

std::optional<Fit> fit_of(std::string_view name) {
  if (name == "first") return Fit::first;
  if (name == "best") return Fit::best;
  if (name == "idlest") return Fit::idlest;
  if (name == "min-cut") return Fit::min_cut;
  return {};
}

std::vector<int> node_of_ranks(const Place& place) {
  if (!place.ranks.empty()) return place.ranks;
  std::vector<int> ranks;
  for (const auto& [node, npus] : place.nodes)
    ranks.insert(ranks.end(), static_cast<std::size_t>(npus), node);
  return ranks;
}

NpuPool::NpuPool(const PoolShape& shape, const BlockTraffic* traffic)
    : shape_(shape),
      traffic_(traffic),
      free_(static_cast<std::size_t>(shape.supernodes), shape.supernode_npus()),
      nodes_(static_cast<std::size_t>(shape.supernodes),
             std::vector<int>(static_cast<std::size_t>(shape.nodes), shape.node_npus)),
      kept_(static_cast<std::size_t>(shape.supernodes)),
      closed_(static_cast<std::size_t>(shape.supernodes),
              std::vector<int>(static_cast<std::size_t>(shape.nodes), -1)) {}

int NpuPool::largest_place() const {
  const int most = *std::ranges::max_element(free_);
  if (!shape_.one_node || most >= shape_.node_npus) return most;
  int largest = 0;
  for (const std::vector<int>& nodes : nodes_) largest = std::max(largest, *std::ranges::max_element(nodes));
  return largest;
}

bool NpuPool::has_place(std::size_t supernode, int npus, int kept) const {
  if (free_[supernode] - kept < npus) return false;
  return !shape_.one_node || npus > shape_.node_npus ||
         std::ranges::any_of(nodes_[supernode], [&](int free) { return free >= npus; });
}

std::optional<Place> NpuPool::place_block(int npus, Fit fit) {
  if (fit == Fit::min_cut) return place_by_traffic(npus);
  const int whole = shape_.whole(npus);
  int chosen = -1;
  for (int s = 0; s < shape_.supernodes; ++s) {
    if (!has_place(static_cast<std::size_t>(s), whole, kept_[static_cast<std::size_t>(s)])) continue;
    const bool better = chosen < 0 || (fit == Fit::best && free_of(s) < free_of(chosen)) ||
                        (fit == Fit::idlest && free_of(s) > free_of(chosen));
    if (better) chosen = s;
    if (fit == Fit::first) break;
  }
  if (chosen < 0) return {};
  return allocate(chosen, whole);
}

std::optional<Place> NpuPool::place_by_traffic(int npus) {
  const int whole = shape_.whole(npus);
  auto matrix = matrices_.find(whole);
  if (matrix == matrices_.end()) matrix = matrices_.emplace(whole, traffic_->matrix(whole)).first;
  std::optional<Place> best;
  double least = 0;
  for (int s = 0; s < shape_.supernodes; ++s) {
    if (!has_place(static_cast<std::size_t>(s), whole, kept_[static_cast<std::size_t>(s)])) continue;
    Place place = allocate(s, whole);
    release_block(place);
    double cut = 0;
    if (place.nodes.size() > 1) {
      place.ranks = spread_by_traffic(matrix->second, nodes_of(s), node_of_ranks(place));
      place.nodes.clear();
      for (const int node : place.ranks) {
        const auto known = std::ranges::find(place.nodes, node, &std::pair<int, int>::first);
        if (known == place.nodes.end()) {
          place.nodes.emplace_back(node, 1);
        } else {
          ++known->second;
        }
      }
      cut = traffic_->cut(place.ranks);
    }
    if (best && (cut > least || (cut == least && free_of(s) >= free_of(best->supernode)))) continue;
    best = std::move(place);
    least = cut;
  }
  if (best) allocate(*best);
  return best;
}

void NpuPool::allocate(const Place& place) {
  for (const auto& [node, npus] : place.nodes) {
    nodes_of(place.supernode)[static_cast<std::size_t>(node)] -= npus;
    free_[static_cast<std::size_t>(place.supernode)] -= npus;
    allocated_ += npus;
  }
}

std::optional<Place> NpuPool::place_on(int supernode, int node, int npus) {
  const int whole = shape_.whole(npus);
  if (free_of(supernode, node) < whole) return {};
  Place place{supernode, {{node, whole}}, {}};
  allocate(place);
  return place;
}

std::optional<Place> NpuPool::place_in(int supernode, int npus) {
  const int whole = shape_.whole(npus);
  if (!has_place(static_cast<std::size_t>(supernode), whole, 0)) return {};
  return allocate(supernode, whole);
}

Place NpuPool::allocate(int supernode, int npus) {
  Place place{supernode, {}, {}};
  std::vector<int>& nodes = nodes_of(supernode);
  free_[static_cast<std::size_t>(supernode)] -= npus;
  allocated_ += npus;
  int left = npus;
  while (left > 0) {
    // The fullest node that holds the rest; if none does, the emptiest, whole.
    std::size_t node = nodes.size();
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      if (nodes[n] >= std::min(left, shape_.node_npus) && (node == nodes.size() || nodes[n] < nodes[node]))
        node = n;
    }
    if (node == nodes.size())
      node = static_cast<std::size_t>(std::ranges::max_element(nodes) - nodes.begin());
    const int part = std::min(left, nodes[node]);
    place.nodes.emplace_back(static_cast<int>(node), part);
    nodes[node] -= part;
    left -= part;
  }
  return place;
}

void NpuPool::release_block(const Place& place) {
  for (const auto& [node, npus] : place.nodes) {
    allocated_ -= npus;
    int& closed = closed_[static_cast<std::size_t>(place.supernode)][static_cast<std::size_t>(node)];
    if (closed >= 0) {
      closed += npus;
      withheld_ += npus;
      continue;
    }
    nodes_of(place.supernode)[static_cast<std::size_t>(node)] += npus;
    free_[static_cast<std::size_t>(place.supernode)] += npus;
  }
}

void NpuPool::keep_free(int supernode, int npus) {
  kept_[static_cast<std::size_t>(supernode)] = npus;
}

void NpuPool::close_node(int supernode, int node) {
  int& free = nodes_of(supernode)[static_cast<std::size_t>(node)];
  closed_[static_cast<std::size_t>(supernode)][static_cast<std::size_t>(node)] = free;
  free_[static_cast<std::size_t>(supernode)] -= free;
  withheld_ += free;
  free = 0;
}

void NpuPool::open_node(int supernode, int node) {
  int& closed = closed_[static_cast<std::size_t>(supernode)][static_cast<std::size_t>(node)];
  nodes_of(supernode)[static_cast<std::size_t>(node)] = closed;
  free_[static_cast<std::size_t>(supernode)] += closed;
  withheld_ -= closed;
  closed = -1;
}

}  // namespace cm384::cluster
