// Small runs whose outputs the live-knob tests compare.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace cm384::testing {

using Outputs = std::map<std::string, double>;

// Runs scenario `name` on the default machine with changes; remembered by both. Names:
//   core       kernel `knobs` on 48 cores: cycles of every section by name, sections "vector0" and up,
//   "memory"
//              (sum over blocks)
//   cube       kernel `cube_knobs` on one AIC: cycles of every section by name
//   gemm       a grouped GEMM of INT8 on 4 groups of cores: kernel, task; `gemm bf16` one group, 8 cores
//   p2p OP TARGET DISTANCE   latency, bandwidth, startup
//   stream SHAPE             kernel, task, bandwidth
//   dispatch                 12 ranks of a node: kernel, task; `dispatch nodes` of two nodes, `dispatch
//   strided`
//                            of twelve
//   dispatch corrupted|lost  with faults on the links to a die
//   count                    racks
//   copies                   more: what 128 further copies of 16 streams take
//   hits CORES               kernel: what four more passes over rows that the L2 holds take
//   more SHAPE               kernel: what a second half of the measured matrix takes
//   rdma, transfer, messages plane_scenarios.h
// Throws what the run throws.
const Outputs& run_scenario(const std::string& name, const std::vector<std::string>& changes);

}  // namespace cm384::testing
