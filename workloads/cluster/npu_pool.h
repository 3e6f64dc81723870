// NPUs of one or several supernodes, node by node, and which of them a block gets.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "workloads/cluster/block_traffic.h"

namespace cm384::cluster {

// Which supernode: by number, with fewest free, with most free; and the one in which least of a block's
// traffic leaves nodes, of such the one with fewest free.
enum class Fit : std::uint8_t { first, best, idlest, min_cut };
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
  std::vector<int> ranks = {};             // node of each rank; empty: in the order of `nodes`
};
std::vector<int> node_of_ranks(const Place& place);

class NpuPool {
 public:
  // `traffic` of blocks, which Fit::min_cut needs, and which outlives the pool.
  explicit NpuPool(const PoolShape& shape, const BlockTraffic* traffic = nullptr);

  const PoolShape& shape() const { return shape_; }
  std::int64_t allocated() const { return allocated_; }
  int free_of(int supernode) const { return free_[static_cast<std::size_t>(supernode)]; }
  int free_of(int supernode, int node) const {
    return nodes_[static_cast<std::size_t>(supernode)][static_cast<std::size_t>(node)];
  }
  // The largest block that would find a place now.
  int largest_place() const;
  // A place for a block of `npus`; empty: none of the supernodes has one. Within a supernode the fewest
  // nodes: a part that fits a node goes to the one with fewest free that has room for it.
  std::optional<Place> place_block(int npus, Fit fit);
  // As above within one supernode, spare nodes included.
  std::optional<Place> place_in(int supernode, int npus);
  // On one node.
  std::optional<Place> place_on(int supernode, int node, int npus);
  void release_block(const Place& place);

  // NPUs of a supernode that place_block() leaves free.
  void keep_free(int supernode, int npus);
  // Until it is opened again: what is free of a node, or becomes free, is nobody's.
  void close_node(int supernode, int node);
  void open_node(int supernode, int node);
  // NPUs of closed nodes that no block holds.
  std::int64_t withheld() const { return withheld_; }

 private:
  bool has_place(std::size_t supernode, int npus, int kept) const;
  Place allocate(int supernode, int npus);
  void allocate(const Place& place);
  std::optional<Place> place_by_traffic(int npus);
  std::vector<int>& nodes_of(int supernode) { return nodes_[static_cast<std::size_t>(supernode)]; }

  PoolShape shape_;
  const BlockTraffic* traffic_;
  std::map<int, std::vector<std::vector<double>>> matrices_;  // of blocks, by size
  std::vector<int> free_;                                     // by supernode
  std::vector<std::vector<int>> nodes_;                       // free ones of each node, by supernode
  std::vector<int> kept_;                                     // by supernode
  std::vector<std::vector<int>> closed_;  // NPUs of a node that are free but nobody's; -1: it is open
  std::int64_t allocated_ = 0, withheld_ = 0;
};

}  // namespace cm384::cluster
