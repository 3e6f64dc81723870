// Where the nodes of another simulator's network stand on this machine: neighbours there are neighbours here.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace cm384::traces {

struct NodePlacement {
  std::string rule;                                // for people
  std::vector<std::pair<std::int64_t, int>> dies;  // die of each node, by its number
};

// With leaves: the nodes of each are placed on machine nodes of their own, from die 0 of each on; if there
// are more leaves than that gives room for, one behind the other. Without leaves: node n on die n, counted
// from the last multiple of `dies_per_node` below the lowest number, or where that leaves the machine, in the
// order of their numbers. `nodes` are different and no more than `dies`.
NodePlacement place_nodes(std::vector<std::int64_t> nodes, const std::map<std::int64_t, std::int64_t>& leaves,
                          int dies, int dies_per_node);

// "0-7 on dies 0-7, 16-23 on dies 16-23": runs of neighbours together.
std::string text_of(const std::vector<std::pair<std::int64_t, int>>& mapping);

}  // namespace cm384::traces
