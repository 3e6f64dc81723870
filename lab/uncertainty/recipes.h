// What others may do otherwise, as further unknowns of an ensemble (docs/uncertainty.md): kernels of a
// library (rows that are loaded ahead, cores of a launch, tiles of products), and what of a deployment is
// open.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "lab/runs/subject.h"
#include "workloads/frame/options.h"

namespace cm384::uncertainty {

// A study's settings by a recipe; what `fixed` names keeps its value. Number 0: as the study has it. The
// numbers from 1 on repeat after four, which have all pairs of what an operator has alternatives of. `cores`:
// of a die, where the settings name none; 0: not known, all recipes have them all.
runs::Settings by_recipe(std::string_view study, runs::Settings settings, std::size_t number,
                         const runs::Settings& fixed = {}, int cores = 0);

// Settings with one of the values of each option that is open, but for what `fixed` names. Number 0: as the
// study has it; numbers count through all combinations, the first option fastest.
runs::Settings by_alternatives(runs::Settings settings, const std::vector<studies::Alternatives>& open,
                               std::size_t number, const runs::Settings& fixed);

}  // namespace cm384::uncertainty
