#include "workloads/cluster/npu_pool.h"

#include <algorithm>

namespace cm384::cluster {

std::optional<Fit> fit_of(std::string_view name) {
  if (name == "first") return Fit::first;
  if (name == "best") return Fit::best;
  if (name == "idlest") return Fit::idlest;
  return {};
}

NpuPool::NpuPool(const PoolShape& shape)
    : shape_(shape),
      free_(static_cast<std::size_t>(shape.supernodes), shape.supernode_npus()),
      nodes_(static_cast<std::size_t>(shape.supernodes),
             std::vector<int>(static_cast<std::size_t>(shape.nodes), shape.node_npus)) {}

int NpuPool::largest_place() const {
  const int most = *std::ranges::max_element(free_);
  if (!shape_.one_node || most >= shape_.node_npus) return most;
  int largest = 0;
  for (const std::vector<int>& nodes : nodes_) largest = std::max(largest, *std::ranges::max_element(nodes));
  return largest;
}

bool NpuPool::has_place(std::size_t supernode, int npus) const {
  if (free_[supernode] < npus) return false;
  return !shape_.one_node || npus > shape_.node_npus ||
         std::ranges::any_of(nodes_[supernode], [&](int free) { return free >= npus; });
}

std::optional<Place> NpuPool::place_block(int npus, Fit fit) {
  int left = shape_.whole(npus), chosen = -1;
  for (int s = 0; s < shape_.supernodes; ++s) {
    if (!has_place(static_cast<std::size_t>(s), left)) continue;
    const bool better = chosen < 0 || (fit == Fit::best && free_of(s) < free_of(chosen)) ||
                        (fit == Fit::idlest && free_of(s) > free_of(chosen));
    if (better) chosen = s;
    if (fit == Fit::first) break;
  }
  if (chosen < 0) return {};
  Place place{chosen, {}};
  std::vector<int>& nodes = nodes_of(chosen);
  free_[static_cast<std::size_t>(chosen)] -= left;
  allocated_ += left;
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
    nodes_of(place.supernode)[static_cast<std::size_t>(node)] += npus;
    free_[static_cast<std::size_t>(place.supernode)] += npus;
    allocated_ -= npus;
  }
}

}  // namespace cm384::cluster
