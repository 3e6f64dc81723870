// Jobs that come, wait and run on a pool for months, while its parts fail and are repaired.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "workloads/cluster/allocation.h"
#include "workloads/cluster/pool_watch.h"
#include "workloads/cluster/reliability.h"

namespace cm384::cluster {

// Seconds.
struct SaveTimes {
  double interval = 0;  // of work between two checkpoints
  double stops = 0;     // that one stops the job
  double beside = 0;    // after these until it is written, beside work; at most `interval`
};

struct JobMixCase {
  std::vector<Hazard> hazards;  // rates of the whole pool; every node has the same share of them
  PoolShape shape;
  Fit fit = Fit::best;
  Order order = Order::fcfs;
  const BlockTraffic* traffic = nullptr;  // of Fit::min_cut
  int spares = 0;   // nodes of each supernode that no job starts on: they replace those under repair
  double wall = 0;  // s that are looked at
  std::function<SaveTimes(const Job&)> save;
};

// Of jobs of a size class. NPU seconds, but for what says otherwise.
struct MixClass {
  int npus = 0;  // at most, a power of two; more than half of it
  std::int64_t started = 0, finished = 0, interruptions = 0;
  double useful = 0;  // work that was saved or has ended, at full speed
  double redo = 0, checkpoint = 0, detection = 0, restart = 0;
  double slow = 0;
  double waiting = 0;  // for nodes after an interruption; the job holds none
  double queued = 0;   // s from submission to the first start, of all that started
  double held() const { return useful + redo + checkpoint + detection + restart + slow; }
};

struct JobMixRun {
  bool complete = true;
  std::vector<MixClass> classes;  // by size, without empty ones
  double idle = 0, away = 0;      // shares of all NPU time: held by nobody; of nodes under repair
  std::vector<std::int64_t> failures, interruptions;  // of each hazard; of jobs by it
  std::vector<double> lost;                           // NPU seconds that these took: redo, detection, restart
};

// A fault strikes a node: one NPU of it, or all. Jobs on what fails stop. A node that needs a repair is given
// to nobody from then on. Once the fault is known a job takes other NPUs of the same supernode for those of
// that node, spare ones as well; where there are none it gives all back, and waits in the place of its
// submission. The repair begins when all jobs have left the node. A slow part slows the job that it strikes
// until it is repaired. Throws InputError for a job that no supernode can hold beside the spares.
// `watch` sees who has which NPUs and which nodes are away; null: nobody does.
JobMixRun run_job_mix(const std::vector<Job>& jobs, const JobMixCase& of, std::uint64_t seed,
                      const std::function<bool()>& go_on = {}, const PoolWatch* watch = nullptr);

// Failures a second that stop a job that takes the fewest nodes.
double interruptions_per_second(const JobMixCase& of, const Job& job);

}  // namespace cm384::cluster
