// Markov chains through the machines that give every figure: from one that is known to, they spread evenly
// over all that do, however few of all draws that are.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lab/uncertainty/history.h"

namespace cm384::uncertainty {

struct ChainOptions {
  std::size_t chains = 23;
  std::size_t steps = 60;  // moves that each chain proposes
  std::uint64_t seed = 1;
};

// Metropolis: each step draws some coordinates of each chain's point anew over their whole range and stays
// where it was if the new point misses a target. How many are drawn anew adapts, ever less, so that about a
// quarter of the moves are taken. The chains begin at `from`, one after another, none of which may miss a
// target; chains that never left it are no members. `report` is given a line per step as it ends;
// `cancelled` is asked after each step. More steps go on where fewer ended.
Matching walk(const Points& from, const Points& figures, const std::vector<Target>& targets,
              const FigureModel& model, const ChainOptions& options,
              const std::function<void(const std::string&)>& report, const std::function<bool()>& cancelled);

}  // namespace cm384::uncertainty
