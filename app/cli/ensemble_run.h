// A run on the members of an ensemble: `cm384 run STUDY --ensemble N`.
#pragma once

#include "app/cli/study_run.h"
#include "lab/uncertainty/ensemble.h"

namespace cm384::cli {

// The ensemble that the options name, with as many members as they ask for. Says on standard error what has
// changed since it was made. Throws InputError.
uncertainty::Ensemble ensemble_of(const EnsembleOptions& options, const hw::Machine& machine);

// Runs the machine itself and the members, prints the rows and what the intervals are, writes result.json.
// Throws InputError, OutputError. Returns an exit code; 1 if a member's run failed.
int run_on_ensemble(const Program& program, StudyRun& run, const Arguments& arguments);

}  // namespace cm384::cli
