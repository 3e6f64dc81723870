// Placement of ranks on dies. One policy is chosen for a run.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "hw/parameters/ub.h"

namespace cm384::host {

// Die number of each rank, from a policy name:
//   "linear"          rank r on die r
//   "strided"         consecutive ranks on consecutive nodes, then the next die of each node
//   "random"          a permutation drawn with `seed`
//   "0,5,17,..."      an explicit list of dies, one a rank
// Throws InputError: unknown policy, more ranks than dies, a die named twice or out of range.
std::vector<int> place_ranks(std::string_view policy, int ranks, int dies, int dies_per_node,
                             std::uint64_t seed);
// The same over all supernodes: a policy places as many consecutive ranks in each. Throws InputError also
// where that does not come out even.
std::vector<int> place_ranks(std::string_view policy, int ranks, const hw::Topology& topology,
                             std::uint64_t seed);

}  // namespace cm384::host
