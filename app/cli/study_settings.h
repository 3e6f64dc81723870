// A study with its options on the command line of a command that runs it many times.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/cli/common_options.h"
#include "app/cli/ensemble_options.h"
#include "app/cli/study_run.h"
#include "lab/runs/runner.h"
#include "lab/sweeps/plan.h"

namespace cm384::cli {

using runs::Settings;

// Options of such a command.
struct ManyRunsOptions {
  MachineOptions machine;
  SeedOption seed;
  RowOptions rows;
  std::string out, store;
  int jobs = 0;
  Bytes memory{};

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    MachineOptions::describe(self.machine, visit);
    SeedOption::describe(self.seed, visit);
    RowOptions::describe(self.rows, visit);
    visit("out", self.out, studies::Form{"DIR"},
          "folder of the result; default: the command's and study's name");
    visit("store", self.store, studies::Form{"FILE"},
          "results of runs by their content, as of sweeps; default: store.sqlite in that folder");
    visit("jobs", self.jobs, studies::Range{0, 1024}, "runs at a time; 0: one per core of this host");
    visit("memory", self.memory, studies::Range{0_B, 65536_GiB},
          "of this host that all runs together may take; 0B: what is free");
  }
  std::string store_path(const std::string& folder) const {
    return store.empty() ? folder + "/store.sqlite" : store;
  }
  // Threads of the host for each run.
  int threads() const;
  // What is under way lies beside the store.
  runs::RunnerOptions runner(const std::string& store_path) const;
};

// The study's own options that the command line gave, then machine, its changes, and seed.
Settings settings_of(const studies::OptionGroup& of_study, const studies::Given& given,
                     const MachineOptions& machine, const SeedOption& seed);

}  // namespace cm384::cli
