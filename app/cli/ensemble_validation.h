// Published figures against the intervals of an ensemble: `cm384 validate --ensemble N`.
#pragma once

#include <string>

#include "app/cli/command.h"
#include "app/cli/common_options.h"
#include "app/cli/ensemble_options.h"

namespace cm384::cli {

// Figures whose id begins with `only`. Returns an exit code; 1 if intervals hold too few validation figures,
// or are too wide. Throws InputError.
int validate_on_ensemble(const Program& program, const EnsembleOptions& options,
                         const MachineOptions& machine, const RowOptions& rows, const std::string& only,
                         bool with_long, bool markdown);

}  // namespace cm384::cli
