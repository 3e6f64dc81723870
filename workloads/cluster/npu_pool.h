// NPUs of one or several supernodes, node by node, and which of them a block gets.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace cm384::cluster {

enum class Fit : std::uint8_t { first, best, idlest };  // which supernode: by number, fewest free, most free
std::optional<Fit> fit_of(std::string_view name);

struct PoolShape {
  int supernodes = 1;
  int nodes = 48, node_npus = 8;  // of a supernode; of a node
  int granule = 1;                // NPUs that are given together; divides node_npus
  bool one_node = false;          // a block that a node could hold lies in one

  int supernode_npus() const { return nodes * node_npus; }
  std::int64_t npus() const { return std::int64_t{supernodes} * supernode_npus(); }
  // What a block of so many takes.
  int whole(int npus) const { return (npus + granule - 1) / granule * granule; }
};

// Where a block lies: by node of the pool how many of its NPUs.
struct Place {
  int supernode = 0;
  std::vector<std::pair<int, int>> nodes;  // node within the supernode, NPUs
};

class NpuPool {
 public:
  explicit NpuPool(const PoolShape& shape);

  const PoolShape& shape() const { return shape_; }
  std::int64_t allocated() const { return allocated_; }
  int free_of(int supernode) const { return free_[static_cast<std::size_t>(supernode)]; }
  // The largest block that would find a place now.
  int largest_place() const;
  // A place for a block of `npus`; empty: none of the supernodes has one. Within a supernode the fewest
  // nodes: a part that fits a node goes to the one with fewest free that has room for it.
  std::optional<Place> place_block(int npus, Fit fit);
  void release_block(const Place& place);

 private:
  bool has_place(std::size_t supernode, int npus) const;
  std::vector<int>& nodes_of(int supernode) { return nodes_[static_cast<std::size_t>(supernode)]; }

  PoolShape shape_;
  std::vector<int> free_;                // by supernode
  std::vector<std::vector<int>> nodes_;  // free ones of each node, by supernode
  std::int64_t allocated_ = 0;
};

}  // namespace cm384::cluster
