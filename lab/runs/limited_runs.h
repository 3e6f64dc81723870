// Runs that have a limit of time and leave a folder each, each a process of its own: what one does, hang or
// die included, is no matter to the others. Nothing of them is kept in a store.
#pragma once

#include <csignal>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/text/json.h"
#include "lab/runs/store.h"

namespace cm384::runs {

struct LimitedRun {
  std::string name;                    // of its folder
  std::vector<std::string> arguments;  // what follows `cm384 run`
  double wall_limit_s = 3600;          // of the host
};

struct EndedRun {
  Outcome outcome;           // kNoOutput and no folder: it was never started
  Json document;             // as in result.json; null: it wrote none that can be read
  bool out_of_time = false;  // it was asked to end
  std::filesystem::path
      folder;  // of what it left, with what it printed in `output` and `errors`; empty: nothing
  double wall_s = 0;
};

// Runs them in folders of their names within `folder`, `jobs` at a time, and gives each as it ends, by its
// place in the list; those not given when interrupted were not run to their end. What an earlier list left in
// a folder goes.
void run_limited(const std::vector<LimitedRun>& runs, const std::filesystem::path& folder, int jobs,
                 const volatile std::sig_atomic_t& interrupted,
                 const std::function<void(std::size_t, EndedRun)>& ended);

}  // namespace cm384::runs
