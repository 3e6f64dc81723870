// The runs of a baseline, and what git says of what they test.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/text/json.h"
#include "lab/report/baseline.h"
#include "lab/report/verdict.h"
#include "lab/runs/limited_runs.h"
#include "lab/sweeps/history.h"

namespace cm384::cli {

// Runs them, each in a folder of its name within `folder`, and gives each as it ends, by its place in the
// list. `jobs`: runs at a time; 0: one per core of this host.
void run_baseline(const std::vector<report::BaselineRun>& baseline, const std::filesystem::path& folder,
                  int jobs, const std::function<void(std::size_t, runs::EndedRun)>& ended);

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
