// A sweep as a result file: rows as every run has them, and the object `sweep` that says what was swept.
#pragma once

#include <string>

#include "base/text/json.h"
#include "lab/sweeps/sweep.h"

namespace cm384::cli {

// What the file of a sweep, and the way to it, add to its rows.
struct SweepFacts {
  std::string file;   // the plan's, as the command line has it
  std::string store;  // relative to the folder of the result; empty: not said
  double wall_s = 0;
  std::vector<std::string>
      conditions{};  // fields that its rows are matched by: axes, then those of the study
};

// The document that `compare`, `report` and scripts read:
//
// clang-format off
//     { "schema": 1, "study": "sweep", ..., "rows": [...], "found": [...],
//       "sweep": { "name": "rates", "study": "dispatch", "design": "grid", "preset": "cloudmatrix384", "store": "store.sqlite",
//         "axes": [ { "key": "ub.link.bandwidth", "values": ["7GB/s", ...], "scale": "linear", "range": false, "zip": "",
//                     "published": { "value": "28GB/s", "from": "published", "source": ..., "what": ... } } ],
//         "changed": [ { "key", "value", "published": { ... } } ],
//         "where": [...], "metrics": [...], "costs": [ { "name", "formula" } ], "goals": [ { "metric", "best" } ],
//         "find": { "axis", "metric", "at_most", "best" },
//         "points": [ { "name": "0001", "key": ..., "command": "cm384 run ...", "rows": [0] } ] } }
// clang-format on
//
// `published` is what the preset has that the sweep's machine stands on; axes over options have none.
// `changed` are parameters that all points have in common and that differ from it. A point is one run; its
// `rows` are numbers of rows.
Json sweep_document(const sweeps::Plan& plan, const sweeps::SweepResult& result, const SweepFacts& facts);

}  // namespace cm384::cli
