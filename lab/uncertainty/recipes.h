// What kernels of a library may do otherwise than ours, as further unknowns of an ensemble: rows that are
// loaded ahead, cores of a launch, tiles of products (docs/uncertainty.md).
#pragma once

#include <cstddef>
#include <string_view>

#include "lab/runs/subject.h"

namespace cm384::uncertainty {

// A study's settings by a recipe; what `fixed` names keeps its value. Number 0: as the study has it. The
// numbers from 1 on repeat after four, which have all pairs of what an operator has alternatives of. `cores`:
// of a die, where the settings name none; 0: not known, all recipes have them all.
runs::Settings by_recipe(std::string_view study, runs::Settings settings, std::size_t number,
                         const runs::Settings& fixed = {}, int cores = 0);

}  // namespace cm384::uncertainty
