// profile.json of a run's folder: what `cm384 report` shows beside the rows of result.json. Written with
// --out.
//
// The busy counters of links, HBM channels and pipes are read from the statistics registry once a microsecond
// of simulated time, between two steps of the machine; that changes no result, and nothing is read without
// --out.
//
// clang-format off
//     { "schema": 2, "study": "moe", "machine": { as `machine show --format json` },
//       "runs": [ { "run": "fused flow, 64 ranks", "interval_us": 1, "counted_from_us": 5, "counted_to_us": 325,
//         "dies": [ die of each rank ],
//         "kernels": [ { "kernel": "dispatch", "stage": "", "phases": [ "init", "send", ... ] } ],
//         "launches": [ { "rank": 0, "kernel": 0, "start_us": 5, "task_us": 149, "kernel_us": 140, "phases_us": [...] } ],
//         "busy": [ { "counter": "die*.hbm.channel*.busy_cycles", "parts": 128, "mean": [...], "highest": [...] } ],
//         "links": [ { "from": "die", "to": "L1 chip", "columns": [...], "planes": [ [ [...] ] ] } ] } ] }
// clang-format on
//
// `kernel` of a launch is its place in `kernels`, which has one entry for each kernel, and for each stage of
// a kernel that does several. Phases that `phases` does not name have only their number. `phases_us` are
// means over a launch's blocks. `mean` and `highest` are shares of each interval: over all parts, and of the
// busiest die, node or socket. `links` are shares of the counted time, by plane, then by column (die, socket
// or node), then by L2 chip where there is one.
#pragma once

#include <string>

#include "base/text/json.h"
#include "hw/machine.h"

namespace cm384::observe {

class Profile {
 public:
  bool empty() const { return runs_.empty(); }
  // One of the machines that the study built.
  void add(Json run) { runs_.push_back(std::move(run)); }
  Json to_document(const std::string& study, const hw::Machine& machine) const;

 private:
  Json runs_ = Json::array();
};

}  // namespace cm384::observe
