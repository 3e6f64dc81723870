// Two profiles by source line (`run --profile`), line by line, also where lines were added or taken away.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/text/json.h"
#include "workloads/frame/fields.h"

namespace cm384::report {

// The profiles of a folder: its lines.json, or `lines` of its result.json; of a file: either of the two.
// Throws InputError.
Json read_lines(const std::string& path);

// For each line of the second text, from 0, which line of the first it is; -1: a new one. Lines keep their
// order, and as many as can be are the same.
std::vector<int> same_lines(const std::vector<std::string>& before, const std::vector<std::string>& after);

// A row for each line that ran in either: kernel, line (of the second where it is there, else of the first),
// cycles of both, change, share of all that changed; the largest change first. Machines and kernels are
// compared by their order and name.
studies::Rows compare_lines(const Json& before, const Json& after);

}  // namespace cm384::report
