// The page of a night: one HTML file, whole in itself, with the verdict of every run of a baseline.
#pragma once

#include <string>
#include <vector>

#include "lab/report/junit.h"
#include "lab/report/verdict.h"

namespace cm384::report {

// What the page shows: { "night": {..}, "runs": [ {"name", "verdict", "passes", "reason", "report",
// "command", "folder", "wall_s", "peak_MB", "simulated_us", "changes", "onsets"} ], "history": null }.
// Folders are named relative to the page, which stands beside them.
Json night_data(const Night& night, const std::vector<RunVerdict>& verdicts, const Baseline& baseline);

std::string to_night_page(const Json& data);

}  // namespace cm384::report
