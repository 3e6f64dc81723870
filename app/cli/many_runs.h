// The runner of sweeps with all that it stands on, for commands that run points of their own.
#pragma once

#include "app/cli/study_settings.h"
#include "app/cli/sweep_progress.h"
#include "app/cli/sweep_subject.h"
#include "lab/uncertainty/point_runs.h"

namespace cm384::cli {

struct ManyRuns {
  StudySubject subject;
  sweeps::Store store;
  sweeps::Runner runner;
  SweepProgress progress{true};
  uncertainty::PointRuns points;

  // What is under way lies beside the store.
  ManyRuns(const Program& program, const ManyRunsOptions& options, const std::string& store_path)
      : subject(program.studies, options.threads()),
        store(store_path),
        runner(store, options.runner(store_path)),
        points(subject, runner, [this](std::size_t done, std::size_t known) {
          progress.update(done, known, runner.running(), runner.seconds_per_point());
        }) {}
};

}  // namespace cm384::cli
