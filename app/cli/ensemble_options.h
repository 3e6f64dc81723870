// Options of commands that run on an ensemble of machines.
#pragma once

#include <string>

#include "workloads/frame/options.h"

namespace cm384::cli {

// An ensemble of machines, of which a command takes some members.
struct EnsembleOptions {
  int ensemble = 0;
  std::string members, store = "ensemble.sqlite";
  int jobs = 0;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("ensemble", self.ensemble, studies::Range{0, 1000},
          "also run on this many members of an ensemble, and give every mean its 90 % interval; 0: none");
    visit("members", self.members, studies::Form{"FILE"},
          "the ensemble, of `cm384 ensemble build`; default: that of the machine that comes with cm384",
          studies::Needs{"ensemble", {}});
    visit("store", self.store, studies::Form{"FILE"}, "results of its runs by their content, as of sweeps",
          studies::Needs{"ensemble", {}});
    visit("jobs", self.jobs, studies::Range{0, 1024}, "of its runs at a time; 0: one per core of this host",
          studies::Needs{"ensemble", {}});
  }
};

}  // namespace cm384::cli
