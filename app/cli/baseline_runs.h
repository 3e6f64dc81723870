// The runs of a baseline, each a process of its own: what one does, hang or die included, is no matter to the
// others.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/text/json.h"
#include "lab/report/baseline.h"
#include "lab/report/verdict.h"
#include "lab/sweeps/history.h"

namespace cm384::cli {

// A run that has ended, with its result.
struct EndedRun {
  report::RunEnd end;
  Json document;       // as in result.json; null: it wrote none that can be read
  std::string folder;  // of what it left
  double wall_s = 0, peak_MB = 0;
};

class BaselineRuns {
 public:
  // `folder`: where each run leaves its own. `jobs`: runs at a time; 0: one per core of this host.
  BaselineRuns(std::filesystem::path folder, int jobs);

  // Runs them and gives each as it ends, by its place in the list; those not given when interrupted were not
  // run to their end.
  void run(const std::vector<report::BaselineRun>& runs,
           const std::function<void(std::size_t, EndedRun)>& ended) const;

 private:
  std::filesystem::path folder_;
  int jobs_;
};

// The command line that repeats a run.
std::string command_of(const report::BaselineRun& run);

// What git says of the folder: its commit, "+changes" behind it where tracked files differ, and the commit's
// first line. Empty where there is no git, or no repository.
struct TestedCommit {
  std::string commit, subject;
};
TestedCommit tested_commit(const std::string& folder);
// Commits after `old` up to `young` with their first lines, the youngest first, at most 200; empty where git
// does not know them.
std::vector<std::string> commits_between(const std::string& folder, const std::string& old,
                                         const std::string& young);

// What the page of a night shows of the nights before: the last sixty, with every number that moved.
Json history_data(sweeps::History& history, const std::vector<report::RunVerdict>& verdicts);

}  // namespace cm384::cli
