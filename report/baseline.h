// Golden results: a folder with `baseline.toml`, which names runs, and one result a run beside it.
//
//     relative = 0                      # tolerances, as in tolerances.h
//
//     [[run]]
//     name = "p2p"                      # its result is p2p.json
//     command = "p2p --volume 0B"       # what follows `cm384 run`
#pragma once

#include <string>
#include <vector>

#include "report/result_file.h"
#include "report/tolerances.h"

namespace cm384::report {

struct BaselineRun {
  std::string name;
  std::vector<std::string> arguments;  // of `cm384 run`
};

struct Baseline {
  std::vector<BaselineRun> runs;
  Tolerances tolerances;
};

// Throws InputError: file:line: key: what was found; what is allowed.
Baseline read_baseline(const std::string& folder);
Baseline parse_baseline(std::string_view text, const std::string& name);

// What is kept of a result: all but `invocation` and `simulator`, one field per line.
std::string golden_text(const Json& document);

}  // namespace cm384::report
