// Which experts get further copies, and where these stand, by the load of the experts: the expert-parallel
// load balancer (EPLB) as DeepSeek published it, without its grouping by nodes.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "workloads/operators/reference/expert_placement.h"

namespace cm384::reference {

// Copies of each expert: `redundant` further ones go, one after another, to the expert with the highest load
// per copy; the first of several. None gets more than `most`. Throws InputError where that leaves no expert.
std::vector<int> replicate(std::span<const double> loads, int redundant, int most);

// Slots that are free for further copies when every rank has as many slots as the fullest needs.
int free_slots(int ranks, int experts, int shared_copies);

// `redundant` further copies, all packed on ranks by falling load, each on the rank with the least load that
// has a slot left and no copy of that expert. Slots are spread evenly. The shared expert's copies stand on
// ranks 0 .. shared_copies - 1 beforehand, with their part of `shared_load`. Throws InputError where there is
// no such placement.
ExpertPlacement place_by_load(int ranks, std::span<const double> loads, int redundant, int shared_copies,
                              double shared_load);

// Load of each rank where an expert's load goes to its copies in equal parts.
std::vector<double> rank_loads(const ExpertPlacement& placement, std::span<const double> loads,
                               double shared_load);
// The largest over the mean; 1 where there is no load.
double imbalance(std::span<const double> rank_loads);

// The most copies of routed experts that a rank has in the second placement and had not in the first.
std::size_t new_copies(const ExpertPlacement& before, const ExpertPlacement& after);

}  // namespace cm384::reference
