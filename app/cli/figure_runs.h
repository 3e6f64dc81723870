// Published figures as an ensemble's members give them, by the runner of sweeps.
#pragma once

#include <span>
#include <vector>

#include "app/cli/study_settings.h"
#include "lab/uncertainty/point_runs.h"
#include "workloads/frame/published.h"

namespace cm384::cli {

class FigureRuns {
 public:
  FigureRuns(std::span<const studies::Figure* const> figures, uncertainty::PointRuns& runs);

  // Of machines, by their overrides, the figures in their order; NaN where a run failed. A machine that
  // misses the tolerance of a figure is not run for those behind it, if `stop_early`.
  std::vector<std::vector<double>> of(const std::vector<Settings>& machines, bool stop_early);

 private:
  // Figures that one run gives.
  struct Group {
    std::string study;
    Settings settings;
    std::vector<std::size_t> figures;
  };
  std::vector<const studies::Figure*> figures_;
  uncertainty::PointRuns& runs_;
  std::vector<Group> groups_;
};

}  // namespace cm384::cli
