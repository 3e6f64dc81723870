// The runner of sweeps with all that it stands on, for commands that run points of their own.
#pragma once

#include "app/cli/study_settings.h"
#include "app/cli/sweep_progress.h"
#include "app/cli/sweep_subject.h"
#include "base/text/standard_error.h"
#include "lab/runs/runs.h"

namespace cm384::cli {

struct ManyRuns {
  StudySubject subject;
  runs::Store store;
  runs::Runner runner;
  SweepProgress progress{true};
  runs::Runs points;

  // What is under way lies beside the store.
  ManyRuns(const Program& program, const ManyRunsOptions& options, const std::string& store_path)
      : subject(program.studies, options.threads()),
        store(store_path),
        runner(store, options.runner(store_path)),
        points(subject, runner, [this](std::size_t done, std::size_t known) {
          progress.update(done, known, runner.running(), runner.seconds_per_point());
        }) {}

  // After the last of them: whether an interrupt left some out, which is then said.
  bool stopped() {
    progress.clear();
    if (points.interrupted())
      print_error("cm384: interrupted; the same command continues where this one stopped\n");
    return points.interrupted();
  }
};

}  // namespace cm384::cli
