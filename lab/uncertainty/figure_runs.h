// Published figures as an ensemble's members give them, each figure by a run of a study.
#pragma once

#include <span>
#include <vector>

#include "lab/runs/runs.h"
#include "workloads/frame/published.h"

namespace cm384::uncertainty {

// What gives a figure, as settings of its study: "ranks" "8", ..
runs::Settings settings_of(const studies::Conditions& conditions);

class FigureRuns {
 public:
  FigureRuns(std::span<const studies::Figure* const> figures, runs::Runs& runs);

  // Of machines, by their overrides, the figures in their order; NaN where a run failed. A machine that
  // misses the tolerance of a figure is not run for those behind it, if `stop_early`. `recipes`: the number
  // of the recipe by which each machine's kernels are made (recipes.h); none: all as studies have them.
  std::vector<std::vector<double>> of(const std::vector<runs::Settings>& machines, bool stop_early,
                                      std::span<const std::size_t> recipes = {});

 private:
  // Figures that one run gives.
  struct Group {
    std::string study;
    runs::Settings settings;
    std::vector<std::size_t> figures;
  };
  std::vector<const studies::Figure*> figures_;
  runs::Runs& runs_;
  std::vector<Group> groups_;
};

}  // namespace cm384::uncertainty
