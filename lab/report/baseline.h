// Golden results: a folder with `baseline.toml`, which names runs, and one result a run beside it.
//
// clang-format off
//     relative = 0                      # tolerances, as in tolerances.h
//     wall_limit = "10min"              # of each run on the host; default 1h
//     time_limit = "50ms"               # of simulated time; default: none
//     may_differ = ["inputs*"]          # conditions that may differ from those of the golden result
//     improved = "fail"                 # what got better past its tolerance fails; default: "pass"
//     drift = 0.02                      # what moves so far in drift_nights nights has drifted; 0: not looked for
//     drift_nights = 5
//
//     [[run]]
//     name = "p2p"                      # its result is p2p.json
//     command = "p2p --volume 0B"       # what follows `cm384 run`
//     relative = 0.01                   # of this run: tolerances, limits and may_differ in the place of the file's
//
//       [[run.field]]
//       name = "latency_us*"
//       relative = 0.05
// clang-format on
#pragma once

#include <string>
#include <vector>

#include "lab/report/result_file.h"
#include "lab/report/tolerances.h"

namespace cm384::report {

struct BaselineRun {
  std::string name;
  std::vector<std::string> arguments;   // of `cm384 run`
  Tolerances tolerances{};              // its own, then those of the file
  std::vector<std::string> may_differ;  // patterns of conditions: "inputs*", "parameters.elf"
  double wall_limit_s = 3600;           // of the host
  std::string time_limit{};             // simulated, as --time-limit takes it; empty: none
};

// A change that no night's tolerance sees: so large a share over so many nights, in steps that are smaller.
struct DriftRule {
  double share = 0.02;  // 0: not looked for
  int nights = 5;
};

struct Baseline {
  std::vector<BaselineRun> runs;
  Tolerances tolerances;
  DriftRule drift;
  bool improved_passes = true;
};

// Throws InputError: file:line: key: what was found; what is allowed.
Baseline read_baseline(const std::string& folder);
Baseline parse_baseline(std::string_view text, const std::string& name);

// What is kept of a result: all but `invocation` and `simulator`, one field per line.
std::string golden_text(const Json& document);

}  // namespace cm384::report
